package start

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
)

// peerReports are what programs report that do not find, or do not reach, another member.
var peerReports = reports{
	"host not found", "hostnotfound", "name or service not known", "name resolution", "could not resolve", "no such host", "unknown host", "nxdomain", "can't resolve", "nodename nor servname",
	"connection refused", "connection reset", "connection timed out", "connection closed", "no route to host", "unreachable", "failed to connect", "could not connect", "rendezvous",
	"timed out", "timedout", "time out", "timeout", "deadlineexceeded", "deadline exceeded",
}

// found is what was found of a member.
type found struct {
	gang.Member
	*stage.Finding
}

// awaitedPeers are the members that others may wait for: those without a node that the gang needs, and those that have not run yet, unless they fail themselves, or may wait in their turn, in
// an init container.
func awaitedPeers(c *stage.Context, all []found, whole bool) (names []string) {
	waits := map[string]bool{}
	for _, f := range all {
		waits[f.Name()] = ended(f.Finding) || f.Code == answer.InitRunning
	}
	for _, m := range c.Gang.Members {
		switch m.State {
		case gang.Pending, gang.Gated, gang.Missing, gang.Lost:
			if whole {
				continue
			}
		case gang.Starting:
			if hasRun(m.Pod) || waits[m.Name()] {
				continue
			}
		default:
			continue
		}
		names = append(names, m.Name())
	}
	return names
}

// ended reports whether a finding is that a container ends badly.
func ended(f *stage.Finding) bool { return f.Code == answer.CrashLoop || f.Code == answer.InitFailing }

// hasRun reports whether a container of a pod, other than those that begin it, is or was up.
func hasRun(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.RestartCount > 0 || s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
	})
}

// followsPeer reports whether a container of a member may end badly for want of another member alone, and is tried again: it reports so, or nothing but an error. The head of a Ray cluster waits for
// no other.
func followsPeer(g *gang.Gang, f found) bool {
	if f.State != gang.Starting || !ended(f.Finding) || f.Facts["probe"] != nil || g.Kind.Group == ray.Group && f.Role == ray.Head {
		return false
	}
	for _, s := range slices.Concat(f.Pod.Status.InitContainerStatuses, f.Pod.Status.ContainerStatuses) {
		last := s.State.Terminated
		if last == nil {
			last = s.LastTerminationState.Terminated
		}
		if s.Name == f.Facts["container"] && last != nil {
			return peerReports.MatchString(last.Message) || last.Message == "" && last.Reason == "Error" && (last.ExitCode == 1 || last.ExitCode == 255)
		}
	}
	return false
}

// peersSettle is how long after the last member has come up others may fail to reach it: its name is not known everywhere at once, and the kubelet starts them again with pauses.
const peersSettle = 2 * time.Minute

// afterPeers makes of what may follow from members that have only just come up that it passes by itself.
func afterPeers(c *stage.Context, all []found) []found {
	var peers []string
	var up time.Time
	for _, m := range c.Gang.Members {
		if m.State != gang.Running {
			continue
		}
		if _, ready := podutil.GetPodCondition(&m.Pod.Status, corev1.PodReady); ready != nil {
			peers, up = append(peers, m.Name()), view.Later(up, ready.LastTransitionTime.Time)
		}
	}
	if up.IsZero() || c.View.Age(up) > peersSettle {
		return all
	}
	for i, f := range all {
		if followsPeer(c.Gang, f) {
			message := f.Message
			all[i].Finding = f.Become(answer.ContainersStarting)
			all[i].Message = fmt.Sprintf("%s; it is started again, and may reach %s then, the last of which came up %s ago", message, phrase.Names(peers), phrase.Age(c.View.Age(up)))
		}
	}
	return all
}

// maxReport is how many characters of what a member reported a remark has.
const maxReport = 200

// explainPeers takes those out of what was found of members that may follow from others which are not there, and remarks them: when the others run it shows whether that was all.
func explainPeers(c *stage.Context, out *stage.Result, all []found, whole bool) []found {
	peers := awaitedPeers(c, all, whole)
	if len(peers) == 0 {
		return afterPeers(c, all)
	}
	var follows troubles
	all = slices.DeleteFunc(all, func(f found) bool {
		if !followsPeer(c.Gang, f) {
			return false
		}
		follows.add(f.Name(), f.Pod, f.Finding)
		return true
	})
	for _, t := range follows.sorted() {
		report, log := "", ""
		if i := slices.IndexFunc(t.Details, peerReports.MatchString); i >= 0 {
			report = fmt.Sprintf(" (%s)", phrase.Shorten(t.Details[i], maxReport))
		}
		if len(t.Commands) > 0 {
			log = "; see " + t.Commands[0]
		}
		out.Note("%s: %s%s: that may be for want of %s%s", phrase.Names(t.members), t.Message, report, phrase.Names(peers), log)
	}
	return all
}

// followers takes those out of what was found of members that wait in an init container which their operator puts there, as for the head of a Ray cluster or a master, while another member cannot
// start: they go on when that does.
func followers(c *stage.Context, out *stage.Result, all []found) []found {
	i := slices.IndexFunc(all, func(f found) bool { return f.Verdict == answer.Blocked })
	if i < 0 {
		return all
	}
	first := all[i]
	var names []string
	left := slices.DeleteFunc(slices.Clone(all), func(f found) bool {
		container, _ := f.Facts["container"].(string)
		waits := f.Code == answer.InitRunning && f.Role != first.Role && templateLacks(c, f.Member, container)
		if waits {
			names = append(names, f.Name())
		}
		return waits
	})
	if len(names) > 0 {
		out.Note("%s %s in an init container that the operator puts there: as a rule until %s is up", phrase.Names(names), phrase.Verb(len(names), "waits", "wait"), first.Name())
	}
	return left
}

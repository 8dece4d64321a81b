package stage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// CreationGrace is how long a controller may take between one pod of a job and the next.
const CreationGrace = time.Minute

// Created reads like 2/4: the pods that exist.
func (c *Context) Created() string {
	return phrase.Fraction(c.Gang.Created(), c.Gang.Total())
}

// CreatedByRole reads like: Chief 1/1, Worker 0/2.
func (c *Context) CreatedByRole() string {
	var parts []string
	for _, r := range c.Gang.Roles {
		parts = append(parts, fmt.Sprintf("%s %d/%d", r.Name, c.Gang.CreatedOf(r.Name), r.Replicas))
	}
	return strings.Join(parts, ", ")
}

// OnlyFor ends what is so for a role of several, where it is not so for all. It reads like: , required for Launcher.
func (c *Context) OnlyFor(role placement.Role, how string, is func(placement.Role) bool) string {
	if !slices.ContainsFunc(c.Request.Roles, func(r placement.Role) bool { return !is(r) }) {
		return ""
	}
	return fmt.Sprintf(", %s %s", how, phrase.Role(role.Name))
}

// FailedPods are the pods of a job with random pod names that have failed, the latest first: its controller makes others under
// other names, and waits longer each time. Nil where every member has a pod that has not failed, or a pod has its name for good. Those of indexes that
// have failed for good are left out.
func (c *Context) FailedPods() []*corev1.Pod {
	if c.Gang.Reader.PodName != nil || c.Gang.Bare != nil || c.Gang.Count(gang.Missing, gang.Failed) == 0 || c.Gang.End != nil {
		return nil
	}
	var failed []*corev1.Pod
	for _, p := range c.failedBy()[c.Gang.Meta.UID] {
		if !c.Gang.FailedForGood(p) {
			failed = append(failed, p)
		}
	}
	return failed
}

// failedBy are the pods that have failed, by their controllers, the latest first.
func (c *Context) failedBy() map[types.UID][]*corev1.Pod {
	type failedBy struct{}
	return view.Once(c.View, failedBy{}, func() map[types.UID][]*corev1.Pod {
		by := map[types.UID][]*corev1.Pod{}
		for _, p := range c.View.Snap.Pods {
			if ref := metav1.GetControllerOfNoCopy(p); p.Status.Phase == corev1.PodFailed && ref != nil && ref.UID != "" {
				by[ref.UID] = append(by[ref.UID], p)
			}
		}
		for _, pods := range by {
			slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
		}
		return by
	})
}

// BadEnd is how a container of a pod ended badly; nil if none has.
func BadEnd(p *corev1.Pod) (t *corev1.ContainerStateTerminated, container string) {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if s.State.Terminated != nil && s.State.Terminated.ExitCode != 0 {
			return s.State.Terminated, s.Name
		}
	}
	return nil, ""
}

// IdleDevices is how many devices the members of a gang hold that have a node, and since when the last of them is up.
func IdleDevices(g *gang.Gang) (int64, time.Time) {
	var n int64
	var since time.Time
	for _, m := range g.Members {
		if m.State != gang.Starting && m.State != gang.Running {
			continue
		}
		request := podrequest.Of(m.Pod)
		device := podrequest.Device(request)
		n += podrequest.Amount(device, request[device])
		if m.Pod.Status.StartTime != nil {
			since = view.Later(since, m.Pod.Status.StartTime.Time)
		}
	}
	return n, since
}

// GroupKind names the kind of a declaration in a sentence.
func GroupKind(d gang.Declaration) string {
	if d.Kind.Kind == "" {
		return string(d.Key.Dialect) + " group"
	}
	return d.Kind.Kind + "." + d.Kind.Group
}

// DescribeGroup names a declaration in a sentence.
func DescribeGroup(d gang.Declaration) string { return GroupKind(d) + " " + d.Key.Name }

// TermsOf are the priority and the preemption policy of a gang, of whose members those are to be placed that a request has.
func TermsOf(g *gang.Gang, request view.PlacementRequest) gang.Terms {
	return g.Decl.Terms(func(yield func(*corev1.Pod) bool) {
		for _, r := range request.Roles {
			if !yield(r.Pod) {
				return
			}
		}
	})
}

// RunAgain is when the first of the members of a gang came up, where its job had ended before; zero where one was up by then.
func RunAgain(g *gang.Gang) (first time.Time) {
	if g.End == nil || g.End.At.IsZero() {
		return first
	}
	for _, p := range g.ExistingPods() {
		at := p.CreationTimestamp.Time
		if started := p.Status.StartTime; started != nil {
			at = started.Time
		}
		if !at.After(g.End.At) {
			return time.Time{}
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

package start

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// The reasons of events about volumes: the kubelet reports mounts, the attach controller reports attachments.
const (
	mountFailed  = "FailedMount"
	attachFailed = "FailedAttachVolume"
	attached     = "SuccessfulAttachVolume"
)

// allMounted are the reasons of events that a kubelet reports of a pod once all of its volumes are mounted.
var allMounted = append([]string{prepareFailed, sandboxFailed}, containersMade...)

// mountTimeout begins what a kubelet reports every other minute while a volume is missing, whatever the reason; unmountedVolumes is which those are, by their names in
// the pod.
const mountTimeout = "Unable to attach or mount volumes"

var unmountedVolumes = regexp.MustCompile(`unmounted volumes=\[([^\]]*)\]`)

// eventVolume is how kubelets and the attach controller name the volume: by its name in the pod, or by that of its PersistentVolume.
var eventVolume = regexp.MustCompile(`[Vv]olume "([^"]+)"`)

// volume finds that the kubelet waits for a volume, or for a secret or config map that is mounted as one.
func volume(c *stage.Context, m gang.Member, events []view.Event) *stage.Finding {
	e, timeout := volumeEvents(c, m.Pod, events)
	if e == nil { // else it is known what is wrong with a volume
		if owning := ownership(c, m.Pod, events); owning != nil || timeout == nil {
			return owning
		}
		return timedOut(c, m, *timeout)
	}
	switch {
	case strings.Contains(e.Message, "Multi-Attach"):
		return multiAttach(c, m, *e)
	case missingObject.MatchString(e.Message) || strings.Contains(e.Message, "references non-existent"):
		return configMissing(c, e.Message, e.Message).SinceTime(e.First)
	}
	if f := accountMissing(c, *e); f != nil {
		return f
	}
	f := stage.Found(answer.VolumeMount, "%s", e.Message).SinceTime(e.First).Run(c.Kubectl("describe", "pod", m.Pod.Name))
	if storageReports.MatchString(e.Message) && slices.ContainsFunc(m.Pod.Spec.Volumes, func(v corev1.Volume) bool {
		claim := claimOf(c, v)
		return claim != nil && (claim.Spec.VolumeName == volumeIn(e) || v.Name == volumeIn(e))
	}) {
		f.As(answer.Blocked, answer.Admin).Detail("the claim is bound, and its storage does not answer: that is for who runs the storage, or the network to it")
	}
	return ofNode(c, m, f)
}

// storageReports are reports of mounts about storage that fails, or is not reached.
var storageReports = reports{"input/output error", "timed out", "deadlineexceeded", "deadline exceeded", "connection refused", "connection reset", "no route to host", "unreachable", "host is down", "transport endpoint",
	"code = unavailable"}

// noAccount is how a kubelet reports that it gets no token for a pod, as the account of it does not exist.
var noAccount = regexp.MustCompile(`serviceaccounts? "([^"]+)" not found`)

// accountMissing finds that the ServiceAccount is gone that a pod was accepted with: members that run have their tokens already. It is nil if the event is about something else, or the
// account is there again.
func accountMissing(c *stage.Context, e view.Event) *stage.Finding {
	report := noAccount.FindStringSubmatch(e.Message)
	if report == nil || !c.View.Snap.CanList("serviceaccounts", c.Gang.Meta.Namespace) || gang.Named(c.View.Snap.ServiceAccounts, c.Gang.Meta.Namespace, report[1]) != nil {
		return nil
	}
	return stage.Found(answer.AccountMissing, "ServiceAccount %q does not exist in namespace %s any more, so that containers get no token: %s", report[1], c.Gang.Meta.Namespace, e.Message).At(answer.StageStart).SinceTime(e.First).
		Fact("name", report[1]).Run(c.Kubectl("create", "serviceaccount", report[1]))
}

// ownerChanges is the reason of the events by which a kubelet reports, every minute, that it gives the files of a volume to the fsGroup of the pod. It reports timeouts of the mount
// meanwhile.
const (
	ownerChanges      = "VolumePermissionChangeInProgress"
	ownerReportedEach = time.Minute
)

// ownership finds that the kubelet gives the files of a volume to the fsGroup of the pod, which takes its time where there are many; nil if it does not, or has ended.
func ownership(c *stage.Context, pod *corev1.Pod, events []view.Event) *stage.Finding {
	e := stage.LatestUnless(events, ownerChanges, allMounted...)
	if e == nil || c.View.Age(e.Last) > 3*ownerReportedEach {
		return nil
	}
	since := e.First
	for _, other := range events {
		if other.Reason == ownerChanges && other.First.Before(since) {
			since = other.First
		}
	}
	return stage.Found(answer.ContainersStarting, "the files of a volume are being given to the fsGroup of the pod, for %s: %s", phrase.Age(c.View.Age(since)), e.Message).SinceTime(since).
		Detail("fsGroupChangePolicy: OnRootMismatch in the securityContext of the pods leaves them alone, where the top of the volume has that group already").
		Run(c.Kubectl("describe", "pod", pod.Name))
}

// volumeEvents are the latest event that reports why a volume is not there, and the latest that only reports that one is not; nil if there is none, or it has passed.
// The first may be much older: a Multi-Attach error is reported once.
func volumeEvents(c *stage.Context, pod *corev1.Pod, events []view.Event) (reason, timeout *view.Event) {
	healed := map[string]bool{} // volumes that were attached in the end
	for i := range events {
		e := &events[i]
		switch {
		case slices.Contains(allMounted, e.Reason):
			return reason, timeout
		case e.Reason == attached:
			healed[volumeIn(e)] = true
		case !e.Warning || e.Reason != mountFailed && e.Reason != attachFailed || passes(c, *e):
		case strings.HasPrefix(e.Message, mountTimeout):
			if timeout == nil {
				timeout = e
			}
		case reason != nil || e.Reason == attachFailed && healed[volumeIn(e)]:
		case timeout == nil || awaited(c, pod, timeout, volumeIn(e)):
			reason = e
		}
	}
	return reason, timeout
}

// volumeIn is the volume that an event names; "" if it names none.
func volumeIn(e *view.Event) string {
	if named := eventVolume.FindStringSubmatch(e.Message); named != nil {
		return named[1]
	}
	return ""
}

// unmounted are the volumes of a pod that are missing by a report of a timeout.
func unmounted(pod *corev1.Pod, timeout *view.Event) []corev1.Volume {
	report := unmountedVolumes.FindStringSubmatch(timeout.Message)
	if report == nil {
		return nil
	}
	names := strings.Fields(report[1])
	return slices.DeleteFunc(slices.Clone(pod.Spec.Volumes), func(v corev1.Volume) bool { return !slices.Contains(names, v.Name) })
}

// awaited reports whether a volume is missing by a report of a timeout: what an older event reports of one that is mounted by now has passed. One that
// cannot be identified counts as missing.
func awaited(c *stage.Context, pod *corev1.Pod, timeout *view.Event, name string) bool {
	is := func(v corev1.Volume) bool {
		if v.Name == name {
			return true
		}
		claim := claimOf(c, v)
		return claim != nil && claim.Spec.VolumeName == name
	}
	missing := unmounted(pod, timeout)
	return len(missing) == 0 || slices.ContainsFunc(missing, is) || !slices.ContainsFunc(pod.Spec.Volumes, is)
}

// claimOf is the claim that a volume of a member is made of; nil if there is none.
func claimOf(c *stage.Context, v corev1.Volume) *corev1.PersistentVolumeClaim {
	if v.PersistentVolumeClaim == nil {
		return nil
	}
	return gang.Named(c.View.Snap.Claims, c.Gang.Meta.Namespace, v.PersistentVolumeClaim.ClaimName)
}

// timedOut finds what keeps a volume from a member of which only that is reported, from the state of the cluster where that shows it: events expire.
func timedOut(c *stage.Context, m gang.Member, e view.Event) *stage.Finding {
	var made []string
	for _, v := range unmounted(m.Pod, &e) {
		if claim := claimOf(c, v); claim != nil && attachedElsewhere(c, m, claim) {
			return inUse(c, m, claim, e.First)
		}
		if of := madeOf(v); of != "" {
			made = append(made, fmt.Sprintf("volume %s is %s", v.Name, of))
		}
	}
	f := stage.Found(answer.VolumeMount, "%s", e.Message).SinceTime(e.First).Run(c.Kubectl("describe", "pod", m.Pod.Name))
	if len(made) > 0 {
		f.Detail("%s", phrase.And(made))
	}
	return f
}

// madeOf is what a volume is made of; "" where that needs nothing that could be missing.
func madeOf(v corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return "claim " + v.PersistentVolumeClaim.ClaimName
	case v.Secret != nil:
		return "secret " + v.Secret.SecretName
	case v.ConfigMap != nil:
		return "configmap " + v.ConfigMap.Name
	case v.NFS != nil:
		return v.NFS.Server + ":" + v.NFS.Path
	case v.CSI != nil:
		return "made by CSI driver " + v.CSI.Driver
	case v.HostPath != nil:
		return "the path " + v.HostPath.Path + " of the node"
	}
	return ""
}

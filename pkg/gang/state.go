package gang

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// State is how a gang or one of its members is, written as pods' phases are.
type State string

// The states of a gang; all but Suspended and Degraded are also states of a member.
const (
	Pending   State = "Pending"   // no member has a node, though some may have ended well; a member has none
	Starting  State = "Starting"  // members have nodes, but do not all run and are Ready yet
	Running   State = "Running"   // the gang runs: all of its members, or its minimum; a member runs and is Ready
	Degraded  State = "Degraded"  // some members run while others cannot, or have failed for good
	Succeeded State = "Succeeded" // ended well
	Failed    State = "Failed"    // ended badly; of a member: and was not replaced
	Suspended State = "Suspended" // set aside by its owner or a queue
)

// Further states of a member.
const (
	Missing     State = "Missing"     // it has no pod
	NotDue      State = "NotDue"      // it has no pod, and none is made before other members are so far
	Gated       State = "Gated"       // a scheduling gate holds its pod
	Terminating State = "Terminating" // its pod is being deleted
	Lost        State = "Lost"        // its node is gone or not Ready, or, where nodes are not read, does not report
)

func memberState(pod *corev1.Pod, nodeLost func(string) bool) State {
	switch {
	case pod == nil:
		return Missing
	case pod.Status.Phase == corev1.PodSucceeded:
		return Succeeded
	case pod.DeletionTimestamp != nil: // it never starts again, however it ends
		return Terminating
	case pod.Status.Phase == corev1.PodFailed:
		return Failed
	case pod.Spec.NodeName == "" && len(pod.Spec.SchedulingGates) > 0:
		return Gated
	case pod.Spec.NodeName == "":
		return Pending
	case nodeLost != nil && nodeLost(pod.Spec.NodeName), nodeLost == nil && Unreported(pod):
		return Lost
	case pod.Status.Phase == corev1.PodRunning && ready(pod):
		return Running
	}
	return Starting
}

// AwaitsNode reports whether a pod has no node and is to get one.
func AwaitsNode(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && !podutil.IsPodTerminal(pod)
}

// ready reports the Ready condition. A simulated kubelet may leave it out; then a pod is ready whose containers neither wait nor have
// ended badly.
func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.State.Waiting != nil || s.State.Terminated != nil && s.State.Terminated.ExitCode != 0
	})
}

// Unreported reports whether a pod itself shows that its kubelet does not report any more: the node controller has taken its readiness back, and nothing but that. A kubelet
// takes that of the containers back, too; a readiness gate decides on that of the pod alone.
func Unreported(pod *corev1.Pod) bool {
	_, ready := podutil.GetPodCondition(&pod.Status, corev1.PodReady)
	_, containers := podutil.GetPodCondition(&pod.Status, corev1.ContainersReady)
	return pod.Status.Phase == corev1.PodRunning && len(pod.Spec.ReadinessGates) == 0 &&
		ready != nil && ready.Status == corev1.ConditionFalse && containers != nil && containers.Status == corev1.ConditionTrue
}

// StuckAfter is how long past the end of its grace period a pod may be before it counts as stuck.
const StuckAfter = 2 * time.Minute

// Overdue reports whether a pod that is being deleted is long past its grace period. The API's deletionTimestamp is the end of that.
func Overdue(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && now.Sub(pod.DeletionTimestamp.Time) > StuckAfter
}

// loopRestarts is how often a container has restarted before it counts as one that does so again and again; loopLife is how long one runs that is in no
// crash loop: a kubelet starts it at once after that, as if for the first time.
const (
	loopRestarts = 3
	loopLife     = 10 * time.Minute
)

// CrashLoops reports whether a container that runs at the moment is in a crash loop: it has restarted several times, its last run was short, and this one has not been
// longer.
func CrashLoops(s corev1.ContainerStatus, now time.Time) bool {
	last := s.LastTerminationState.Terminated
	if s.State.Running == nil || s.RestartCount < loopRestarts || last == nil || last.StartedAt.IsZero() {
		return false
	}
	life := last.FinishedAt.Sub(last.StartedAt.Time)
	return life < loopLife && now.Sub(s.State.Running.StartedAt.Time) <= life
}

// DemoteCrashLoops has members start that run, of which a container is in a crash loop: it is up between two crashes.
func DemoteCrashLoops(members []Member, now time.Time) {
	for i, m := range members {
		if m.State == Running && slices.ContainsFunc(m.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return CrashLoops(s, now) }) {
			members[i].State = Starting
		}
	}
}

// StateOf is how a gang is. A job's own condition Running=True is not enough for Running: operators set it as soon as one worker
// runs. Members of a gang get their nodes together, but not in the same instant: a gang of which some run is Degraded only if
// something stands in the way of the others.
func StateOf(g *Gang, now time.Time) State {
	switch {
	case g.End != nil && g.End.Failed:
		return Failed
	case g.End != nil:
		return Succeeded
	case g.Suspended:
		return Suspended
	case g.Whole() && g.Total() > 0:
		return stateOfAll(g, now)
	case g.Elsewhere() && g.Up():
		return Running
	case g.Elsewhere() && g.ReportedUp > 0:
		return Starting
	}
	total := g.Total()
	running, alive, bound := g.Count(Running), g.Count(Running, Succeeded), g.Count(Starting, Running)
	troubled := g.Count(Failed, Terminating, Lost) > 0
	switch {
	case bound > 0 && g.LacksForGood() > 0:
		return Degraded
	case total > 0 && alive == total:
		return Running
	case g.Min < total && alive >= g.Min && running > 0 && !troubled:
		return Running // an elastic gang above its minimum
	case bound == 0 && !troubled:
		return Pending
	case troubled || g.crashing(now) || alive > 0 && g.stuck(now):
		return Degraded
	}
	return Starting
}

// crashing reports whether a member has run before and is waiting to be started again, or is up between two crashes.
func (g *Gang) crashing(now time.Time) bool {
	return slices.ContainsFunc(g.Members, func(m Member) bool {
		return m.State == Starting && slices.ContainsFunc(m.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.RestartCount > 0 && s.State.Running == nil || CrashLoops(s, now)
		})
	})
}

// bindingGrace is how long a pod may be without a node before it counts as left behind by members of its gang that run. A gang of a
// thousand members takes some seconds to be bound.
const bindingGrace = 10 * time.Second

// stuck reports whether a member has no pod, or one that a gate holds, that its scheduler has refused or that has waited for longer than
// members of a gang wait for each other.
func (g *Gang) stuck(now time.Time) bool {
	return len(g.Unlisted) > 0 || slices.ContainsFunc(g.Members, func(m Member) bool {
		switch m.State {
		case Missing, Gated:
			return true
		case Pending:
			created := m.Pod.CreationTimestamp.Time
			return Refusal(m.Pod) != nil || !created.IsZero() && now.Sub(created) > bindingGrace
		}
		return false
	})
}

// BindingError is the reason for which KAI could not give a pod the place that it found.
const BindingError = "BindingError"

// Refusal is the condition in which a scheduler reports that it has no place for a pod, or KAI that it could not bind it to the one that it found; nil without one.
func Refusal(pod *corev1.Pod) *corev1.PodCondition {
	for i, c := range pod.Status.Conditions {
		if (c.Type == corev1.PodScheduled || c.Type == "PodBound" && c.Reason == BindingError) && c.Status == corev1.ConditionFalse {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// Disruption is the condition by which who evicted or preempted a pod reports it; nil for a pod that was left alone.
func Disruption(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

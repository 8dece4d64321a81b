package tfjob

import (
	"cmp"
	"regexp"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// State is how a job or a member is, in users' words.
type State string

// The states of a job; all but Suspended and Degraded are also states of a member.
const (
	Pending   State = "Pending"   // no member has a node
	Starting  State = "Starting"  // members have nodes, but do not all run yet
	Running   State = "Running"   // the gang runs: all of its members, or the minimum it asked for
	Degraded  State = "Degraded"  // some members run while others cannot
	Succeeded State = "Succeeded" // ended well
	Failed    State = "Failed"    // ended badly
	Suspended State = "Suspended" // set aside by its owner or a queue
)

// Further states of a member.
const (
	Terminating State = "Terminating" // its pod is being deleted
	Missing     State = "Missing"     // it has no pod
)

// Summary is one job at a glance.
type Summary struct {
	State State
	// Ready members run; Bound ones have a node, run or have ended well; Total is how many the spec asks for.
	Ready, Bound, Total int
	// MinAvailable is how many members must start together; Total unless the job says otherwise.
	MinAvailable int
	// Dialect says how the gang is declared; empty if gangctl knows of no gang.
	Dialect gang.Dialect
	// Scheduler is the schedulerName of the members.
	Scheduler string
	// GPUs is what all members ask for together.
	GPUs int64
	// Reason says why the job does not run, in the words of whoever decided; empty if it does.
	Reason  string
	Members []Member
}

// Finished reports whether the job has come to its end.
func (s Summary) Finished() bool { return s.State == Succeeded || s.State == Failed }

// Summarize looks at a job and at pods, of which it picks those of the job. The job's own condition Running=True is not
// enough for the state Running: the operator sets it as soon as one worker runs.
func Summarize(job *kubeflowv1.TFJob, pods []*corev1.Pod) Summary {
	s := Summary{Members: Members(job, pods)}
	s.Total = len(s.Members)
	counts := map[State]int{}
	for _, m := range s.Members {
		counts[m.State]++
		s.GPUs += m.GPUs
		if m.Node() != "" || m.State == Succeeded {
			s.Bound++
		}
	}
	s.Ready = counts[Running]
	s.gang(job)
	s.judge(job, counts)
	return s
}

// gang reads how the job is to be scheduled from the template of its first role: operators and gangctl mark all alike.
func (s *Summary) gang(job *kubeflowv1.TFJob) {
	s.MinAvailable = s.Total
	s.Scheduler = corev1.DefaultSchedulerName
	if policy := job.Spec.RunPolicy.SchedulingPolicy; policy != nil && policy.MinAvailable != nil {
		s.MinAvailable = int(*policy.MinAvailable)
	}
	roles := sortedRoles(job)
	if len(roles) == 0 {
		return
	}
	template := &job.Spec.TFReplicaSpecs[roles[0]].Template
	s.Scheduler = cmp.Or(template.Spec.SchedulerName, s.Scheduler)
	if _, ok := schedulerplugins.NameOf(template); ok {
		s.Dialect = gang.SchedulerPlugins
	} else if _, ok := labels.NameOf(template); ok {
		s.Dialect = gang.Labels
		if n, err := labels.MinAvailable(template); err == nil {
			s.MinAvailable = int(n)
		}
	}
}

func (s *Summary) judge(job *kubeflowv1.TFJob, counts map[State]int) {
	if c := condition(job, kubeflowv1.JobFailed); c != nil {
		s.State, s.Reason = Failed, cmp.Or(c.Message, c.Reason)
		return
	}
	if condition(job, kubeflowv1.JobSucceeded) != nil {
		s.State = Succeeded
		return
	}
	if suspend := job.Spec.RunPolicy.Suspend; (suspend != nil && *suspend) || condition(job, kubeflowv1.JobSuspended) != nil {
		s.State, s.Reason = Suspended, "suspended"
		return
	}
	alive := counts[Running] + counts[Succeeded]
	troubled := counts[Failed] + counts[Terminating]
	switch {
	case s.Total > 0 && alive == s.Total:
		s.State = Running
		return
	case s.MinAvailable < s.Total && alive >= s.MinAvailable && troubled == 0:
		s.State = Running // an elastic gang above its minimum; the reason says what the others wait for
	case s.Bound == 0 && troubled == 0:
		s.State = Pending
	case s.Bound == s.Total && troubled == 0 && !s.crashing():
		s.State = Starting
	case troubled > 0 || s.crashing() || (alive > 0 && s.stuck()):
		s.State = Degraded
	default:
		s.State = Starting
	}
	s.Reason = s.firstReason(counts)
}

// crashing reports whether a member has run before and is waiting to be started again.
func (s *Summary) crashing() bool {
	for _, m := range s.Members {
		if m.State != Starting {
			continue
		}
		for _, c := range m.Pod.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				return true
			}
		}
	}
	return false
}

// stuck reports whether a member has no pod, or one that its scheduler has refused. One that no scheduler has looked at is
// on its way: members of a gang get their nodes together, but not in the same instant.
func (s *Summary) stuck() bool {
	for _, m := range s.Members {
		if m.State == Missing || (m.State == Pending && refusal(m.Pod) != nil) {
			return true
		}
	}
	return false
}

// firstReason is that of the member in the worst state, named unless the whole gang shares it.
func (s *Summary) firstReason(counts map[State]int) string {
	if s.Total == 0 {
		return "the job asks for no members"
	}
	if counts[Missing] == s.Total {
		return "no pods yet"
	}
	if s.Bound == 0 && counts[Pending] > 0 {
		return s.pendingReason()
	}
	for _, state := range []State{Failed, Terminating, Pending, Starting, Missing} {
		for _, m := range s.Members {
			if m.State == state && m.Reason != "" {
				return m.Name() + ": " + m.Reason
			}
		}
	}
	return ""
}

// pendingReason is what the scheduler says of a gang of which no member has a place. It says the same of all members, or of
// most that their gang cannot start, and of the one that did not fit what the nodes lack: that one is worth reading.
func (s *Summary) pendingReason() string {
	var first, telling *Member
	same := true
	for i := range s.Members {
		m := &s.Members[i]
		if m.State != Pending {
			continue
		}
		if first == nil {
			first = m
		}
		same = same && m.Reason == first.Reason
		if telling == nil && nodesLack.MatchString(m.Reason) {
			telling = m
		}
	}
	switch {
	case same:
		return first.Reason
	case telling != nil:
		return telling.Name() + ": " + telling.Reason
	}
	return first.Name() + ": " + first.Reason
}

// nodesLack is how kube-scheduler, and every scheduler built on its framework, starts to count what each node lacks.
var nodesLack = regexp.MustCompile(`^\d+/\d+ nodes are available`)

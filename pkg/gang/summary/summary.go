// Package summary says, in users' words, how a job of any kind and its members are. It is pure.
package summary

import (
	"cmp"
	"regexp"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
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
	// Group is the name of the gang in that dialect.
	Group string
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

// Of looks at a job, read by the reader of its kind, and at pods, of which it picks those of the job. A job's own condition
// Running=True is not enough for the state Running: operators set it as soon as one worker runs.
func Of(r gang.JobReader, job gang.Job, pods []*corev1.Pod) Summary {
	s := Summary{Members: Members(r, job, pods)}
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
func (s *Summary) gang(job gang.Job) {
	s.MinAvailable = s.Total
	s.Scheduler = corev1.DefaultSchedulerName
	if job.MinMember != nil {
		s.MinAvailable = int(*job.MinMember)
	}
	if len(job.Roles) == 0 {
		return
	}
	template := &job.Roles[0].Template
	s.Scheduler = cmp.Or(template.Spec.SchedulerName, s.Scheduler)
	s.Dialect, s.Group = GangOf(job)
	if s.Dialect == gang.Labels {
		if n, err := labels.MinAvailable(template); err == nil {
			s.MinAvailable = int(n)
		}
	}
}

// GangOf is the gang that the members of a job are in, and the dialect that says so; both are empty if none does. Where several
// dialects read the same marks, it is the one that the job's scheduler reads, or else the one that has no other.
func GangOf(job gang.Job) (d gang.Dialect, name string) {
	if len(job.Roles) == 0 {
		return "", ""
	}
	template := job.Roles[0].Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	best := -2
	for _, r := range dialect.Readers() {
		group, ok := r.GroupOf(pod)
		affinity := dialect.Affinity(r, pod.Spec.SchedulerName)
		if ok && (affinity > best || affinity == best && r.Dialect == gang.Labels) {
			d, name, best = r.Dialect, group, affinity
		}
	}
	return d, name
}

func (s *Summary) judge(job gang.Job, counts map[State]int) {
	switch {
	case job.End != nil && job.End.Failed:
		s.State, s.Reason = Failed, cmp.Or(job.End.Message, job.End.Reason)
		return
	case job.End != nil:
		s.State = Succeeded
		return
	case job.Suspended:
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

// nodesLack is how kube-scheduler, and every scheduler built on its framework, starts to count what each node lacks, and how the gang
// scheduler starts to say it of all members.
var nodesLack = regexp.MustCompile(`^(\d+/\d+ nodes are available|\d+ of the \d+ members that its gang needs|its gang has the )`)

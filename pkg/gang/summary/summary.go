// Package summary is a gang at a glance, as commands show it: how it is, how many of its members run, and why the others do not, in
// the message of the component that decided, less what reads like a credential. It is pure.
package summary

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/gang/unplaced"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
	"github.com/gangctl/gangctl/pkg/submit/redact"
)

// Summary is one job at a glance.
type Summary struct {
	State gang.State
	// Ready members run; Bound ones have a node, run or have ended well; Total is how many the spec requests.
	Ready, Bound, Total int
	// MinAvailable is how many members must start together; Total unless the job has a minimum.
	MinAvailable int
	// Replicas is how many gangs a job of several has, and RunningReplicas how many of them run; 0 for a job of one gang. MinAvailable is that
	// of each.
	Replicas, RunningReplicas int
	// Roles are the gangs of a job of which each role is one, in the order in which they start; nil for all others. MinAvailable is that of
	// all of them then.
	Roles []Role
	// Dialect is how the gang is declared; empty if gangctl knows of no gang.
	Dialect gang.Dialect
	// Group is the name of the gang in that dialect.
	Group string
	// Scheduler is the schedulerName of the members.
	Scheduler string
	// GPUs is what all members request together.
	GPUs int64
	// Reason is why the job does not run, in the message of the component that decided; empty if it does.
	Reason string
	// Rows are the members that are listed.
	Rows []Row
}

// Role is a role that is a gang by itself.
type Role struct {
	Name string
	// MinAvailable is how many of Total members must start together.
	MinAvailable, Total int
}

// Finished reports whether the job has come to its end.
func (s Summary) Finished() bool { return s.State == gang.Succeeded || s.State == gang.Failed }

// Row is one member at a glance.
type Row struct {
	gang.Member
	// GPUs is what the member requests.
	GPUs int64
	// Reason is why the member does not run; empty if it does.
	Reason string
	// Main is the container that does the work.
	Main string
}

// Rows are the members of a job with pods, of which it picks those of the job. Their roles are in lower case, as pods' names and labels have
// them.
func Rows(job *gang.Job, pods []*corev1.Pod) []Row {
	return rows(gangOf(job, pods, time.Time{}), time.Time{})
}

func rows(g *gang.Gang, now time.Time) []Row {
	all := make([]Row, 0, len(g.Members))
	byRole := map[string]Row{} // the members of a role request the same
	for _, m := range g.Members {
		r, known := byRole[m.Role]
		if !known {
			if role := g.RoleByName(m.Role); role != nil {
				r.GPUs, r.Main = request.GPUs(request.OfTemplate(role.Template.Spec)), role.Main
			}
			byRole[m.Role] = r
		}
		r.Member, r.Reason = m, redact.Text(reasonOf(m, now))
		r.Role = strings.ToLower(m.Role)
		all = append(all, r)
	}
	return all
}

// Of is the summary of a job with pods, of which it picks those of the job.
func Of(job *gang.Job, pods []*corev1.Pod, now time.Time) Summary {
	g := gangOf(job, pods, now)
	s := Summary{
		State: gang.StateOf(g, now), Rows: rows(g, now), Ready: int(g.Count(gang.Running)), Total: int(g.Total()), MinAvailable: int(g.Min),
		Dialect: g.Named.Dialect, Group: g.Named.Name, Scheduler: schedulerOf(job),
	}
	if job.Deleted() && !s.Finished() {
		s.State = gang.Terminating
	}
	if g.Whole() {
		running, all := g.Replicas()
		s.RunningReplicas, s.Replicas = int(running), int(all)
		for _, one := range g.Each {
			s.Dialect, s.Group = one.Named.Dialect, ""
			if job.Division == gang.ByRole {
				s.Roles = append(s.Roles, Role{one.Portion(), int(one.Min), int(one.Total())})
				continue
			}
			s.MinAvailable = int(one.Min)
		}
	}
	for _, role := range job.Roles {
		s.GPUs = request.Sum(s.GPUs, request.Times(request.GPUs(request.OfTemplate(role.Template.Spec)), g.Unlisted[role.Name]))
	}
	for _, r := range s.Rows {
		s.GPUs = request.Sum(s.GPUs, r.GPUs)
		if r.Node() != "" || r.State == gang.Succeeded {
			s.Bound++
		}
	}
	s.Reason = redact.Text(s.reason(job))
	return s
}

// gangOf is the gang of a job as far as the job and its pods declare it: group objects are not read. Which members are in a crash loop while they are up is known at a time only:
// none is where that is zero.
func gangOf(job *gang.Job, pods []*corev1.Pod, now time.Time) *gang.Gang {
	var own []*corev1.Pod
	for _, pod := range pods {
		if job.Owns(pod) {
			own = append(own, pod)
		}
	}
	members, unlisted := gang.Assemble(job, own, nil)
	if !now.IsZero() {
		gang.DemoteCrashLoops(members, now)
	}
	return gang.New(job, members, unlisted, declared, nil)
}

// declared is the declaration of its gang in the template of a job: operators and gangctl label and annotate the pods of all roles alike.
func declared(job *gang.Job, _ []gang.Member) gang.Declared {
	key, ok := dialect.OfTemplate(job)
	if !ok {
		return gang.Declared{}
	}
	d := gang.Declared{Named: key}
	if declaration, ok := dialect.DeclaredByTemplate(job, key); ok {
		d.Decl = &declaration
	}
	return d
}

// schedulerOf is the schedulerName in the template of the first role.
func schedulerOf(job *gang.Job) string {
	if len(job.Roles) == 0 {
		return corev1.DefaultSchedulerName
	}
	return cmp.Or(job.Roles[0].Template.Spec.SchedulerName, corev1.DefaultSchedulerName)
}

// reason is why a job does not run; empty if it does.
func (s *Summary) reason(job *gang.Job) string {
	switch {
	case job.End != nil && job.End.Failed:
		return cmp.Or(job.End.Message, job.End.Reason)
	case job.End != nil:
		return ""
	case s.State == gang.Terminating:
		return gang.Deletion(job.Meta.Finalizers)
	case s.State == gang.Suspended && job.Meta.Annotations[provenance.ResizeAnnotation] != "":
		return fmt.Sprintf("in the middle of a resize: complete it with gangctl resize %s -n %s", job.Reader.Argument(job.Meta.Name), job.Meta.Namespace)
	case s.State == gang.Suspended:
		if queue, ok := kueue.QueueOf(&job.Meta); ok {
			return fmt.Sprintf("suspended by Kueue, queue %s", queue)
		}
		return "suspended"
	case s.State == gang.Running && s.alive() == s.Total:
		return ""
	case s.State == gang.Degraded && s.alive() == s.Total && len(job.FailedIndexes) > 0:
		return fmt.Sprintf("of its indexes %s failed for good", job.FailedIndexes)
	}
	if s.RunningReplicas > 0 {
		return fmt.Sprintf("%d/%d %ss run; %s", s.RunningReplicas, s.Replicas, job.PortionNoun(), s.firstReason())
	}
	return s.firstReason()
}

// Brief is Reason for a line of which only the beginning may be seen: what gangs differ in comes first.
func (s *Summary) Brief() string {
	for _, r := range s.Rows {
		if before, ok := strings.CutSuffix(s.Reason, r.Reason); ok && r.Reason != "" {
			return before + unplaced.Brief(r.Reason)
		}
	}
	return s.Reason
}

// alive is how many members run or have succeeded.
func (s *Summary) alive() int { return s.count(gang.Running) + s.count(gang.Succeeded) }

func (s *Summary) count(state gang.State) int {
	n := 0
	for _, r := range s.Rows {
		if r.State == state {
			n++
		}
	}
	return n
}

// firstReason is that of the member in the worst state, named unless the whole gang shares it.
func (s *Summary) firstReason() string {
	if s.Total == 0 {
		return "the job requests no members"
	}
	if s.count(gang.Missing) == len(s.Rows) { // and so are those that are not listed
		return "no pods yet"
	}
	if s.Bound == 0 && s.count(gang.Pending)+s.count(gang.Gated) > 0 {
		return s.pendingReason()
	}
	for _, state := range []gang.State{gang.Failed, gang.Lost, gang.Terminating, gang.Pending, gang.Gated, gang.Starting, gang.Missing, gang.NotDue} {
		for _, m := range s.Rows {
			if m.State == state && m.Reason != "" {
				return m.Name() + ": " + m.Reason
			}
		}
	}
	return ""
}

// pendingReason is the scheduler's message on a gang of which no member has a place. Either all members have the same message, or most have
// one that their gang cannot start, while the one that did not fit has what the nodes lack: that one is worth reading.
func (s *Summary) pendingReason() string {
	var first, specific *Row
	same := true
	for i := range s.Rows {
		m := &s.Rows[i]
		if m.State != gang.Pending && m.State != gang.Gated {
			continue
		}
		if first == nil {
			first = m
		}
		same = same && m.Reason == first.Reason
		if specific == nil && nodesLack(m.Reason) {
			specific = m
		}
	}
	switch {
	case same:
		return first.Reason
	case specific != nil:
		return specific.Name() + ": " + specific.Reason
	}
	return first.Name() + ": " + first.Reason
}

// nodesLack reports whether a message counts what each node lacks, as those of kube-scheduler do and of every scheduler built on its framework, or is one of the
// gang scheduler, which counts it for all members.
func nodesLack(message string) bool {
	_, own := unplaced.Parse(message)
	return own || countsNodes.MatchString(message)
}

var countsNodes = regexp.MustCompile(`^\d+/\d+ nodes are available`)

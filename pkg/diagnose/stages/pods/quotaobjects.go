package pods

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/kubeflow"
	"github.com/gangctl/gangctl/pkg/gang/kind/mpijob"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/pkg/placement/quota"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

// The resources of objects, besides pods, that controllers create for members.
const (
	jobs     = "jobs.batch"
	services = "services"
)

// objects is what a quota that counts other objects than pods is charged for those that the gang lacks. What its controller creates is known of some kinds; of others by the refusal of
// one: then each member has one, as its claim, or all have one together, as their Service: then one is true. Those that there are go when the job is submitted again, or are used again.
func objects(c *stage.Context, q *corev1.ResourceQuota, key corev1.ResourceName, missing []absent) (want, own resource.Quantity, one bool) {
	counted := strings.TrimPrefix(string(key), "count/")
	refusals, was := refusal.ByQuota(c.View, c.Gang)
	refusals = slices.DeleteFunc(refusals, func(r refusal.Refusal) bool {
		_, charged := r.Requested()[key]
		return r.Object != q.Name || r.Resource() == "pods" || !charged
	})
	each := *resource.NewQuantity(1, resource.DecimalSI)
	if len(refusals) > 0 {
		counted, each = refusals[0].Resource(), refusals[0].Requested()[key]
	}
	if len(refusals) == 0 && (!creates(c, counted) || len(quota.Scopes(q)) > 0) {
		return submission(c, q, key), own, false
	}
	if len(refusals) > 0 && ofAll(was, refusals[0]) {
		if was.Made != nil && refusals[0].Resource() != services || len(was.ExistingPods()) > 0 { // it was made since
			return want, own, true
		}
		return each, own, true
	}
	var need, have int64
	for _, role := range c.Gang.Roles {
		need += objectsOf(role, counted, int64(c.Gang.CreatedOf(role.Name))+countOf(missing, role.Name))
	}
	if counted == jobs {
		have = ownJobs(c.View.Present(), was)
	} else {
		for _, role := range was.Roles {
			have += objectsOf(role, counted, int64(was.CreatedOf(role.Name)))
		}
		have -= without(was, refusals)
	}
	want, own = each.DeepCopy(), each
	want.Mul(need - have)
	own.Mul(have)
	return want, own, false
}

// Submitted returns the quotas as they are when a gang that is only assumed to be submitted has the objects, besides pods, that are made of it.
func Submitted(v *view.View, g *gang.Gang, quotas []*corev1.ResourceQuota) []*corev1.ResourceQuota {
	c := &stage.Context{Naming: stage.Naming{View: v}, Gang: g}
	needed, beyond := missing(c)
	all := slices.Concat(needed, beyond)
	quotas = slices.Clone(quotas)
	for i, q := range quotas {
		if q.Namespace != g.Meta.Namespace {
			continue
		}
		quotas[i] = q.DeepCopy()
		for key, used := range quotas[i].Status.Used {
			if pods := charged(q, key, all); !pods.IsZero() {
				continue
			}
			more, _, _ := objects(c, q, key, all)
			used.Add(more)
			quotas[i].Status.Used[key] = used
		}
	}
	return quotas
}

// ofAll reports whether the object that was refused is one for all members of a gang: what its job is run as, or what has the job's own name.
func ofAll(g *gang.Gang, r refusal.Refusal) bool {
	made, known := kinds.ByResource(schema.ParseGroupResource(r.Resource()))
	return known && made.GroupKind == g.Reader.Makes || r.Name() == g.Meta.Name
}

// countsJobs reports whether a quota counts jobs of a kind, which count until they are deleted, and makes the finding that it is used up one that no wait helps. Those that have ended are for
// the user to delete, and those of other users for these. Of some their controller deletes what has ended, in time.
func countsJobs(c *stage.Context, f *stage.Finding, q *corev1.ResourceQuota, key corev1.ResourceName, over resource.Quantity) bool {
	reader, known := kinds.ByResource(schema.ParseGroupResource(strings.TrimPrefix(string(key), "count/")))
	if !known {
		return false
	}
	all := countedOf(c, reader, q.Namespace)
	f.Detail("they count until they are deleted, those that have ended, too")
	if all.passing > 0 {
		f.Detail("%d of them %s deleted some time after %s end (ttlSecondsAfterFinished)", all.passing, phrase.Verb(int(all.passing), "is", "are"), phrase.Verb(int(all.passing), "its", "their"))
	}
	own := slices.DeleteFunc(slices.Clone(all.ended), func(e endedJob) bool { return anotherUser(c, e.job) != "" })
	if len(own) > 0 {
		f.Fix(deletion(c, enough(own, over), q, key))
	}
	switch {
	case over.CmpInt64(countedBy(own)) <= 0:
		f.As(answer.Blocked, answer.User)
	case over.CmpInt64(all.passing) > 0:
		f.As(answer.Blocked, answer.Admin)
	}
	if over.CmpInt64(countedBy(own)) > 0 && len(own) < len(all.ended) {
		f.Fix(deletion(c, enough(all.ended, over), q, key))
	}
	if len(all.ended) > 0 {
		f.Message += "; of these " + phrase.NamesOf(all.ended, func(e endedJob) string { return e.job.Meta.Name }) + phrase.Verb(len(all.ended), " has", " have") + " ended"
	}
	return true
}

// deletion is the fix that jobs which have ended are deleted, by their users: an administrator has others do that.
func deletion(c *stage.Context, ended []endedJob, q *corev1.ResourceQuota, key corev1.ResourceName) stage.Fix {
	var names, commands []string
	var owners []gang.Identity
	var jobs []*gang.Job
	for _, e := range ended {
		jobs, names, owners, commands = append(jobs, e.job), append(names, e.job.Meta.Name), append(owners, gang.IdentityOf(&e.job.Meta)), append(commands, command.Delete(e.job))
	}
	a := answer.Action{Kind: answer.Fix, By: answer.User, Text: "delete " + phrase.Names(names) + ", which " + phrase.Verb(len(names), "has", "have") + " ended", Cost: "what is left of " + phrase.Verb(len(names), "it", "them") + " is gone",
		Change: map[string]any{"jobs": names[:min(len(names), command.MaxObjects)]}, Command: command.ForEach(commands...)}
	byOwners(c, &a, jobs)
	return stage.Fix{
		Action: a,
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			used := q.Status.Used[key].DeepCopy()
			used.Sub(*resource.NewQuantity(countedBy(ended), resource.DecimalSI))
			return whatif.QuotaUsed(whatif.Gone(s, nil, owners...), q, key, used)
		},
	}
}

// byOwners makes of the deletion of what is left of some jobs one that an administrator sees to, if other users have submitted any of them: these decide on what is theirs.
func byOwners(c *stage.Context, a *answer.Action, jobs []*gang.Job) {
	var of []string
	for _, job := range jobs {
		if user := anotherUser(c, job); user != "" && !slices.Contains(of, user) {
			of = append(of, user)
		}
	}
	if len(of) > 0 {
		slices.Sort(of)
		a.By, a.How = answer.Admin, "agree on it with "+phrase.Names(of)+", who submitted some of it"
	}
}

// anotherUser is who has submitted a job, as it keeps that, if that is not who has submitted that of the gang; "" where nothing shows another.
func anotherUser(c *stage.Context, job *gang.Job) string {
	if user := job.Meta.Annotations[provenance.UserAnnotation]; user != c.Gang.Meta.Annotations[provenance.UserAnnotation] {
		return phrase.Shorten(user, maxUser)
	}
	return ""
}

// maxUser is how much of the name of a user is shown: who may write the job may write it.
const maxUser = 100

// creates reports whether the controller of a gang is known to create objects of a resource for its members, and it is known which of them there are: no snapshot has Services.
func creates(c *stage.Context, resource string) bool {
	switch c.Gang.Kind.GroupKind() {
	case jobset.Reader().GroupKind, trainjob.Reader().GroupKind:
		return resource == jobs
	case mpijob.Reader().GroupKind:
		return false
	default: // the Training Operator creates a Service for every member
		return c.Gang.Kind.Group == kubeflow.Group && resource == services && submitted(c)
	}
}

// submitted reports whether the job is only assumed to be submitted: there is nothing of it in what was read, whatever else is assumed on that.
func submitted(c *stage.Context) bool { return c.View.Present().Assumed }

// objectsOf is how many objects of a resource there are for so many members of a role: a Job for each part, and of others one for each member.
func objectsOf(role gang.Role, resource string, members int64) int64 {
	if resource != jobs {
		return members
	}
	size := int64(cmp.Or(role.PartSize, role.Replicas, 1))
	return (members + size - 1) / size
}

// submission is what a quota is charged for the objects that are only assumed to be submitted: the job, and what declares its gang, which its operator may make.
func submission(c *stage.Context, q *corev1.ResourceQuota, key corev1.ResourceName) (want resource.Quantity) {
	g := c.Gang
	if !submitted(c) || len(quota.Scopes(q)) > 0 {
		return want
	}
	made := gang.SchedulerPlugins
	switch component.OperatorScheduler(c.View, g) {
	case "":
		made = gang.None
	case string(gang.Volcano):
		made = gang.Volcano
	}
	counts := []string{schema.GroupResource{Group: g.Kind.Group, Resource: g.Reader.Resource}.String()}
	for _, r := range dialect.Readers() {
		for _, kind := range r.Kinds {
			with := g.Decl != nil && g.Decl.Kind.GroupKind() == kind.GroupKind && !g.Decl.Created.Before(c.View.Now)
			if with || (g.Decl == nil || g.Decl.Kind.Kind == "") && kind.Kind == "PodGroup" && r.Dialect == made {
				counts = append(counts, schema.GroupResource{Group: kind.Group, Resource: kind.Resource}.String())
			}
		}
	}
	if slices.Contains(counts, strings.TrimPrefix(string(key), "count/")) {
		return *resource.NewQuantity(1, resource.DecimalSI)
	}
	return want
}

// ownJobs is how many Jobs there are that make members of a gang.
func ownJobs(v *view.View, g *gang.Gang) (n int64) {
	for _, j := range v.Snap.Jobs {
		if j.Namespace == g.Meta.Namespace && j.UID != g.Meta.UID && v.Makes(g.Job, j) {
			n++
		}
	}
	return n
}

// without is how many members have a pod and lack another object, which has the pod's name: it was refused, for them or for one before them in their role.
func without(g *gang.Gang, refusals []refusal.Refusal) (n int64) {
	first := map[string]int{}
	for _, m := range g.Members {
		for _, r := range refusals {
			if least, known := first[m.Role]; m.Pod != nil && r.Name() == m.Pod.Name && (!known || m.Index < least) {
				first[m.Role] = m.Index
			}
		}
	}
	for _, m := range g.Members {
		if least, known := first[m.Role]; known && m.Pod != nil && m.Index >= least {
			n++
		}
	}
	return n
}

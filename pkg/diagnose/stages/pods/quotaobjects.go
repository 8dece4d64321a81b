package pods

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/kubeflow"
	"github.com/gangctl/gangctl/pkg/gang/kind/mpijob"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// The resources of objects, besides pods, that controllers create for members.
const (
	jobs     = "jobs.batch"
	services = "services"
)

// objects is what a quota that counts other objects than pods is charged for those that the gang lacks. What its controller creates is known of some kinds; of others by the refusal of
// one: then each member has one, as its claim. Those that there are go when the job is submitted again, or are used again.
func objects(c *stage.Context, q *corev1.ResourceQuota, key corev1.ResourceName, missing []absent) (want, own resource.Quantity) {
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
		return submission(c, q, key), own
	}
	var need, have int64
	for _, role := range c.Gang.Roles {
		need += objectsOf(role, counted, int64(c.CreatedOf(role.Name))+countOf(missing, role.Name))
	}
	if counted == jobs {
		have = ownJobs(c.View.Present(), was)
	} else {
		for _, role := range was.Roles {
			have += objectsOf(role, counted, createdOf(was, role.Name))
		}
		have -= without(was, refusals)
	}
	want, own = each.DeepCopy(), each
	want.Mul(need - have)
	own.Mul(have)
	return want, own
}

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

// createdOf is how many members of a role have a pod.
func createdOf(g *gang.Gang, role string) (n int64) {
	for _, m := range g.Members {
		if m.Role == role && m.Pod != nil {
			n++
		}
	}
	return n
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

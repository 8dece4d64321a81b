package queueing

import (
	"math"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// PodSets are what Kueue counts of a gang: its roles, with what they request of their queue at least, and the pod sets that its Workload has besides, such as the submitter of
// a RayJob. What Kueue counts of a request is in its configuration, which is not seen: it may leave resources out of account, or count others for them. Its Workloads show it.
func PodSets(v *view.View, g *gang.Gang) []cohort.PodSet {
	wl := v.Workload(g.Job)
	own := declared(v, wl)
	var all []cohort.PodSet
	roles := map[string]bool{}
	for _, role := range g.Roles {
		requests := request.Of(v.OfTemplate(g.Meta.Namespace, role.Template)) // Kueue counts what the job requests, and not what is injected into its pods
		c, ok := ofRole(own, role, len(g.Roles))
		if ok {
			roles[c.name] = true
		}
		if c.counted == nil {
			c = shownByOthers(v, g, wl, requests)
		}
		all = append(all, podSet(role.Name, role.Template.Spec, c.count(requests), leastAdmitted(g, role)))
	}
	if len(roles) < len(g.Roles) {
		return all // the Workload is divided in another way
	}
	for _, c := range own {
		if !roles[c.name] {
			all = append(all, podSet(c.name, c.spec, c.count(c.requests), c.pods))
		}
	}
	return all
}

// PodSetsOf are what Kueue counts of a Workload whose job is not known here.
func PodSetsOf(v *view.View, wl *unstructured.Unstructured) (all []cohort.PodSet) {
	for _, c := range declared(v, wl) {
		all = append(all, podSet(c.name, c.spec, c.count(c.requests), c.pods))
	}
	return all
}

// Counts reports whether Kueue counts a resource that a Workload requests, as it writes into its status.
func Counts(wl *unstructured.Unstructured, name corev1.ResourceName) bool {
	f := gang.Fields{Object: wl}
	return slices.ContainsFunc(f.List("status", "resourceRequests"), func(set map[string]any) bool {
		return request.Amount(name, f.Of(set).Resources("resources")[name]) > 0
	})
}

// podSet is so many pods, each of which is counted with some requests.
func podSet(name string, spec corev1.PodSpec, each corev1.ResourceList, count int32) cohort.PodSet {
	requests := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(count), resource.DecimalSI)}
	for name, q := range each {
		if name != corev1.ResourcePods {
			requests[name] = request.Quantity(name, request.Times(request.Amount(name, q), count))
		}
	}
	return cohort.PodSet{Name: name, Spec: spec, Requests: requests}
}

// leastAdmitted is how many members of a role Kueue admits at least: all, but for a Job of Kubernetes that it may admit in part, which is what such a Job
// declares its own minimum for.
func leastAdmitted(g *gang.Gang, role gang.Role) int32 {
	if g.Kind.Group == batchv1.GroupName && g.MinMember != nil {
		return min(*g.MinMember, role.Replicas)
	}
	return role.Replicas
}

// counting is a pod set of a Workload: what a pod of it requests, and what Kueue counts of that.
type counting struct {
	name string
	pods int32
	spec corev1.PodSpec
	// requests are those of one pod, counted what Kueue counts for it, in the unit of [request.Amount]; nil if nothing shows it.
	requests corev1.ResourceList
	counted  map[corev1.ResourceName]float64
}

// declared are the pod sets of a Workload, with what Kueue writes into its status: its count until it admits it, and then its use.
func declared(v *view.View, wl *unstructured.Unstructured) []counting {
	if wl == nil {
		return nil
	}
	f := gang.Fields{Object: wl}
	var all []counting
	for _, set := range f.List("spec", "podSets") {
		fields := f.Of(set)
		template := corev1.PodTemplateSpec{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields.Map("template"), &template); err != nil {
			continue // the API server would not have accepted it
		}
		c := counting{name: fields.String("name"), pods: fields.Int32("count"), spec: template.Spec, requests: request.Of(v.OfTemplate(wl.GetNamespace(), template))}
		c.read(&f, "resources", "status", "resourceRequests")
		c.read(&f, "resourceUsage", "status", "admission", "podSetAssignments")
		all = append(all, c)
	}
	return all
}

// read reads what Kueue counts for one pod of the set from a list of the Workload, in which a field has that of all pods.
func (c *counting) read(workload *gang.Fields, field string, list ...string) {
	for _, item := range workload.List(list...) {
		set, pods := workload.Of(item, list...), c.pods
		if n := set.Int32("count"); n > 0 { // it may be admitted in part
			pods = n
		}
		if set.String("name") != c.name || pods <= 0 {
			continue
		}
		c.counted = map[corev1.ResourceName]float64{}
		for name, q := range set.Resources(field) {
			c.counted[name] = float64(request.Amount(name, q)) / float64(pods)
		}
	}
}

// count is what Kueue counts for a pod that may request other amounts than those of the pod set: what is left out of account stays so, and what is counted for others grows with
// them.
func (c counting) count(requests corev1.ResourceList) corev1.ResourceList {
	if c.counted == nil {
		return requests
	}
	counted, growth := corev1.ResourceList{}, 0.0
	for name, q := range requests {
		n, before := float64(request.Amount(name, q)), float64(request.Amount(name, c.requests[name]))
		is, known := c.counted[name]
		switch {
		case before == 0 || known && is == before:
			counted[name] = q
		case known:
			counted[name] = request.Quantity(name, int64(math.Round(n*is/before)))
		}
		if before > 0 && (!known || request.IsDevice(name)) {
			growth = max(growth, n/before)
		}
	}
	for name, n := range c.counted {
		if request.Amount(name, c.requests[name]) == 0 {
			counted[name] = request.Quantity(name, int64(math.Round(n*growth)))
		}
	}
	return counted
}

// ofRole is the pod set of a role. Kueue names it like the role, or as it likes where there is one.
func ofRole(sets []counting, role gang.Role, roles int) (counting, bool) {
	for _, c := range sets {
		if strings.EqualFold(c.name, role.Name) || len(sets) == 1 && roles == 1 {
			return c, true
		}
	}
	return counting{}, false
}

// shownByOthers is what the Workloads that Kueue has admitted to the queue of a gang show of what it leaves out of account of some requests, and counts for it.
func shownByOthers(v *view.View, g *gang.Gang, wl *unstructured.Unstructured, requests corev1.ResourceList) counting {
	queue := clusterQueueOf(v, g, wl)
	for _, c := range view.Once(v, admittedTo(queue), func() []counting { return admittedSets(v, queue) }) {
		for name := range c.leftOut() {
			if request.Amount(name, requests[name]) > 0 {
				return c
			}
		}
	}
	return counting{}
}

// admittedTo is the key of the pod sets of the Workloads that are admitted to a ClusterQueue.
type admittedTo string

// admittedSets are the pod sets of the Workloads that are admitted to a queue and of which Kueue leaves something out of account. The amounts of what it counts are no matter of its
// configuration.
func admittedSets(v *view.View, queue string) (all []counting) {
	for _, u := range QuotaTree(v).Admitted(queue) {
		for _, c := range declared(v, u) {
			if c.counted == nil || len(c.leftOut()) == 0 {
				continue
			}
			for name := range c.counted {
				if n := request.Amount(name, c.requests[name]); n > 0 {
					c.counted[name] = float64(n)
				}
			}
			all = append(all, c)
		}
	}
	return all
}

// leftOut are the resources that a pod set requests and that Kueue leaves out of account.
func (c counting) leftOut() map[corev1.ResourceName]bool {
	names := map[corev1.ResourceName]bool{}
	for name, q := range c.requests {
		if _, counted := c.counted[name]; !counted && request.Amount(name, q) > 0 && name != corev1.ResourcePods {
			names[name] = true
		}
	}
	return names
}

// clusterQueueOf is the ClusterQueue in which a gang waits; "" if that is not known.
func clusterQueueOf(v *view.View, g *gang.Gang, wl *unstructured.Unstructured) string {
	local := Object(v, "LocalQueue", g.Meta.Namespace, LocalQueue(v, g, wl))
	if local == nil {
		return ""
	}
	f := gang.Fields{Object: local}
	return f.String("spec", "clusterQueue")
}

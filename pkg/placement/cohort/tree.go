// Package cohort does the arithmetic of Kueue's quotas: what a ClusterQueue may use of a flavor, given what it lends to and
// borrows from the other queues of its cohort, and of the cohorts above that; and which flavors a pod may use.
package cohort

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// flavorResource is one resource in one flavor.
type flavorResource struct {
	flavor string
	name   corev1.ResourceName
}

// resourceQuota is the quota of a queue or a cohort. Amounts are in the unit of [request.Amount].
type resourceQuota struct {
	nominal int64
	// The limits are nil without one.
	borrowingLimit, lendingLimit *int64
}

// node is a queue or a cohort.
type node struct {
	name     string
	parent   *node
	children []*node
	quotas   map[flavorResource]resourceQuota
	// cohort is true for a cohort, and circular for one that would be below itself: it has no parent here, and Kueue uses no queue below it.
	cohort, circular bool
	// usage is that of the Workloads that were admitted to a queue, which are admitted; of a cohort it is what its children use beyond what they keep for themselves.
	usage    map[flavorResource]int64
	admitted []*unstructured.Unstructured

	whole map[flavorResource]wholeQuota
	known []candidate // of admitted
}

// Tree is the quotas of queues and cohorts, and their usage.
type Tree struct {
	queues  map[string]*unstructured.Unstructured
	nodes   map[string]*node // of queues
	cohorts map[string]*node
	flavors map[string]flavorSpec
}

// Objects are Kueue's objects.
type Objects struct {
	Queues, Cohorts, Workloads, Flavors []*unstructured.Unstructured
}

// New builds the tree.
func New(o Objects) *Tree {
	t := &Tree{queues: map[string]*unstructured.Unstructured{}, nodes: map[string]*node{}, cohorts: map[string]*node{}, flavors: map[string]flavorSpec{}}
	for _, u := range o.Flavors {
		t.flavors[u.GetName()] = specOf(u)
	}
	for _, u := range o.Cohorts {
		t.cohort(u.GetName()).quotas = quotasOf(u)
	}
	for _, u := range o.Cohorts {
		f := gang.Fields{Object: u}
		t.join(t.cohort(u.GetName()), cmp.Or(f.String("spec", "parentName"), f.String("spec", "parent")))
	}
	for _, u := range o.Queues {
		n := &node{name: u.GetName(), quotas: quotasOf(u), usage: map[flavorResource]int64{}}
		t.queues[u.GetName()], t.nodes[u.GetName()] = u, n
		t.join(n, Of(u))
	}
	for _, u := range o.Workloads {
		if n := t.nodes[AdmittedTo(u)]; n != nil {
			n.admitted = append(n.admitted, u)
			for at, amount := range usageOf(u) {
				n.use(at, amount)
			}
		}
	}
	return t
}

// cohort is the node of a cohort. One that is only named by queues has no quota of its own.
func (t *Tree) cohort(name string) *node {
	if t.cohorts[name] == nil {
		t.cohorts[name] = &node{cohort: true, usage: map[flavorResource]int64{}}
	}
	return t.cohorts[name]
}

func (t *Tree) join(n *node, cohort string) {
	if cohort == "" {
		return
	}
	parent := t.cohort(cohort)
	for p := parent; p != nil; p = p.parent {
		if p == n {
			n.circular = true
			return
		}
	}
	n.parent = parent
	parent.children = append(parent.children, n)
}

// Of is the cohort that a queue names; empty for none.
func Of(queue *unstructured.Unstructured) string {
	f := gang.Fields{Object: queue}
	return cmp.Or(f.String("spec", "cohortName"), f.String("spec", "cohort"))
}

// Lenders are the ClusterQueues that a queue may borrow from, itself included, by name.
func (t *Tree) Lenders(queue string) []string {
	n := t.nodes[queue]
	if n == nil {
		return nil
	}
	var names []string
	var add func(*node)
	add = func(other *node) {
		if !other.cohort {
			names = append(names, other.name)
		}
		for _, child := range other.children {
			add(child)
		}
	}
	add(top(n))
	slices.Sort(names)
	return names
}

// Admitted are the Workloads that use quota of a queue.
func (t *Tree) Admitted(queue string) []*unstructured.Unstructured {
	if n := t.nodes[queue]; n != nil {
		return n.admitted
	}
	return nil
}

// Total is the quota of a resource over all flavors of a queue, and how much its Workloads use: more than that, where it borrows.
type Total struct{ Nominal, Used int64 }

// Totals are those of a queue, by resource.
func (t *Tree) Totals(queue string) map[corev1.ResourceName]Total {
	totals := map[corev1.ResourceName]Total{}
	if n := t.nodes[queue]; n != nil {
		for at, q := range n.quotas {
			of := totals[at.name]
			totals[at.name] = Total{of.Nominal + q.nominal, of.Used + n.usage[at]}
		}
	}
	return totals
}

// top is the cohort above all others, or the queue itself.
func top(n *node) *node {
	for n.parent != nil {
		n = n.parent
	}
	return n
}

// quotasOf reads the quotas of a queue or cohort.
func quotasOf(u *unstructured.Unstructured) map[flavorResource]resourceQuota {
	quotas := map[flavorResource]resourceQuota{}
	each(u, func(at flavorResource, _ int, res map[string]any, _ []any) {
		q := resourceQuota{nominal: amount(at.name, res["nominalQuota"])}
		if limit, ok := res["borrowingLimit"]; ok {
			n := amount(at.name, limit)
			q.borrowingLimit = &n
		}
		if limit, ok := res["lendingLimit"]; ok {
			n := amount(at.name, limit)
			q.lendingLimit = &n
		}
		quotas[at] = q
	})
	return quotas
}

// each visits every resource of every flavor, with the number of its resource group and the path of its nominalQuota.
func each(u *unstructured.Unstructured, visit func(at flavorResource, group int, res map[string]any, path []any)) {
	f := gang.Fields{Object: u}
	for gi, group := range f.List("spec", "resourceGroups") {
		flavors, _ := group["flavors"].([]any)
		for fi, item := range flavors {
			flavor, _ := item.(map[string]any)
			resources, _ := flavor["resources"].([]any)
			for ri, r := range resources {
				if res, ok := r.(map[string]any); ok {
					visit(flavorResource{fmt.Sprint(flavor["name"]), corev1.ResourceName(fmt.Sprint(res["name"]))}, gi, res,
						[]any{"spec", "resourceGroups", gi, "flavors", fi, "resources", ri, "nominalQuota"})
				}
			}
		}
	}
}

func amount(name corev1.ResourceName, value any) int64 {
	q, err := resource.ParseQuantity(fmt.Sprint(value))
	if err != nil {
		return 0 // the API server would not have accepted it
	}
	return request.Amount(name, q)
}

// AdmittedTo is the ClusterQueue in which a Workload uses quota; "" if it uses none.
func AdmittedTo(workload *unstructured.Unstructured) string {
	if kueue.Finished(workload) {
		return ""
	}
	f := gang.Fields{Object: workload}
	return f.String("status", "admission", "clusterQueue")
}

// usageOf is what a Workload uses of each flavor. Of a pod set some pods of which have ended, and are not made again, Kueue takes back their part, once fewer are left
// than were admitted (totalRequestsFromAdmission).
func usageOf(workload *unstructured.Unstructured) map[flavorResource]int64 {
	f := gang.Fields{Object: workload}
	used := map[flavorResource]int64{}
	reclaimable, counts := podCounts(f.List("status", "reclaimablePods")), podCounts(f.List("spec", "podSets"))
	for _, set := range f.List("status", "admission", "podSetAssignments") {
		podSet := fmt.Sprint(set["name"])
		count := cmp.Or(countOf(set), counts[podSet]) // the spec has more where it was admitted in part
		left := min(count, max(0, cmp.Or(counts[podSet], count)-reclaimable[podSet]))
		flavors, _ := set["flavors"].(map[string]any)
		amounts, _ := set["resourceUsage"].(map[string]any)
		for name, flavor := range flavors {
			n := amount(corev1.ResourceName(name), amounts[name])
			if left < count {
				n = n / count * left
			}
			used[flavorResource{fmt.Sprint(flavor), corev1.ResourceName(name)}] += n
		}
	}
	return used
}

// podCounts are the counts of a list about pod sets, by name.
func podCounts(list []map[string]any) map[string]int64 {
	counts := map[string]int64{}
	for _, set := range list {
		counts[fmt.Sprint(set["name"])] = countOf(set)
	}
	return counts
}

func countOf(set map[string]any) int64 {
	f := gang.Fields{Object: &unstructured.Unstructured{Object: set}}
	return int64(f.Int32("count"))
}

// Admission is what Kueue writes into the status of a Workload that it admits to a queue; nil if there is not enough for it.
func (t *Tree) Admission(queue string, podSets ...PodSet) map[string]any {
	availability := t.Available(queue)
	flavors, short := availability.Assign(podSets...)
	if short != nil {
		return nil
	}
	var assignments []any
	for _, set := range podSets {
		of, amounts := map[string]any{}, map[string]any{}
		for _, q := range availability.quotas {
			if requested, ok := set.Requests[q.Name]; ok && slices.Contains(flavors[set.Name], q.Flavor) {
				of[string(q.Name)], amounts[string(q.Name)] = q.Flavor, requested.String()
			}
		}
		assignments = append(assignments, map[string]any{"name": strings.ToLower(set.Name), "flavors": of, "resourceUsage": amounts})
	}
	return map[string]any{"clusterQueue": queue, "podSetAssignments": assignments}
}

// Usage is the amount of a resource in a flavor that a Workload uses.
func Usage(workload *unstructured.Unstructured, flavor string, name corev1.ResourceName) int64 {
	return usageOf(workload)[flavorResource{flavor, name}]
}

package cohort

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// FlavorQuota is the quota of a ClusterQueue for one resource in one flavor. Amounts are in the unit of [request.Amount].
type FlavorQuota struct {
	Flavor string
	Name   corev1.ResourceName
	// Nominal is the queue's own quota and Used its usage. Available is what it may use now, Potential what it may use without
	// any usage in the cohort; both include what other queues lend.
	Nominal, Used, Available, Potential int64
	// Path is that of nominalQuota in the ClusterQueue.
	Path []any

	group int
	taken int64
}

// Availability is what a ClusterQueue may use of each flavor. Assigning from it does not change the tree.
type Availability struct {
	tree   *Tree
	quotas []FlavorQuota
}

// Available returns what a queue may use now.
func (t *Tree) Available(queue string) *Availability {
	return t.availability(queue, func(n *node, at flavorResource, q *FlavorQuota) {
		q.Available, q.Used = n.available(at), n.usage[at]
	})
}

// Potential returns what a queue may use without any usage in its cohort.
func (t *Tree) Potential(queue string) *Availability {
	return t.availability(queue, func(_ *node, _ flavorResource, q *FlavorQuota) { q.Available = q.Potential })
}

func (t *Tree) availability(queue string, fill func(*node, flavorResource, *FlavorQuota)) *Availability {
	a := &Availability{tree: t}
	n := t.nodes[queue]
	if n == nil {
		return a
	}
	each(t.queues[queue], func(at flavorResource, group int, _ map[string]any, path []any) {
		q := FlavorQuota{Flavor: at.flavor, Name: at.name, Nominal: n.quotas[at].nominal, Potential: n.potential(at), Path: path, group: group}
		fill(n, at, &q)
		a.quotas = append(a.quotas, q)
	})
	return a
}

// Clone returns what there is, to be assigned from without changing that.
func (a *Availability) Clone() *Availability {
	return &Availability{tree: a.tree, quotas: slices.Clone(a.quotas)}
}

// Of are the quotas of one resource, in the order in which Kueue tries their flavors.
func (a *Availability) Of(name corev1.ResourceName) (all []FlavorQuota) {
	for _, q := range a.quotas {
		if q.Name == name {
			all = append(all, q)
		}
	}
	return all
}

// PodSet is the members of one role, with their requests together.
type PodSet struct {
	Name     string
	Spec     corev1.PodSpec
	Requests corev1.ResourceList
}

// Shortage is why a pod set gets no flavor.
type Shortage struct {
	FlavorQuota
	PodSet string
	// Requested is what the gang requests of the flavor, with what earlier pod sets took and later ones find nowhere else.
	Requested int64
	// Never is true if the request exceeds Potential. Uncovered is true if the queue has no quota for the resource at all, Unsuited
	// if the pods may use none of the flavors.
	Never, Uncovered, Unsuited bool
}

// Assign takes the requests of every pod set, in order, as Kueue does: of each resource group the first flavor that has enough. It
// returns the flavors by pod set, or the first shortage. What there is no quota for counts as nothing: see Undeclared.
func (a *Availability) Assign(podSets ...PodSet) (map[string][]string, *Shortage) {
	flavors := map[string][]string{}
	for i, set := range podSets {
		for _, group := range a.groups() {
			flavor, short := a.take(set, group)
			if short != nil {
				for _, later := range podSets[i+1:] {
					short.Requested += a.bound(later, group, *short)
				}
				short.Never = short.Never || short.Requested > short.Potential
				return nil, short
			}
			if flavor != "" {
				flavors[set.Name] = append(flavors[set.Name], flavor)
			}
		}
	}
	return flavors, nil
}

// undeclared are the resources that a pod set requests and for which there is no quota.
func (a *Availability) undeclared(set PodSet) (all []Shortage) {
	for _, name := range slices.Sorted(maps.Keys(set.Requests)) {
		covered := slices.ContainsFunc(a.quotas, func(q FlavorQuota) bool { return q.Name == name })
		if n := request.Amount(name, set.Requests[name]); n > 0 && !covered && name != corev1.ResourcePods {
			all = append(all, Shortage{FlavorQuota: FlavorQuota{Name: name}, PodSet: set.Name, Requested: n, Never: true, Uncovered: true})
		}
	}
	return all
}

// Injected is what pods of a set may get in the flavors to which Kueue may admit them: of those that suit them, and have enough. Which it will be is not known, so that is the
// labels that all of these have, and the tolerations of each.
func (a *Availability) Injected(set PodSet) Injected {
	injected := Injected{NodeLabels: map[string]string{}}
	for _, group := range a.groups() {
		var common map[string]string
		flavors := a.requestedFlavors(set, group)
		keys := a.tree.keys(flavors)
		for _, flavor := range flavors {
			if !a.tree.suits(set.Spec, flavor, keys) || a.short(set, group, flavor) != nil {
				continue
			}
			of := a.tree.Injected(flavor)
			injected.Tolerations = append(injected.Tolerations, of.Tolerations...)
			if common == nil {
				common = of.NodeLabels
			}
			maps.DeleteFunc(common, func(key, value string) bool { return of.NodeLabels[key] != value })
		}
		maps.Copy(injected.NodeLabels, common)
	}
	return injected
}

// Undeclared are the resources that pod sets request and for which there is no quota, devices first, each with the first set that requests it. Kueue never
// admits such a Workload, unless it is configured to leave these resources out of account.
func (a *Availability) Undeclared(podSets ...PodSet) (all []Shortage) {
	for _, set := range podSets {
		for _, s := range a.undeclared(set) {
			seen := slices.ContainsFunc(all, func(other Shortage) bool { return other.Name == s.Name })
			if !seen {
				all = append(all, s)
			}
		}
	}
	slices.SortStableFunc(all, func(x, y Shortage) int {
		switch device := request.IsDevice(x.Name); {
		case device == request.IsDevice(y.Name):
			return 0
		case device:
			return -1
		}
		return 1
	})
	return all
}

// groups are the numbers of the resource groups.
func (a *Availability) groups() []int {
	var all []int
	for _, q := range a.quotas {
		if !slices.Contains(all, q.group) {
			all = append(all, q.group)
		}
	}
	return all
}

// take takes what a pod set requests of one resource group from its first flavor with enough, or returns the least bad shortage.
// The flavor is empty if the pod set requests nothing of the group.
func (a *Availability) take(set PodSet, group int) (string, *Shortage) {
	flavors := a.requestedFlavors(set, group)
	if len(flavors) == 0 {
		return "", nil
	}
	keys := a.tree.keys(flavors)
	var worst *Shortage
	for _, flavor := range flavors {
		if !a.tree.suits(set.Spec, flavor, keys) {
			continue
		}
		short := a.short(set, group, flavor)
		if short == nil {
			a.spend(set, group, flavor)
			return flavor, nil
		}
		if worst == nil || short.Potential > worst.Potential {
			worst = short
		}
	}
	if worst == nil {
		worst = &Shortage{FlavorQuota: FlavorQuota{Flavor: strings.Join(flavors, ", ")}, PodSet: set.Name, Never: true, Unsuited: true}
	}
	return "", worst
}

// bound is what a pod set requests of what is short, if no flavor but that one suits it.
func (a *Availability) bound(set PodSet, group int, short Shortage) int64 {
	flavors := a.requestedFlavors(set, group)
	keys := a.tree.keys(flavors)
	for _, flavor := range flavors {
		if suits := a.tree.suits(set.Spec, flavor, keys); suits != (flavor == short.Flavor) {
			return 0
		}
	}
	return request.Amount(short.Name, set.Requests[short.Name])
}

// requestedFlavors are the flavors of a resource group of which the pod set requests something.
func (a *Availability) requestedFlavors(set PodSet, group int) []string {
	var flavors []string
	requested := false
	for _, q := range a.quotas {
		if q.group != group {
			continue
		}
		requested = requested || request.Amount(q.Name, set.Requests[q.Name]) > 0
		if !slices.Contains(flavors, q.Flavor) {
			flavors = append(flavors, q.Flavor)
		}
	}
	if !requested {
		return nil
	}
	return flavors
}

func (a *Availability) spend(set PodSet, group int, flavor string) {
	for i := range a.quotas {
		if q := &a.quotas[i]; q.group == group && q.Flavor == flavor {
			n := request.Amount(q.Name, set.Requests[q.Name])
			q.Available -= n
			q.taken += n
		}
	}
}

// short is the shortage in one flavor: one that can never be met first, then that of a device.
func (a *Availability) short(set PodSet, group int, flavor string) *Shortage {
	var worst *Shortage
	for _, q := range a.quotas {
		n := request.Amount(q.Name, set.Requests[q.Name])
		if q.group != group || q.Flavor != flavor || n <= q.Available {
			continue
		}
		q.Available += q.taken // as it was before the gang took anything
		s := &Shortage{FlavorQuota: q, PodSet: set.Name, Requested: q.taken + n, Never: q.taken+n > q.Potential}
		if worst == nil || s.rank() > worst.rank() {
			worst = s
		}
	}
	return worst
}

func (s Shortage) rank() int {
	rank := 0
	if s.Never {
		rank += 2
	}
	if request.IsGPU(s.Name) {
		rank++
	}
	return rank
}

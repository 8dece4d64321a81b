package cohort

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Allowance is what a ClusterQueue has of one resource in one flavor. Amounts are in the unit of [placement.Amount].
type Allowance struct {
	Flavor string
	Name   corev1.ResourceName
	// Nominal is the queue's own; Most is what it may ever use, Left what it may use now, both with what others lend; Used is
	// what it uses.
	Nominal, Most, Left, Used int64
	// Path is that of nominalQuota in the ClusterQueue.
	Path []any

	group int
	taken int64
}

// Room is what a ClusterQueue has. Taking from it does not change the tree.
type Room struct {
	t     *Tree
	all   []Allowance
	empty bool
}

// Room is what a queue has now.
func (t *Tree) Room(queue string) *Room { return t.room(queue, false) }

// Empty is what a queue would have if nobody used anything.
func (t *Tree) Empty(queue string) *Room { return t.room(queue, true) }

func (t *Tree) room(queue string, empty bool) *Room {
	r := &Room{t: t, empty: empty}
	n := t.nodes[queue]
	if n == nil {
		return r
	}
	each(t.queues[queue], func(at cell, group int, _ map[string]any, path []any) {
		a := Allowance{Flavor: at.flavor, Name: at.name, Nominal: n.shares[at].nominal, Most: n.most(at, 0), Path: path, group: group}
		a.Left = a.Most
		if !empty {
			a.Left, a.Used = n.left(at, 0), n.used[at]
		}
		r.all = append(r.all, a)
	})
	return r
}

// Ask is what the members of one role ask for together.
type Ask struct {
	Role string
	Pod  corev1.PodSpec
	Need corev1.ResourceList
}

// Shortage is what keeps a role out.
type Shortage struct {
	Allowance
	Role string
	// Want is what the gang needs of it, with what earlier roles took.
	Want int64
	// Never is true if it is more than the queue may ever use of this flavor. Uncovered is true if the queue has no quota for the resource
	// at all, Unsuited if the pods may use none of the flavors.
	Never, Uncovered, Unsuited bool
}

// Assign takes what every role needs, in order, as Kueue does: of each resource group the first flavor that has enough. It
// returns the flavors by role, or the first shortage.
func (r *Room) Assign(asks ...Ask) (map[string][]string, *Shortage) {
	flavors := map[string][]string{}
	for _, ask := range asks {
		if short := r.uncovered(ask); short != nil {
			return nil, short
		}
		for _, group := range r.groups() {
			flavor, short := r.take(ask, group)
			if short != nil {
				return nil, short
			}
			if flavor != "" {
				flavors[ask.Role] = append(flavors[ask.Role], flavor)
			}
		}
	}
	return flavors, nil
}

// uncovered: a device for which the queue has no quota is one that Kueue never admits.
func (r *Room) uncovered(ask Ask) *Shortage {
	for _, name := range slices.Sorted(maps.Keys(ask.Need)) {
		covered := slices.ContainsFunc(r.all, func(a Allowance) bool { return a.Name == name })
		if want := placement.Amount(name, ask.Need[name]); want > 0 && !covered && strings.Contains(string(name), "/") {
			return &Shortage{Allowance: Allowance{Name: name}, Role: ask.Role, Want: want, Never: true, Uncovered: true}
		}
	}
	return nil
}

// groups are the numbers of the resource groups.
func (r *Room) groups() []int {
	var all []int
	for _, a := range r.all {
		if !slices.Contains(all, a.group) {
			all = append(all, a.group)
		}
	}
	return all
}

// take takes what a role needs of one resource group from its first flavor with enough, or returns the least bad shortage.
// The flavor is empty if the role needs nothing of the group.
func (r *Room) take(ask Ask, group int) (string, *Shortage) {
	var flavors []string
	needed := false
	for _, a := range r.all {
		if a.group != group {
			continue
		}
		needed = needed || placement.Amount(a.Name, ask.Need[a.Name]) > 0
		if !slices.Contains(flavors, a.Flavor) {
			flavors = append(flavors, a.Flavor)
		}
	}
	if !needed {
		return "", nil
	}
	keys := r.t.keys(flavors)
	var worst *Shortage
	for _, flavor := range flavors {
		if !r.t.suits(ask.Pod, flavor, keys) {
			continue
		}
		short := r.short(ask, group, flavor)
		if short == nil {
			r.spend(ask, group, flavor)
			return flavor, nil
		}
		if worst == nil || short.Most > worst.Most {
			worst = short
		}
	}
	if worst == nil {
		worst = &Shortage{Allowance: Allowance{Flavor: strings.Join(flavors, ", ")}, Role: ask.Role, Never: true, Unsuited: true}
	}
	return "", worst
}

func (r *Room) spend(ask Ask, group int, flavor string) {
	for i := range r.all {
		if a := &r.all[i]; a.group == group && a.Flavor == flavor {
			n := placement.Amount(a.Name, ask.Need[a.Name])
			a.Left -= n
			a.taken += n
		}
	}
}

// short is the shortage in one flavor: one that can never be met first, then that of a device.
func (r *Room) short(ask Ask, group int, flavor string) *Shortage {
	var worst *Shortage
	for _, a := range r.all {
		want := placement.Amount(a.Name, ask.Need[a.Name])
		if a.group != group || a.Flavor != flavor || want <= a.Left {
			continue
		}
		a.Left += a.taken // as it was before the gang took anything
		s := &Shortage{Allowance: a, Role: ask.Role, Want: a.taken + want, Never: a.taken+want > a.Most}
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

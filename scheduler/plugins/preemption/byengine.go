package preemption

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

const (
	// mostNodes is how many nodes are tried for a pod on its own, as by kube-scheduler.
	mostNodes = 100
	// mostLevels is how many priorities of victims are tried for a gang, the highest among them. Each takes the engine an attempt.
	mostLevels = 8
)

// pool is a set of candidates, all of which are evicted first and then spared one by one.
type pool struct {
	evicted set
	node    string // where a pod on its own is to go; empty for a gang
}

// chooseByEngine finds victims by the engine alone, for where a plugin of it has a rule that package placement does not know, and refuses the preemptor
// without the victims that are enough by the amounts: without all candidates up to a priority, then with as many of them, the most important first, as it accepts.
// assigned is nil if the engine accepts none, and unknown reports that there was too little time to find out who can be spared.
func (pl *Plugin) chooseByEngine(ctx context.Context, c cause, query Query, h occupants, budget time.Duration) (units []Unit, assigned map[string][]*corev1.Pod, unknown bool, err error) {
	limited, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	s := newSearch(limited, query, budget)
	try := func(e set, node string) (found map[string][]*corev1.Pod) {
		if err != nil || limited.Err() != nil {
			return nil
		}
		where := map[string][]*corev1.Pod{}
		if node != "" {
			where[node] = c.pods
		}
		found, err = pl.rehearse(ctx, c, slices.Concat(podsOf(s.chosen(e)), h.away()), where)
		if len(c.bound)+placed(found) < int(query.Gang.MinMember) {
			return nil
		}
		return found
	}
	for _, p := range s.pools(c) {
		if assigned = try(p.evicted, p.node); assigned == nil {
			continue
		}
		e := p.evicted
		if on := s.on(e, assigned); try(on, p.node) != nil {
			e = on // who is elsewhere is in nobody's way
		}
		e = s.spare(e, s.guardedFirst(), func(without set, _ Unit) bool { return try(without, p.node) != nil })
		assigned = try(e, p.node)
		return s.chosen(e), assigned, assigned == nil, err
	}
	return nil, nil, limited.Err() != nil, err
}

// pools are the candidates up to each priority for a gang, the lowest first, and for a pod on its own those of each node, the cheapest first.
func (s *search) pools(c cause) (pools []pool) {
	if claims.IsSingle(c.key) {
		return s.byNode()
	}
	levels := sets.New[int32]()
	for _, u := range s.units {
		levels.Insert(u.Priority)
	}
	sorted := sets.List(levels)
	if n := len(sorted); n > mostLevels {
		sorted = append(sorted[:mostLevels-1], sorted[n-1])
	}
	for _, level := range sorted {
		pools = append(pools, pool{evicted: s.everything(func(u Unit) bool { return u.Priority <= level })})
	}
	return pools
}

// byNode are the candidates of each node, the cheapest first.
func (s *search) byNode() (pools []pool) {
	nodes := map[string][]Unit{}
	for i, in := range s.everything(func(Unit) bool { return true }) {
		if !in {
			continue
		}
		for node := range nodesOf(s.units[i]) {
			nodes[node] = append(nodes[node], s.units[i])
		}
	}
	costs := map[string]Cost{}
	for node, units := range nodes {
		costs[node] = costOf(units, s.budgets)
	}
	names := slices.SortedFunc(maps.Keys(nodes), func(a, b string) int { return cmp.Or(costs[a].Compare(costs[b]), cmp.Compare(a, b)) })
	for _, node := range names[:min(len(names), mostNodes)] {
		pools = append(pools, pool{evicted: s.everything(func(u Unit) bool { return u.on(func(name string) bool { return name == node }) }), node: node})
	}
	return pools
}

// nodesOf are the nodes that have a pod of a unit.
func nodesOf(u Unit) sets.Set[string] {
	nodes := sets.New[string]()
	for _, pod := range u.Pods {
		nodes.Insert(pod.Spec.NodeName)
	}
	return nodes
}

// on are those of a set that have a pod on a node that members are assigned to.
func (s *search) on(e set, assigned map[string][]*corev1.Pod) set {
	on := slices.Clone(e)
	for i, u := range s.units {
		on[i] = e[i] && u.on(func(name string) bool { return assigned[name] != nil })
	}
	return on
}

// guardedFirst has those whom budgets guard before others, and of either the most important first.
func (s *search) guardedFirst() []int {
	order := s.byImportance()
	guarded := func(i int) bool { return s.budgets.violations([]Unit{s.units[i]}) > 0 }
	slices.SortStableFunc(order, func(i, j int) int {
		switch a, b := guarded(i), guarded(j); {
		case a == b:
			return 0
		case a:
			return -1
		default:
			return 1
		}
	})
	return order
}

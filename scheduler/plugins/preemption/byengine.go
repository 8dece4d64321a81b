package preemption

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

const (
	// mostNodes is how many nodes are tried for a pod on its own, as by kube-scheduler.
	mostNodes = 100
	// mostLevels is how many priorities of victims are tried for a gang, the highest among them. Each takes the engine an attempt.
	mostLevels = 8
	// restFactor is for how many times as long as the engine took for a namespace no victims are searched for it by the engine again: 5 % of the time.
	restFactor = 20
)

// engineSearch looks for victims by attempts of the engine, for where a plugin of it has a rule that package placement does not know, and refuses the
// preemptor without the victims that are enough by the amounts.
type engineSearch struct {
	*search
	single bool // the preemptor is a pod on its own
	// try returns where the engine has the preemptor without a set of candidates; nil if it refuses it, and without an attempt when the time is over.
	// A pod on its own is tried on one node.
	try func(evicted set, node string) (assigned map[string][]*corev1.Pod)
}

// pool is a set of candidates, all of which are evicted first and then spared one by one.
type pool struct {
	evicted set
	node    string // where a pod on its own is to go; empty for a gang
}

// chooseByEngine finds victims by the engine alone. The verdict is Impossible if it accepts none, and Unknown if there was too little time to try all, or to
// find out who can be spared, or if the namespace has had its share of time.
func (pl *Plugin) chooseByEngine(ctx, within context.Context, c cause, query Query, h occupants) (choice Choice, assigned map[string][]*corev1.Pod, verdict Verdict, err error) {
	p := pl.preemptor
	if p.rests(c) {
		return Choice{}, nil, Unknown, nil
	}
	start := p.clock.Now()
	defer func() { p.rest(c.key.Namespace, restFactor*p.clock.Since(start)) }()
	x := engineSearch{search: newSearch(within, query, pl.args.SearchBudget.Duration), single: claims.IsSingle(c.key)}
	x.try = func(evicted set, node string) (found map[string][]*corev1.Pod) {
		if err != nil || within.Err() != nil {
			return nil
		}
		where := map[string][]*corev1.Pod{}
		if x.single {
			where[node] = c.pods
		}
		found, err = pl.rehearse(ctx, c, slices.Concat(podsOf(x.chosen(evicted)), h.away()), where)
		if !c.placed(found, query) {
			return nil
		}
		return found
	}
	choice, assigned, verdict = x.choose()
	return choice, assigned, verdict, err
}

// choose tries the pools: for a pod on its own the cheapest choice of those that there is time for counts, and for a gang the first.
func (x *engineSearch) choose() (best Choice, assigned map[string][]*corev1.Pod, verdict Verdict) {
	verdict = Impossible
	for p := range x.pools() {
		found := x.try(p.evicted, p.node)
		if found == nil {
			continue
		}
		evicted, found, ok := x.spared(p, found)
		if !ok {
			break
		}
		choice := Choice{Units: x.chosen(evicted)}
		if choice.Cost = costOf(choice.Units, x.budgets); verdict != Found || choice.Cost.Compare(best.Cost) < 0 {
			best, assigned, verdict = choice, found, Found
		}
		if !x.single {
			break
		}
	}
	if verdict == Impossible && x.ctx.Err() != nil {
		verdict = Unknown
	}
	return best, assigned, verdict
}

// spared takes those out of a pool whom the engine does not need: who is elsewhere first, then each, whom budgets guard and the most important first. ok is
// false if the time was over before that was found out.
func (x *engineSearch) spared(p pool, found map[string][]*corev1.Pod) (evicted set, assigned map[string][]*corev1.Pod, ok bool) {
	evicted, assigned = p.evicted, found
	elsewhere := func() {
		if on := x.on(evicted, func(name string) bool { return assigned[name] != nil }); !slices.Equal(on, evicted) {
			if again := x.try(on, p.node); again != nil {
				evicted, assigned = on, again
			}
		}
	}
	elsewhere()
	spared := x.spare(evicted, x.guardedFirst(), func(without set, _ Unit) bool { return x.try(without, p.node) != nil })
	if again := x.try(spared, p.node); again != nil {
		evicted, assigned = spared, again
		elsewhere()
	}
	return evicted, assigned, x.ctx.Err() == nil
}

// pools are the candidates up to each priority for a gang, the lowest first, and for a pod on its own those of each node, the cheapest first; of either
// those that no budget guards before all.
func (x *engineSearch) pools() iter.Seq[pool] {
	guarded := x.guarded()
	accepts := []func(i int) bool{func(int) bool { return true }}
	if slices.Contains(guarded, true) {
		accepts = append([]func(i int) bool{func(i int) bool { return !guarded[i] }}, accepts...)
	}
	each := x.byLevel
	if x.single {
		each = x.byNode
	}
	return func(yield func(pool) bool) {
		for _, accept := range accepts {
			for p := range each(accept) {
				if x.ctx.Err() != nil || !yield(p) {
					return
				}
			}
		}
	}
}

// byLevel are the candidates up to each priority.
func (x *engineSearch) byLevel(accept func(i int) bool) iter.Seq[pool] {
	levels := sets.New[int32]()
	for _, u := range x.units {
		levels.Insert(u.Priority)
	}
	sorted := sets.List(levels)
	if n := len(sorted); n > mostLevels {
		sorted = append(sorted[:mostLevels-1], sorted[n-1])
	}
	return func(yield func(pool) bool) {
		for _, level := range sorted {
			if !yield(pool{evicted: x.those(func(i int) bool { return accept(i) && x.units[i].Priority <= level })}) {
				return
			}
		}
	}
}

// byNode are the candidates of each node.
func (x *engineSearch) byNode(accept func(i int) bool) iter.Seq[pool] {
	nodes := map[string][]Unit{}
	for i, in := range x.those(accept) {
		if !in {
			continue
		}
		for _, pod := range x.units[i].Pods {
			if of := nodes[pod.Spec.NodeName]; len(of) == 0 || of[len(of)-1].Pods[0] != x.units[i].Pods[0] {
				nodes[pod.Spec.NodeName] = append(of, x.units[i])
			}
		}
	}
	costs := map[string]Cost{}
	for node, units := range nodes {
		costs[node] = costOf(units, x.budgets)
	}
	names := slices.SortedFunc(maps.Keys(nodes), func(a, b string) int { return cmp.Or(costs[a].Compare(costs[b]), cmp.Compare(a, b)) })
	return func(yield func(pool) bool) {
		for _, node := range names[:min(len(names), mostNodes)] {
			here := func(name string) bool { return name == node }
			if !yield(pool{x.those(func(i int) bool { return accept(i) && x.units[i].on(here) }), node}) {
				return
			}
		}
	}
}

// guarded are the units whose eviction alone exceeds a budget.
func (x *engineSearch) guarded() []bool {
	guarded := make([]bool, len(x.units))
	for i, u := range x.units {
		guarded[i] = x.budgets.violations([]Unit{u}) > 0
	}
	return guarded
}

// guardedFirst has those whom budgets guard before others, and of either the most important first.
func (x *engineSearch) guardedFirst() []int {
	guarded := x.guarded()
	of := func(is bool) []int {
		return slices.DeleteFunc(x.byImportance(), func(i int) bool { return guarded[i] != is })
	}
	return append(of(true), of(false)...)
}

// rest is the time in which the engine is not tried for victims for a namespace, and the preemptors that wait for its end.
type rest struct {
	until   time.Time
	skipped map[types.NamespacedName][]*corev1.Pod
}

// rests reports whether the engine is not tried for victims for a namespace now; the preemptor is tried again when it is. While it is tried, nothing else
// is scheduled, and what that takes is for users to determine.
func (p *Preemptor) rests(c cause) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.resting[c.key.Namespace]
	if r == nil || !p.clock.Now().Before(r.until) {
		return false
	}
	r.skipped[c.key] = c.pods
	return true
}

// rest has the engine not tried for victims for a namespace for a while.
func (p *Preemptor) rest(namespace string, during time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resting[namespace] == nil {
		p.resting[namespace] = &rest{skipped: map[types.NamespacedName][]*corev1.Pod{}}
	}
	p.resting[namespace].until = p.clock.Now().Add(during)
}

// rested are the preemptors whose namespaces have rested. The lock must be held.
func (p *Preemptor) rested(now time.Time) map[types.NamespacedName][]*corev1.Pod {
	again := map[types.NamespacedName][]*corev1.Pod{}
	for namespace, r := range p.resting {
		if now.Before(r.until) {
			continue
		}
		maps.Copy(again, r.skipped)
		delete(p.resting, namespace)
	}
	return again
}

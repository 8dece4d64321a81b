package cohort

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// The values of the fields of a ClusterQueue about whom its Workloads preempt.
const (
	Never             = "Never"
	LowerPriority     = "LowerPriority"
	LowerOrNewerEqual = "LowerOrNewerEqualPriority"
	Any               = "Any"
)

// Policy is whom the Workloads of a ClusterQueue preempt: those of their own queue, and those that use its quota in other queues of its cohort.
type Policy struct {
	Within, Reclaim string
	// Borrows reports whether they preempt to borrow, too, and of whom: those with a priority of up to Threshold, if there is one.
	Borrows   bool
	Threshold *int64
}

// PolicyOf is the policy of a ClusterQueue.
func (t *Tree) PolicyOf(queue string) Policy {
	p := Policy{Within: Never, Reclaim: Never}
	u := t.queues[queue]
	if u == nil {
		return p
	}
	f := gang.Fields{Object: u}
	p.Within = cmp.Or(f.String("spec", "preemption", "withinClusterQueue"), Never)
	p.Reclaim = cmp.Or(f.String("spec", "preemption", "reclaimWithinCohort"), Never)
	borrow := f.Of(f.Map("spec", "preemption", "borrowWithinCohort"))
	p.Borrows = cmp.Or(borrow.String("policy"), Never) != Never
	if borrow.Has("maxPriorityThreshold") {
		threshold := int64(borrow.Int32("maxPriorityThreshold"))
		p.Threshold = &threshold
	}
	return p
}

// Preemptor is a Workload, or a job that will have one, for which a ClusterQueue may make room.
type Preemptor struct {
	Queue    string
	Priority int64
	// Since is from when its place in the queue counts; zero for one that is still to come.
	Since time.Time
	// Policy is that of its queue, or another one that is tried.
	Policy Policy
}

// Victim is a Workload that is preempted.
type Victim struct {
	Workload *unstructured.Unstructured
	// Queue is where it was admitted, and Rule the field of the preemptor's queue by which it may be preempted, with its value.
	Queue, Rule string
}

// maxCandidates is how many Workloads are tried as victims.
const maxCandidates = 100

// SharesFairly reports whether Kueue shares fairly between a queue and those that lend to it: only then it writes their shares into their status.
func (t *Tree) SharesFairly(queue string) bool {
	return slices.ContainsFunc(t.Lenders(queue), func(name string) bool {
		f := gang.Fields{Object: t.queues[name]}
		return f.Map("status", "fairSharing") != nil
	})
}

// fungibility is how a queue chooses between flavors that all need others to be preempted: it takes the first, or tries each and prefers one of which nothing of its own is
// preempted. known is false for one that is to weigh that against borrowing.
func (t *Tree) fungibility(queue string) (first, known bool) {
	f := gang.Fields{Object: t.queues[queue]}
	of := f.Of(f.Map("spec", "flavorFungibility"))
	preempt, borrow := of.String("whenCanPreempt"), of.String("whenCanBorrow")
	return preempt == "Preempt" || preempt == "MayStopSearch", borrow != "TryNextFlavor" && !of.Has("preference")
}

// Victims are whom Kueue preempts so that some pod sets get quota, by its rules without fair sharing; none if that makes no room, and where none is needed. What is
// preempted where topology is short of room is another matter. complete is false where it was not found out: of too many candidates, of a queue that weighs flavors by borrowing,
// and of one whose cohorts go round in a circle.
func (t *Tree) Victims(p Preemptor, podSets ...PodSet) (victims []Victim, complete bool) {
	n := t.nodes[p.Queue]
	first, known := t.fungibility(p.Queue)
	if n == nil || top(n).circular || !known {
		return nil, false
	}
	s := &preemption{tree: t, Preemptor: p, node: n, requests: map[flavorResource]int64{}, contested: map[flavorResource]bool{}}
	now, potential := t.Available(p.Queue), t.Potential(p.Queue)
	for _, set := range podSets {
		for _, group := range now.groups() {
			flavors := now.requestedFlavors(set, group)
			if len(flavors) == 0 {
				continue
			}
			keys := t.keys(flavors)
			flavors = slices.DeleteFunc(flavors, func(flavor string) bool {
				return !t.suits(set.Spec, flavor, keys) || potential.short(set, group, flavor) != nil
			})
			chosen, complete := slices.IndexFunc(flavors, func(flavor string) bool { return now.short(set, group, flavor) == nil }), true
			fits := chosen >= 0
			if !fits {
				chosen, complete = s.choose(now, set, group, flavors, first)
			}
			if chosen < 0 || !complete {
				return nil, complete
			}
			now.spend(set, group, flavors[chosen])
			potential.spend(set, group, flavors[chosen])
			s.request(now, group, flavors[chosen])
			if !fits {
				s.contest(now, group, flavors[chosen])
			}
		}
	}
	if len(s.contested) == 0 {
		return nil, true
	}
	return s.victims()
}

// choose is which of some flavors a pod set gets by preemption; -1 if none. complete is false if that was not found out.
func (s *preemption) choose(now *Availability, set PodSet, group int, flavors []string, first bool) (chosen int, complete bool) {
	chosen, ofOthers := -1, false
	for i, flavor := range flavors {
		victims, complete := s.with(now, set, group, flavor)
		if !complete {
			return -1, false
		}
		if len(victims) == 0 {
			continue
		}
		reclaimed := !slices.ContainsFunc(victims, func(v Victim) bool { return v.Queue == s.Queue })
		if chosen < 0 || reclaimed && !ofOthers {
			chosen, ofOthers = i, reclaimed
		}
		if first {
			break
		}
	}
	return chosen, true
}

// preemption is one search for victims.
type preemption struct {
	Preemptor
	tree *Tree
	node *node
	// requests are what the preemptor requests of its flavors, and contested is what of them is short.
	requests  map[flavorResource]int64
	contested map[flavorResource]bool
}

// request takes what was spent of a flavor.
func (s *preemption) request(a *Availability, group int, flavor string) {
	for _, q := range a.quotas {
		if q.group == group && q.Flavor == flavor && q.taken > 0 {
			s.requests[flavorResource{flavor, q.Name}] = q.taken
		}
	}
}

// contest takes what of a flavor is short, after it was spent.
func (s *preemption) contest(a *Availability, group int, flavor string) {
	for _, q := range a.quotas {
		if q.group == group && q.Flavor == flavor && q.taken > 0 && q.Available < 0 {
			s.contested[flavorResource{flavor, q.Name}] = true
		}
	}
}

// with are the victims if a pod set gets one flavor.
func (s *preemption) with(now *Availability, set PodSet, group int, flavor string) (victims []Victim, complete bool) {
	a := now.Clone()
	a.spend(set, group, flavor)
	try := &preemption{tree: s.tree, Preemptor: s.Preemptor, node: s.node, requests: map[flavorResource]int64{}, contested: map[flavorResource]bool{}}
	try.request(a, group, flavor)
	try.contest(a, group, flavor)
	for at := range try.contested {
		if nominal := s.node.quotas[at].nominal; try.requests[at] > nominal && !s.node.reclaims(at, try.requests[at]) && !s.Policy.Borrows {
			return nil, true // it would borrow, and only those who have not to borrow preempt
		}
	}
	return try.victims()
}

// reclaims reports whether an amount has room in what a queue has a right to as part of a cohort that is not the whole tree.
func (n *node) reclaims(at flavorResource, amount int64) bool {
	for ; n != nil; n = n.parent {
		subtree, local := n.quota(at)
		used := n.usage[at]
		if used+amount <= subtree {
			return n.parent != nil
		}
		amount -= max(0, local-used)
	}
	return false
}

// candidate is a Workload that may be preempted.
type candidate struct {
	workload *unstructured.Unstructured
	node     *node
	usage    map[flavorResource]int64
	// below is the cohort that it has in common with the preemptor; nil for one of the same queue.
	below *node
	rule  string
	// lends is true for one that is preempted only for a preemptor that does not borrow.
	lends    bool
	evicted  bool
	priority int64
	// since is from when its place in the queue counts, and reserved when it got its quota.
	since, reserved time.Time
}

// candidates are the Workloads of a queue, with what counts of each.
func (n *node) candidates() []candidate {
	if n.known == nil && len(n.admitted) > 0 {
		for _, u := range n.admitted {
			c := candidate{workload: u, node: n, usage: usageOf(u), priority: kueue.PriorityOf(u), since: kueue.QueuedSince(u)}
			_, c.evicted = kueue.Eviction(u)
			if reserved, status := gang.ConditionIn(u, "QuotaReserved"); status == "True" {
				c.reserved = reserved.At
			}
			n.known = append(n.known, c)
		}
	}
	return n.known
}

// victims are whom Kueue preempts for the requests: it takes candidates until there is room, and spares those again without whom there is room, too.
func (s *preemption) victims() (victims []Victim, complete bool) {
	own := s.candidatesOf(s.node, nil, false)
	advantage, others := s.inCohorts()
	for _, list := range [][]candidate{own, advantage, others} {
		slices.SortStableFunc(list, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(a.priority, b.priority), b.reserved.Compare(a.reserved), cmp.Compare(a.workload.GetUID(), b.workload.GetUID()))
		})
	}
	var all, later []candidate
	for _, c := range slices.Concat(advantage, others, own) {
		if c.evicted {
			all = append(all, c)
		} else {
			later = append(later, c)
		}
	}
	all = append(all, later...)
	tried := all[:min(len(all), maxCandidates)]
	for _, borrows := range s.attempts(len(advantage), len(others)) {
		taken := s.attempt(tried, borrows)
		if len(taken) == 0 && len(tried) < len(all) {
			return nil, false // the other attempt is not the first that helps
		}
		if len(taken) > 0 {
			for _, c := range taken {
				victims = append(victims, Victim{Workload: c.workload, Queue: AdmittedTo(c.workload), Rule: c.rule})
			}
			return victims, true
		}
	}
	return nil, true
}

// attempts are whether the preemptor borrows, in the order in which that is tried.
func (s *preemption) attempts(advantage, others int) []bool {
	under := true
	for at := range s.contested {
		under = under && s.node.quotas[at].nominal > s.node.usage[at]
	}
	switch {
	case advantage+others == 0, !s.Policy.Borrows && !under:
		return []bool{true}
	case !s.Policy.Borrows && advantage == 0:
		return []bool{false, true}
	}
	return []bool{true, false}
}

// attempt takes candidates until there is room; nil if that is never.
func (s *preemption) attempt(all []candidate, borrows bool) []candidate {
	var taken []candidate
	defer func() { // whatever was tried, the tree stays as it is
		for _, c := range taken {
			c.move(1)
		}
	}()
	for _, c := range all {
		if !s.valid(c, borrows) {
			continue
		}
		c.move(-1)
		if taken = append(taken, c); !s.room(borrows) {
			continue
		}
		for i := len(taken) - 2; i >= 0; i-- {
			if taken[i].move(1); s.room(borrows) {
				taken = slices.Delete(taken, i, i+1)
			} else {
				taken[i].move(-1)
			}
		}
		return taken
	}
	return nil
}

// move adds what a candidate uses to its queue, or takes it away: sign is 1 or -1.
func (c candidate) move(sign int64) {
	for at, amount := range c.usage {
		c.node.use(at, sign*amount)
	}
}

// room reports whether the queue has enough for the requests.
func (s *preemption) room(borrows bool) bool {
	for at, amount := range s.requests {
		if !borrows && s.node.usage[at]+amount > s.node.quotas[at].nominal || amount > s.node.available(at) {
			return false
		}
	}
	return true
}

// valid reports whether a candidate may still be preempted, when others have been: its queue uses what is not its own.
func (s *preemption) valid(c candidate, borrows bool) bool {
	if c.below == nil {
		return true
	}
	if borrows && c.lends || s.within(c.node) {
		return false
	}
	for p := c.node.parent; p != nil && p != c.below; p = p.parent {
		if s.within(p) {
			return false
		}
	}
	return true
}

// within reports whether a queue or a cohort uses no more of what is contested than its own quota.
func (s *preemption) within(n *node) bool {
	for at := range s.contested {
		if subtree, _ := n.quota(at); n.usage[at] > subtree {
			return false
		}
	}
	return true
}

// inCohorts are the candidates of other queues: those that the preemptor preempts as the quota is that of a cohort nearer to it, and the others.
func (s *preemption) inCohorts() (advantage, others []candidate) {
	if s.node.parent == nil || s.Policy.Reclaim == Never {
		return nil, nil
	}
	has, left := s.node.holds(s.requests)
	var before *node
	for root := s.node.parent; root != nil; root = root.parent {
		found := s.below(root, root, before, has)
		if has {
			advantage = append(advantage, found...)
		} else {
			others = append(others, found...)
		}
		var holds bool
		holds, left = root.holds(left)
		has, before = has || holds, root
	}
	return advantage, others
}

// holds reports whether requests have room in the quota of a queue or cohort itself, and what of them the cohort above has to give.
func (n *node) holds(requests map[flavorResource]int64) (bool, map[flavorResource]int64) {
	fits, left := true, map[flavorResource]int64{}
	for at, amount := range requests {
		subtree, local := n.quota(at)
		used := n.usage[at]
		fits = fits && used+amount <= subtree
		left[at] = max(0, amount-max(0, local-used))
	}
	return fits, left
}

// below are the candidates of the queues of a cohort that use more than their quota, but for a part of it that has been looked at.
func (s *preemption) below(cohort, root, seen *node, advantage bool) (all []candidate) {
	for _, child := range cohort.children {
		switch {
		case child == seen, child == s.node, s.within(child):
		case child.cohort:
			all = append(all, s.below(child, root, seen, advantage)...)
		default:
			all = append(all, s.candidatesOf(child, root, advantage)...)
		}
	}
	return all
}

// candidatesOf are the Workloads of a queue that use something of what is contested, and that the policy gives up.
func (s *preemption) candidatesOf(n, root *node, advantage bool) (all []candidate) {
	policy, rule := s.Policy.Within, "withinClusterQueue "+s.Policy.Within
	if root != nil {
		policy, rule = s.Policy.Reclaim, "reclaimWithinCohort "+s.Policy.Reclaim
	}
	if policy == Never {
		return nil
	}
	for _, c := range n.candidates() {
		c.below, c.rule = root, rule
		if !s.satisfies(policy, c) || !s.uses(c.usage) {
			continue
		}
		if root != nil && !advantage {
			c.lends = !s.Policy.Borrows || c.priority >= s.Priority || s.Policy.Threshold != nil && c.priority > *s.Policy.Threshold
			if !c.lends {
				c.rule = "borrowWithinCohort " + LowerPriority
			}
		}
		all = append(all, c)
	}
	return all
}

// uses reports whether a usage has something of what is contested.
func (s *preemption) uses(usage map[flavorResource]int64) bool {
	for at := range s.contested {
		if usage[at] > 0 {
			return true
		}
	}
	return false
}

// satisfies reports whether a policy gives a Workload up to the preemptor.
func (s *preemption) satisfies(policy string, c candidate) bool {
	lower := s.Priority > c.priority
	switch policy {
	case LowerPriority:
		return lower
	case LowerOrNewerEqual:
		return lower || s.Priority == c.priority && !s.Since.IsZero() && s.Since.Before(c.since)
	}
	return policy == Any
}

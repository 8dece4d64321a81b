package placement

import (
	"encoding/binary"
	"encoding/json"
	"iter"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/third_party/forked/golang/btree"

	"github.com/gangctl/gangctl/pkg/gang"
)

// shape is the index for gangs that are alike: which nodes take their members, by kind, and in which order they are filled. A
// gang cannot use more candidates of a kind than it has members, and takes the first ones, so the others are skipped.
type shape struct {
	// task has the roles of the first such gang; of a single role without a limit on its members, unless they share a domain.
	task   *task
	spread [][]*spreadNodes // by role and rule
	keys   []*topology      // by the task's topology keys
	most   []int64          // what the gang requests, nil of a single role
	levels *levelIndex      // nil where members share no domain

	kinds    map[string]*kind
	at       []ranked // by node; a node that takes no member has no kind
	seen     int      // how many of the index' changes
	lastUsed uint64   // the version of the index when it was last used
}

// kind is nodes that take the same members, in the order in which they are filled.
type kind struct {
	key     string
	nodes   *btree.BTree[ranked]
	domains []int // by level: the number of their domain
}

// ranked is a node in the order of its kind.
type ranked struct {
	rank
	pos  int
	kind *kind
}

func (p ranked) before(other ranked) bool {
	if c := p.compare(other.rank); c != 0 {
		return c < 0
	}
	return p.pos < other.pos
}

// spreadNodes are the nodes that a spread constraint counts.
type spreadNodes struct {
	rule    *spreadRule // of the first such gang, without what it counted
	counted []bool      // by node
	domains []int       // by domain: how many of its nodes are counted
}

// shape returns what is kept for gangs like that of the task; nil where nothing is, because more than the node, its pods and the members
// decides who may go there.
func (t *task) shape(g Gang, levels []level) *shape {
	c := t.c
	if !c.indexed() || c.names != c.index.cluster.names || !t.nodeByNode(g) {
		return nil
	}
	key, err := t.shapeKey(g.Topology)
	if err != nil {
		return nil
	}
	s := c.index.shapes[key]
	if s == nil || !s.holds(t, levels) || len(c.index.changed)-s.seen > len(c.nodes)/2 {
		s = newShape(t, levels)
		c.index.keep(key, s)
	}
	for _, at := range c.index.changed[s.seen:] {
		s.look(at)
	}
	s.seen, s.lastUsed = len(c.index.changed), c.index.version
	return s
}

// keep keeps a shape, and drops the least recently used one.
func (x *Index) keep(key string, s *shape) {
	for len(x.shapes) >= maxKept {
		oldest := ""
		for k, other := range x.shapes {
			if oldest == "" || other.lastUsed < x.shapes[oldest].lastUsed || other.lastUsed == x.shapes[oldest].lastUsed && k < oldest {
				oldest = k
			}
		}
		delete(x.shapes, oldest)
	}
	x.shapes[key] = s
}

// nodeByNode reports whether each node decides by itself which members it takes, other members aside, and of several that take the same
// ones the order decides. Who ignores constraints looks for a proof, which is about all nodes.
func (t *task) nodeByNode(g Gang) bool {
	if len(g.Topology.Parts) > 0 || t.opts.Node != nil || t.opts.Prefer != nil ||
		len(t.sharedKeys) > 0 || len(t.sharedVolumes) > 0 || t.devices != nil || len(t.roles) == 0 {
		return false
	}
	if x := t.crossNode; x != nil && (len(x.separations) > 0 || slices.ContainsFunc(x.affinity, func(r *affinityRule) bool { return r != nil })) {
		return false
	}
	return !slices.ContainsFunc(t.roles, func(k searchRole) bool {
		return k.rules.wide || len(k.rules.ignore) > 0 || k.rules.pod.Spec.NodeName != ""
	})
}

// shapeKey is equal for gangs that are alike: by what their members require of a node, by how many there are unless it is a single role that shares no
// domain, by who keeps whom off a node, by the nodes that their spread constraints count, and by the domains that they share.
func (t *task) shapeKey(of gang.Topology) (string, error) {
	type spread struct {
		Key             int
		Affinity, Taint any
		All             []string
	}
	type role struct {
		Rules  string
		Count  int
		Spread []spread
	}
	type conflict struct {
		Key  string
		A, B int
	}
	var key struct {
		Roles     []role
		Conflicts []conflict
		Keys      []string
		Required  string
		Preferred []string
		Pack      bool
	}
	key.Required, key.Preferred, key.Pack = of.Required, of.Preferred, t.opts.Pack
	for _, r := range t.sameNode {
		key.Conflicts = append(key.Conflicts, conflict{r.key, r.a, r.b})
	}
	for i := range t.roles {
		alone := *t.roles[i].rules.pod
		alone.Spec.TopologySpreadConstraints = nil // members of different gangs differ in what these select, and their anti-affinity
		alone.Spec.Volumes = nil                   // they are to be had on every node
		if a := alone.Spec.Affinity; a != nil {
			alone.Spec.Affinity = &corev1.Affinity{NodeAffinity: a.NodeAffinity, PodAffinity: a.PodAffinity}
		}
		rules, err := Signature(&alone, nil)
		if err != nil {
			return "", err
		}
		r := role{Rules: rules}
		if len(t.roles) > 1 || of.OfAll() {
			r.Count = t.roles[i].count
		}
		if t.crossNode != nil {
			for _, s := range t.crossNode.spread[i] {
				r.Spread = append(r.Spread, spread{s.key, s.constraint.NodeAffinityPolicy, s.constraint.NodeTaintsPolicy, s.keys})
			}
		}
		key.Roles = append(key.Roles, r)
	}
	if t.crossNode != nil {
		key.Keys = t.crossNode.keys
	}
	text, err := json.Marshal(key)
	return string(text), err
}

// newShape evaluates every node.
func newShape(t *task, levels []level) *shape {
	// What the first gang was placed on, which may be a what-if copy of every node, must not live as long as the shape.
	own := task{c: t.c.index.cluster, opts: t.opts, roles: slices.Clone(t.roles), sameNode: t.sameNode}
	s := &shape{task: &own, kinds: map[string]*kind{}, at: make([]ranked, len(own.c.nodes)), seen: len(own.c.index.changed)}
	switch {
	case len(own.roles) > 1:
		s.most = own.mostRequested()
	case len(levels) == 0:
		own.roles[0].count = math.MaxInt32
	}
	if len(levels) > 0 {
		s.levels = newLevelIndex(levels, len(own.c.nodes))
	}
	if x := t.crossNode; x != nil {
		for _, key := range x.keys {
			s.keys = append(s.keys, own.c.topology(key))
		}
		s.spread = make([][]*spreadNodes, len(own.roles))
		for i := range own.roles {
			for _, r := range x.spread[i] {
				rule := *r
				rule.counted, rule.base = nil, nil
				s.spread[i] = append(s.spread[i], &spreadNodes{rule: &rule, counted: make([]bool, len(own.c.nodes)), domains: make([]int, x.domains[r.key])})
			}
		}
	}
	for at := range own.c.nodes {
		s.look(at)
	}
	return s
}

// holds reports whether the domains are still those that the shape was made with.
func (s *shape) holds(t *task, levels []level) bool {
	if s.levels != nil && !s.levels.holds(levels) {
		return false
	}
	if t.crossNode == nil {
		return true
	}
	for i, key := range t.crossNode.keys {
		if s.keys[i] != t.c.topology(key) {
			return false
		}
	}
	return true
}

// look evaluates a node that has changed.
func (s *shape) look(at int) {
	t := s.task
	t.c = t.c.index.cluster
	n := t.c.nodes[at]
	s.lookSpread(at, n)
	if old := s.at[at]; old.kind != nil {
		old.kind.nodes.Delete(old)
		if old.kind.nodes.Len() == 0 {
			delete(s.kinds, old.kind.key)
		}
		s.levels.remove(at, old.kind)
		s.at[at] = ranked{}
	}
	c := t.candidate(at, n)
	if c == nil {
		return
	}
	p := ranked{rank: t.rankOf(c), pos: at, kind: s.kindOf(c)}
	p.kind.nodes.ReplaceOrInsert(p)
	s.levels.add(at, p.kind, c.slots, t.roomOn(c))
	s.at[at] = p
}

// lookSpread finds out which spread constraints count the node.
func (s *shape) lookSpread(at int, n *node) {
	for i, rules := range s.spread {
		for _, nodes := range rules {
			counts := nodes.rule.counts(s.task.roles[i].rules, n.obj)
			if counts == nodes.counted[at] {
				continue
			}
			nodes.counted[at] = counts
			if d := s.keys[nodes.rule.key].domain[at]; counts {
				nodes.domains[d]++
			} else {
				nodes.domains[d]--
			}
		}
	}
}

// kindOf is the same for candidates that differ only by their rank.
func (s *shape) kindOf(c *candidate) *kind {
	key := binary.AppendUvarint(nil, uint64(len(s.keys)))
	key = s.task.kindKey(key, c, s.most)
	for _, t := range s.keys {
		d := t.domain[c.pos]
		if d >= 0 && t.onePerNode() {
			d = -2
		}
		key = binary.AppendVarint(key, int64(d))
	}
	for _, rules := range s.spread {
		for _, nodes := range rules {
			if nodes.counted[c.pos] {
				key = append(key, 1)
			} else {
				key = append(key, 0)
			}
		}
	}
	domains := s.levels.domainsAt(c.pos)
	for _, d := range domains {
		key = binary.AppendVarint(key, int64(d))
	}
	k := s.kinds[string(key)]
	if k == nil {
		k = &kind{key: string(key), nodes: btree.New(32, ranked.before), domains: domains}
		s.kinds[k.key] = k
	}
	return k
}

// candidates are those that the task's gang can make a difference of: the first of each of some kinds, as many as the gang has members, and the
// nodes that are like no others, because a what-if changed them or they have pods that a constraint counts.
func (s *shape) candidates(t *task, kinds iter.Seq[*kind], special iter.Seq[int], isSpecial func(at int) bool) []*candidate {
	members := t.members()
	var out []*candidate
	add := func(at int) {
		if c := t.candidate(at, t.c.nodes[at]); c != nil {
			out = append(out, c)
		}
	}
	for k := range kinds {
		left := members
		k.nodes.Ascend(func(p ranked) bool {
			if !isSpecial(p.pos) {
				add(p.pos)
				left--
			}
			return left > 0
		})
	}
	for at := range special {
		add(at)
	}
	// By position, as if every node had been looked at: an order of maps decides nothing.
	slices.SortFunc(out, func(a, b *candidate) int { return a.pos - b.pos })
	t.order(out)
	return out
}

// placeByShape finds a placement among the candidates of the gang's shape. ok is false where there is no shape, or no placement: then the
// numbers that prove it are those of all nodes.
func (t *task) placeByShape(g Gang) (found solution, ok bool) {
	var levels []level
	if g.Topology.OfAll() {
		levels = t.c.levels(g.Topology)
	}
	s := t.shape(g, levels)
	if s == nil {
		return solution{}, false
	}
	special := s.countSpread(t)
	if s.levels != nil {
		found = newLevelSearch(t, g, levels, newIndexed(s, t, special)).solve()
	} else {
		found = t.solveParts(s.candidates(t, maps.Values(s.kinds), maps.Keys(special), func(at int) bool { return special[at] }))
	}
	return found, found.proof == Witness
}

// countSpread counts the pods that the spread constraints of the task select, and returns the nodes that differ from others: those that a
// what-if changed, and those with such pods where every node is a domain of its own.
func (s *shape) countSpread(t *task) map[int]bool {
	special := map[int]bool{}
	for at := range t.c.whatIf {
		special[at] = true
	}
	for i, rules := range s.spread {
		for j, nodes := range rules {
			r := t.crossNode.spread[i][j]
			r.counted = nodes.counted
			r.base = make([]int, len(nodes.domains))
			for d, n := range nodes.domains {
				if n == 0 {
					r.base[d] = -1
				}
			}
			s.countPods(t, r, s.keys[r.key], special)
		}
	}
	return special
}

// countPods counts the pods that a spread constraint selects.
func (s *shape) countPods(t *task, r *spreadRule, of *topology, special map[int]bool) {
	count := func(pod *corev1.Pod, at int) {
		if r.counted[at] && r.selects(pod) {
			r.base[of.domain[at]]++
			if of.onePerNode() {
				special[at] = true
			}
		}
	}
	whatIf := t.c.whatIf
	if pods, ok := t.c.index.podsLike(r.selector); ok {
		for pod, at := range pods {
			if !whatIf[at] {
				count(pod, at)
			}
		}
	} else {
		for at, n := range t.c.nodes {
			for _, p := range n.info.Pods {
				if !whatIf[at] {
					count(p.GetPod(), at)
				}
			}
		}
	}
	for at := range whatIf {
		for _, p := range t.c.nodes[at].info.Pods {
			count(p.GetPod(), at)
		}
	}
}

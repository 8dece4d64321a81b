package placement

import (
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/gang"
)

// topology is which nodes some labels put into which domain. It is not changed once it is made.
type topology struct {
	keys    []string
	domain  []int          // by node: the number of its domain, -1 without the first label
	numbers map[string]int // by the values of the labels
	nodes   []int          // by domain: how many nodes are in it
	first   []int          // by domain: the first of them
	byName  []int          // by domain: its position among the domains ordered by the value of the first label, then by number
	// labelled is how many nodes have the first label.
	labelled int
}

// everywhere is the key of the one domain that all nodes are in.
const everywhere = ""

// topology returns the domains of a label. Further labels are those of wider domains: nodes share a domain if they share all values, so that
// the rack r1 of one block is not that of another. No value is a value, too, except of the first label.
func (c *Cluster) topology(keys ...string) *topology {
	if c.indexed() {
		return c.index.topology(keys)
	}
	return newTopology(c.nodes, keys)
}

func newTopology(nodes []*node, keys []string) *topology {
	t := &topology{keys: slices.Clone(keys), domain: make([]int, len(nodes)), numbers: map[string]int{}}
	for i, n := range nodes {
		value, ok := n.domain(keys)
		if !ok {
			t.domain[i] = -1
			continue
		}
		number, known := t.numbers[value]
		if !known {
			number = len(t.numbers)
			t.numbers[value], t.nodes, t.first = number, append(t.nodes, 0), append(t.first, i)
		}
		t.domain[i] = number
		t.nodes[number]++
		t.labelled++
	}
	t.byName = make([]int, len(t.first))
	order := make([]int, len(t.first))
	for number := range order {
		order[number] = number
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return strings.Compare(nodes[t.first[a]].obj.Labels[keys[0]], nodes[t.first[b]].obj.Labels[keys[0]])
	})
	for at, number := range order {
		t.byName[number] = at
	}
	return t
}

// domain returns the values that the node has of some labels, as one text; ok is false without the first.
func (n *node) domain(keys []string) (value string, ok bool) {
	if keys[0] == everywhere {
		return "", true
	}
	if value, ok = n.obj.Labels[keys[0]]; !ok || len(keys) == 1 {
		return value, ok
	}
	values := []string{value}
	for _, key := range keys[1:] {
		wider, has := n.obj.Labels[key]
		if !has {
			wider = absent
		}
		values = append(values, wider)
	}
	return strings.Join(values, between), true
}

// What no value of a label contains: between two of them, and in place of one.
const (
	between = "\x00"
	absent  = "\x01"
)

// onePerNode reports whether no two nodes share a domain.
func (t *topology) onePerNode() bool { return len(t.numbers) == t.labelled }

// equal reports whether two topologies, of which one has all labels of the other, have the same domains.
func (t *topology) equal(other *topology) bool {
	return len(t.nodes) == len(other.nodes) && t.labelled == other.labelled &&
		slices.EqualFunc(t.domain, other.domain, func(a, b int) bool { return a < 0 == (b < 0) })
}

// withDomains is a topology without preferred keys that no node has: there is nothing to prefer.
func (c *Cluster) withDomains(t gang.Topology) gang.Topology {
	existing := func(keys []string) []string {
		return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return c.topology(key).labelled == 0 })
	}
	t.Preferred, t.Parts = existing(t.Preferred), slices.Clone(t.Parts)
	for i := range t.Parts {
		t.Parts[i].Preferred = existing(t.Parts[i].Preferred)
	}
	return t
}

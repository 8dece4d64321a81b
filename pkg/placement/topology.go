package placement

// topology is which nodes a label puts into which domain. It is not changed once it is made.
type topology struct {
	domain   []int          // by node: the number of its domain, -1 without the label
	numbers  map[string]int // by value of the label
	labelled int            // nodes that have it
}

// everywhere is the key of the one domain that all nodes are in.
const everywhere = ""

// topology returns the domains of a label.
func (c *Cluster) topology(key string) *topology {
	if c.indexed() {
		return c.index.topology(key)
	}
	return newTopology(c.nodes, key)
}

func newTopology(nodes []*node, key string) *topology {
	t := &topology{domain: make([]int, len(nodes)), numbers: map[string]int{}}
	for i, n := range nodes {
		value, ok := n.obj.Labels[key]
		if key == everywhere {
			value, ok = "", true
		}
		if !ok {
			t.domain[i] = -1
			continue
		}
		number, known := t.numbers[value]
		if !known {
			number = len(t.numbers)
			t.numbers[value] = number
		}
		t.domain[i] = number
		t.labelled++
	}
	return t
}

// onePerNode reports whether no two nodes share a domain.
func (t *topology) onePerNode() bool { return len(t.numbers) == t.labelled }

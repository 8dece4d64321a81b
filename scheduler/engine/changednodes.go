package engine

import (
	"maps"
	"slices"
	"sync"
)

// maxChanged is how many names of changed nodes are kept: pods name nodes, and users write them.
const maxChanged = 4096

// ChangedNodes are the nodes that have changed in the engine's snapshot. Whoever keeps data of all nodes looks at those only, and not at the
// generation of each. They are known of a cache that is watched.
type ChangedNodes struct {
	mu          sync.Mutex // held during every change of the cache, and during a snapshot
	now         nodeNames  // changed in the cache since its last snapshot
	snapshotted nodeNames  // changed in the snapshot since they were taken
}

// NewChangedNodes returns the changed nodes of a cache that is watched later; until they are taken, any may have changed.
func NewChangedNodes() *ChangedNodes { return &ChangedNodes{snapshotted: nodeNames{all: true}} }

// Take returns the names of the nodes of the snapshot that may have changed since the last call; known is false if any may have.
func (c *ChangedNodes) Take() (names []string, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.snapshotted
	c.snapshotted = nodeNames{}
	return slices.Sorted(maps.Keys(taken.names)), !taken.all
}

// Suspect has the next Take report that any node may have changed.
func (c *ChangedNodes) Suspect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.snapshotted = nodeNames{all: true}
}

// nodeNames is a bounded set of names of nodes.
type nodeNames struct {
	names map[string]struct{}
	all   bool // there were too many
}

func (n *nodeNames) add(names ...string) {
	for _, name := range names {
		switch {
		case n.all || name == "":
		case len(n.names) >= maxChanged:
			*n = nodeNames{all: true}
		default:
			if n.names == nil {
				n.names = map[string]struct{}{}
			}
			n.names[name] = struct{}{}
		}
	}
}

func (n *nodeNames) addAll(more nodeNames) {
	for name := range more.names {
		n.add(name)
	}
	if more.all {
		*n = nodeNames{all: true}
	}
}

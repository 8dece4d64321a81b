// Package view looks at a snapshot the way a gang does: which jobs there are, which pods are whose, what declares them a
// gang, who holds the nodes, and what was said about it. It judges nothing.
package view

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// View is a snapshot with indexes, which are built when they are first needed. It is not safe for concurrent use.
type View struct {
	Snap *snapshot.Snapshot
	// Now is the moment of the snapshot.
	Now time.Time
	// Assumed is true for a snapshot in which something was changed: what was said about the real one is history then.
	Assumed bool

	byController func() podIndex
	byMark       func() map[gang.Key][]*corev1.Pod
	byUID        func() map[types.UID]*gang.Job
	jobs         func() []*gang.Job
	batchJobs    func() batchIndex
	groups       func() []gang.Declaration
	byKey        func() groupIndex
	holders      func() []*Holder
	cluster      func() *placement.Cluster
	events       func() map[eventKey][]Event
	holderOf     map[*corev1.Pod]*Holder
	gangs        map[types.UID]*gang.Gang
	problems     []string
	known        map[any]any

	// decoded is shared with the worlds that are derived from this one, and base is the one this is derived from.
	decoded *decoded
	base    *View
}

// decoded remembers what objects say: most are the same in every what-if.
type decoded struct {
	jobs   map[any]*gang.Job
	groups map[groupKey]gang.Declaration
	templates
}

// groupKey is an object as one dialect reads it: two dialects may share a kind.
type groupKey struct {
	dialect gang.Dialect
	object  *unstructured.Unstructured
}

// New returns the world of a snapshot.
func New(s *snapshot.Snapshot) *View {
	return newWorld(s, &decoded{jobs: map[any]*gang.Job{}, groups: map[groupKey]gang.Declaration{}, templates: templates{}}, nil)
}

// Assume returns the world of a changed snapshot, which shares what did not change.
func (w *View) Assume(s *snapshot.Snapshot) *View {
	n := newWorld(s, w.decoded, w)
	n.Assumed = true
	return n
}

func newWorld(s *snapshot.Snapshot, d *decoded, base *View) *View {
	w := &View{Snap: s, Now: s.At, gangs: map[types.UID]*gang.Gang{}, decoded: d, base: base}
	w.byController = sync.OnceValue(w.indexPods)
	w.byMark = sync.OnceValue(w.indexMarks)
	w.byUID = sync.OnceValue(w.indexJobs)
	w.jobs = sync.OnceValue(w.readJobs)
	w.batchJobs = sync.OnceValue(w.indexBatchJobs)
	w.groups = sync.OnceValue(w.readGroups)
	w.byKey = sync.OnceValue(w.indexGroups)
	w.holders = sync.OnceValue(w.findHolders)
	w.cluster = sync.OnceValue(w.buildCluster)
	w.events = sync.OnceValue(w.indexEvents)
	return w
}

// Once returns what is known of a world under a key, which f finds out the first time.
func Once[T any](w *View, key any, f func() T) T {
	if value, ok := w.known[key].(T); ok {
		return value
	}
	value := f()
	if w.known == nil {
		w.known = map[any]any{}
	}
	w.known[key] = value
	return value
}

// Problems are objects that could not be read, in words.
func (w *View) Problems() []string { return w.problems }

func (w *View) problem(err error) { w.problems = append(w.problems, err.Error()) }

// Age is how long ago t was; 0 for an unknown time.
func (w *View) Age(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return w.Now.Sub(t)
}

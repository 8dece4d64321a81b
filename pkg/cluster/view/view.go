// Package view looks at a snapshot the way a gang does: which jobs there are, which pods are whose, what declares them a
// gang, the consumers of the nodes, and the events about it. It judges nothing.
package view

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// View is a snapshot with indexes, which are built when they are first needed. It is not safe for concurrent use.
type View struct {
	Snap *snapshot.Snapshot
	// Now is the moment of the snapshot.
	Now time.Time
	// Assumed is true for a snapshot in which something was changed: the events of the real one are history then.
	Assumed bool

	pods         func() podChanges
	byController func() podIndex
	antiAffinity func() sets.Set[string]
	podsByName   func() map[types.NamespacedName]*corev1.Pod
	byIdentity   func() map[gang.Identity]*gang.Job
	jobs         func() []*gang.Job
	batchJobs    func() batchIndex
	groups       func() []gang.Declaration
	byKey        func() groupIndex
	consumers    func() consumerIndex
	cluster      func() *placement.Cluster
	events       func() map[eventKey][]Event
	gangs        map[types.UID]*gang.Gang
	problems     []problem
	known        map[any]any
	shapes       shapes
	common       map[commonKey]*placement.Cluster // what-if clusters, by what they are called
	isCommon     sets.Set[*placement.Cluster]

	network network

	// decoded is shared with the views that are derived from this one, and base is the one this is derived from.
	decoded *decoded
	base    *View
}

// New returns the view of a snapshot.
func New(s *snapshot.Snapshot) *View { return After(Known{}, s) }

// Known is what is known of a snapshot, for the view of a later one. The zero value knows nothing.
type Known struct {
	nodes   placement.Known
	decoded *decoded
}

// Known is what is known of the snapshot. It needs the simulated cluster.
func (w *View) Known() Known { return Known{w.Cluster().Known(), w.decoded} }

// After is New for a later snapshot of a cluster: nodes whose objects are the same, and whose pods' are, are not worked out again, and jobs and groups
// whose objects are the same are not decoded again. Nodes that [View.Domains] label are new objects in each view.
func After(earlier Known, s *snapshot.Snapshot) *View {
	return newView(s, earlier.decoded.later(), nil, earlier.nodes)
}

// Before is the view of the cluster as it is, of one in which something was assumed; nil for the cluster itself.
func (w *View) Before() *View { return w.base }

// Present is the cluster as it was read: the first of those on which what this one has is assumed, or this one.
func (w *View) Present() *View {
	for w.base != nil {
		w = w.base
	}
	return w
}

// Assume returns the view of a changed snapshot, which shares what did not change.
func (w *View) Assume(s *snapshot.Snapshot) *View {
	n := newView(s, w.decoded, w, placement.Known{})
	n.Assumed = true
	return n
}

func newView(s *snapshot.Snapshot, d *decoded, base *View, earlier placement.Known) *View {
	if base == nil { // what is assumed starts from the nodes of its base
		s = offerDevices(s)
	}
	s, network := inDomains(s, base)
	w := &View{Snap: s, network: network, Now: s.At, gangs: map[types.UID]*gang.Gang{}, decoded: d, base: base}
	w.pods = sync.OnceValue(w.comparePods)
	w.byController = sync.OnceValue(w.indexPods)
	w.antiAffinity = sync.OnceValue(w.antiAffinityLabels)
	w.podsByName = sync.OnceValue(w.indexPodNames)
	w.byIdentity = sync.OnceValue(w.indexJobs)
	w.jobs = sync.OnceValue(w.readJobs)
	w.batchJobs = sync.OnceValue(w.indexBatchJobs)
	w.groups = sync.OnceValue(w.readGroups)
	w.byKey = sync.OnceValue(w.indexGroups)
	w.consumers = sync.OnceValue(w.indexConsumers)
	w.cluster = sync.OnceValue(func() *placement.Cluster { return w.buildCluster(earlier) })
	w.events = sync.OnceValue(w.indexEvents)
	return w
}

// Once returns what is known of a view under a key, which f finds out the first time.
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

// problem is an object that could not be read, and why.
type problem struct{ namespace, text string }

// Problems are objects that could not be read, as sentences, of the namespaces that match, and what a file has besides objects.
func (w *View) Problems(in func(namespace string) bool) []string {
	texts := slices.Clone(w.Snap.Skipped)
	for _, p := range w.problems {
		if in(p.namespace) {
			texts = append(texts, p.text)
		}
	}
	return texts
}

func (w *View) problem(u *unstructured.Unstructured, err error) {
	w.problems = append(w.problems, problem{u.GetNamespace(), err.Error()})
}

// Age is how long ago t was; 0 for an unknown time.
func (w *View) Age(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return w.Now.Sub(t)
}

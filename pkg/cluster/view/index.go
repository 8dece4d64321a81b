package view

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
)

// podIndex finds pods by their controller.
type podIndex struct {
	all map[gang.Identity][]*corev1.Pod
	// changed are the controllers whose pods are others than in all.
	changed map[gang.Identity][]*corev1.Pod
}

func (x podIndex) of(c gang.Identity) []*corev1.Pod {
	if pods, ok := x.changed[c]; ok {
		return pods
	}
	return x.all[c]
}

// indexPods takes over what did not change since the view that this one is derived from: that is nearly all.
func (w *View) indexPods() podIndex {
	if w.base == nil {
		owned := map[gang.Identity][]*corev1.Pod{}
		for _, pod := range w.Snap.Pods {
			if c, ok := gang.ControllerOf(pod); ok {
				owned[c] = append(owned[c], pod)
			}
		}
		return podIndex{all: owned}
	}
	before, gone, more := w.base.byController(), w.pods().gone, w.pods().more
	changed := map[gang.Identity][]*corev1.Pod{}
	for c, pods := range before.changed {
		changed[c] = pods
	}
	lost := map[gang.Identity]map[*corev1.Pod]bool{}
	for _, pod := range gone {
		if c, ok := gang.ControllerOf(pod); ok {
			if lost[c] == nil {
				lost[c] = map[*corev1.Pod]bool{}
			}
			lost[c][pod] = true
		}
	}
	for c, pods := range lost {
		changed[c] = slices.DeleteFunc(slices.Clone(before.of(c)), func(p *corev1.Pod) bool { return pods[p] })
	}
	for _, pod := range more {
		if c, ok := gang.ControllerOf(pod); ok {
			pods, known := changed[c]
			if !known {
				pods = before.of(c)
			}
			changed[c] = append(slices.Clip(pods), pod)
		}
	}
	return podIndex{all: before.all, changed: changed}
}

// indexPodNames finds pods by their name. Of two the first counts.
func (w *View) indexPodNames() map[types.NamespacedName]*corev1.Pod {
	named := make(map[types.NamespacedName]*corev1.Pod, len(w.Snap.Pods))
	for _, pod := range slices.Backward(w.Snap.Pods) {
		named[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = pod
	}
	return named
}

// Pod returns a pod; nil if there is none of the name. What did not change since the view that this one is derived from is looked up there.
func (w *View) Pod(namespace, name string) *corev1.Pod {
	if w.base != nil {
		of := func(p *corev1.Pod) bool { return p.Namespace == namespace && p.Name == name }
		if before := w.base.Pod(namespace, name); !slices.ContainsFunc(w.pods().more, of) && !slices.ContainsFunc(w.pods().gone, of) {
			return before
		}
	}
	return w.podsByName()[types.NamespacedName{Namespace: namespace, Name: name}]
}

// BatchJob returns a Job of Kubernetes; nil if there is none of the name.
func (w *View) BatchJob(namespace, name string) *batchv1.Job {
	type byName struct{}
	named := Once(w, byName{}, func() map[types.NamespacedName]*batchv1.Job {
		named := make(map[types.NamespacedName]*batchv1.Job, len(w.Snap.Jobs))
		for _, j := range slices.Backward(w.Snap.Jobs) {
			named[types.NamespacedName{Namespace: j.Namespace, Name: j.Name}] = j
		}
		return named
	})
	return named[types.NamespacedName{Namespace: namespace, Name: name}]
}

// Object returns an object of a kind without a Go type; nil if there is none of the name. Of two the first counts.
func (w *View) Object(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	if at, found := snapshot.Position(w.Snap.Custom[kind], namespace, name); found {
		return w.Snap.Custom[kind][at]
	}
	if w.base != nil && w.same(kind) {
		return w.base.Object(kind, namespace, name)
	}
	named := Once(w, kind, func() map[types.NamespacedName]*unstructured.Unstructured {
		named := make(map[types.NamespacedName]*unstructured.Unstructured, len(w.Snap.Custom[kind]))
		for _, u := range slices.Backward(w.Snap.Custom[kind]) {
			named[types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}] = u
		}
		return named
	})
	return named[types.NamespacedName{Namespace: namespace, Name: name}]
}

// referring are the pods that name a group of a dialect, by the group.
func (w *View) referring(to gang.Dialect) map[gang.Key][]*corev1.Pod {
	type ofDialect struct{ gang.Dialect }
	return Once(w, ofDialect{to}, func() map[gang.Key][]*corev1.Pod {
		if w.base != nil {
			if changes := w.pods(); len(changes.gone)+len(changes.more) == 0 {
				return w.base.referring(to)
			}
		}
		r, known := dialect.ReaderOf(to)
		if !known {
			return nil
		}
		named := map[gang.Key][]*corev1.Pod{}
		for _, pod := range w.Snap.Pods {
			if name, ok := r.GroupOf(pod); ok {
				key := gang.Key{Dialect: to, Namespace: pod.Namespace, Name: name}
				named[key] = append(named[key], pod)
			}
		}
		return named
	})
}

// naming are the pods that name one group. It takes over what did not change since the view that this one is derived from.
func (w *View) naming(group gang.Key) []*corev1.Pod {
	if w.base == nil {
		return w.referring(group.Dialect)[group]
	}
	pods := w.base.naming(group)
	gone, more := w.pods().gone, w.pods().more
	if len(pods) > 0 && len(gone) > 0 {
		left := sets.New(gone...)
		pods = slices.DeleteFunc(slices.Clone(pods), left.Has)
	}
	reader, known := dialect.ReaderOf(group.Dialect)
	for _, pod := range more {
		if !known || pod.Namespace != group.Namespace {
			continue
		}
		if name, ok := reader.GroupOf(pod); ok && name == group.Name {
			pods = append(slices.Clip(pods), pod)
		}
	}
	return pods
}

// groupIndex finds group objects by their name, and by the job that owns them. Of two the first counts.
type groupIndex struct {
	named map[gang.Key]*gang.Declaration
	owned map[ownedGroup]*gang.Declaration
}

// ownedGroup is the key of the groups that an owner has of a dialect in a namespace.
type ownedGroup struct {
	dialect   gang.Dialect
	namespace string
	owner     types.UID
}

func (w *View) indexGroups() groupIndex {
	if w.sameGroups() {
		return w.base.byKey()
	}
	all := w.Groups()
	x := groupIndex{make(map[gang.Key]*gang.Declaration, len(all)), make(map[ownedGroup]*gang.Declaration, len(all))}
	for i := range slices.Backward(all) {
		d := &all[i]
		x.named[d.Key] = d
		if d.Owner != "" {
			x.owned[ownedGroup{d.Key.Dialect, d.Key.Namespace, d.Owner}] = d
		}
	}
	return x
}

func (w *View) indexJobs() map[gang.Identity]*gang.Job {
	all := map[gang.Identity]*gang.Job{}
	for _, s := range slices.Backward(w.Jobs()) { // of two the first counts
		if s.Meta.UID != "" {
			all[gang.IdentityOf(&s.Meta)] = s
		}
	}
	return all
}

// batchIndex finds the Jobs of Kubernetes itself, and those that a job owns.
type batchIndex struct {
	all map[gang.Identity]*batchv1.Job
	of  map[gang.Identity][]gang.Identity
}

func (w *View) indexBatchJobs() batchIndex {
	if w.base != nil && slices.Equal(w.base.Snap.Jobs, w.Snap.Jobs) {
		return w.base.batchJobs()
	}
	x := batchIndex{make(map[gang.Identity]*batchv1.Job, len(w.Snap.Jobs)), map[gang.Identity][]gang.Identity{}}
	for _, j := range w.Snap.Jobs {
		id := gang.IdentityOf(j)
		x.all[id] = j
		for _, ref := range j.OwnerReferences {
			owner := gang.Identity{Namespace: j.Namespace, UID: ref.UID}
			x.of[owner] = append(x.of[owner], id)
		}
	}
	return x
}

// sameJobs reports whether the jobs are those of the view that this one is derived from.
func (w *View) sameJobs() bool {
	if w.base == nil || !slices.Equal(w.base.Snap.Jobs, w.Snap.Jobs) {
		return false
	}
	for _, reader := range kinds.Readers() {
		if !w.same(reader.GroupKind) {
			return false
		}
	}
	return true
}

// sameGroups reports whether the group objects are those of the view that this one is derived from.
func (w *View) sameGroups() bool {
	if w.base == nil {
		return false
	}
	for _, r := range dialect.Readers() {
		for _, kind := range r.Kinds {
			if !w.same(kind.GroupKind) {
				return false
			}
		}
	}
	return true
}

func (w *View) same(kind schema.GroupKind) bool {
	return slices.Equal(w.base.Snap.Custom[kind], w.Snap.Custom[kind])
}

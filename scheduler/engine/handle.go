// Package engine is the seam to kube-scheduler, the engine that places pods. It
// provides what the engine gets in place of an API server's objects: a store of
// virtual PodGroups that looks like an API server, a client that keeps the status
// of those groups in the process, a client that confirms bindings, informers of
// APIs that may not be served, and watches that reconnect.
package engine

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// Handle is the access to kube-scheduler for the parts that all profiles share. They
// exist before kube-scheduler, which makes the plugins, so the handle is
// created first, empty, and bound when the first plugin is made: see [Handle.Binding].
// The profiles share one snapshot, one queue and one set of informers, so it does
// not matter whose framework handle it is.
type Handle struct {
	assumed   *AssumedPods
	mu        sync.Mutex
	framework fwk.Handle
	listers   *listers // made when they are first needed
}

// listers read what the informers know. The engine's factory of informers makes a new one for each call.
type listers struct {
	pods   corelisters.PodLister
	nodes  corelisters.NodeLister
	groups cache.Indexer // each event looks up every gang that waits: a lister makes two objects for that
}

// NewHandle returns a handle that is not bound.
func NewHandle() *Handle { return &Handle{assumed: NewAssumedPods()} }

// Assumed are the pods that are being bound.
func (h *Handle) Assumed() *AssumedPods { return h.assumed }

// Binding returns a plugin factory that binds the handle before it calls another.
func (h *Handle) Binding(factory frameworkruntime.PluginFactory) frameworkruntime.PluginFactory {
	return func(ctx context.Context, args runtime.Object, framework fwk.Handle) (fwk.Plugin, error) {
		h.mu.Lock()
		if h.framework == nil {
			h.framework = framework
		}
		h.mu.Unlock()
		return factory(ctx, args, framework)
	}
}

// Framework returns the framework of a profile; nil before a plugin has bound it.
func (h *Handle) Framework() fwk.Handle {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.framework
}

// known returns the listers; nil before a plugin has bound the handle.
func (h *Handle) known() *listers {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listers == nil && h.framework != nil {
		factory := h.framework.SharedInformerFactory()
		h.listers = &listers{
			pods: factory.Core().V1().Pods().Lister(), nodes: factory.Core().V1().Nodes().Lister(), groups: factory.Scheduling().V1beta1().PodGroups().Informer().GetIndexer(),
		}
	}
	return h.listers
}

// Activate moves pods to the front of the scheduling queue; the keys are
// NAMESPACE/NAME. Nothing waits in the queue before the handle is bound. The queue
// calls plugins back, so no lock may be held that those take.
func (h *Handle) Activate(pods map[string]*corev1.Pod) {
	if framework := h.Framework(); framework != nil && len(pods) > 0 {
		framework.Activate(klog.Background(), pods)
	}
}

// Pod returns a pod as the informer knows it now; nil if it is gone. Another pod
// of the same name is not returned.
func (h *Handle) Pod(pod *corev1.Pod) *corev1.Pod {
	known := h.known()
	if known == nil {
		return nil
	}
	now, err := known.pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || now.UID != pod.UID {
		return nil
	}
	return now
}

// Pods returns the lister of all pods, as the informer knows them now.
func (h *Handle) Pods() corelisters.PodLister {
	return h.known().pods
}

// NodeExists reports whether the informer has a node. Before the handle is bound, all
// nodes exist.
func (h *Handle) NodeExists(name string) bool {
	known := h.known()
	if known == nil {
		return true
	}
	_, err := known.nodes.Get(name)
	return !apierrors.IsNotFound(err)
}

// Snapshot returns the snapshot of the current scheduling cycle. Only the scheduling
// goroutine may read it.
func (h *Handle) Snapshot() fwk.SharedLister { return h.Framework().SnapshotSharedLister() }

// Lacking returns how many more members of a gang must have nodes of which some have;
// 0 for others. Simulated placements do not count.
func (h *Handle) Lacking(group types.NamespacedName) int {
	state, minimum, ok := h.state(group)
	if !ok || state.ScheduledPodsCount() == 0 {
		return 0
	}
	return max(0, minimum-state.ScheduledPodsCount())
}

// Complete reports whether the engine has as many members of a gang as its minimum.
func (h *Handle) Complete(group types.NamespacedName) bool {
	state, minimum, ok := h.state(group)
	return !ok || state.AllPodsCount() >= minimum
}

// Scheduled returns the members of a gang that have nodes. Simulated placements do not count.
func (h *Handle) Scheduled(group types.NamespacedName) []*corev1.Pod {
	state, _, ok := h.state(group)
	if !ok {
		return nil
	}
	return state.ScheduledPods()
}

// Unscheduled returns the members of a gang that have no node, by NAMESPACE/NAME.
func (h *Handle) Unscheduled(group types.NamespacedName) map[string]*corev1.Pod {
	state, _, ok := h.state(group)
	if !ok {
		return nil
	}
	return state.UnscheduledPods()
}

// state returns the engine's state of the members of a gang, and its minimum; ok is
// false if there is no such gang.
func (h *Handle) state(group types.NamespacedName) (state fwk.PodGroupState, minimum int, ok bool) {
	framework := h.Framework()
	if framework == nil || group.Name == "" {
		return nil, 0, false
	}
	stored, _, err := h.known().groups.GetByKey(group.Namespace + "/" + group.Name)
	declared, ok := stored.(*schedulingv1beta1.PodGroup)
	if err != nil || !ok || declared.Spec.SchedulingPolicy.Gang == nil {
		return nil, 0, false
	}
	state, err = framework.PodGroupManager().PodGroupStates().Get(group.Namespace, group.Name)
	return state, int(declared.Spec.SchedulingPolicy.Gang.MinCount), err == nil
}

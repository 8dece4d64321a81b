package placement

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

// filter is an upstream plugin that is called for one node at a time.
type filter interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
}

// mustFilter returns a plugin that cannot fail to build, because its arguments are constants.
func mustFilter(p fwk.Plugin, err error) filter {
	if err != nil {
		panic(fmt.Sprintf("placement: build scheduler plugin: %v", err))
	}
	return p.(filter)
}

// filterFor prepares a plugin for a pod. The result is nil if the plugin has no rule for the pod; otherwise it gives the reason of a
// rejection, empty if the node passes.
func (c *Cluster) filterFor(plugin filter, pod *corev1.Pod) func(n *node) string {
	ctx := context.Background()
	nodes, _ := snapshot{c: c}.List()
	state := framework.NewCycleState()
	_, status := plugin.PreFilter(ctx, state, pod, nodes)
	switch {
	case status.IsSkip():
		return nil
	case !status.IsSuccess():
		return func(*node) string { return status.Message() }
	}
	return func(n *node) string {
		if status := plugin.Filter(ctx, state, pod, n.info); !status.IsSuccess() {
			return status.Message()
		}
		return ""
	}
}

// checkOf makes a check of a plugin.
func checkOf(constraint Constraint, filter func(*node) string) check {
	if filter == nil {
		return nil
	}
	return func(n *node) []Violation {
		if reason := filter(n); reason != "" {
			return []Violation{{Constraint: constraint, Detail: reason}}
		}
		return nil
	}
}

func (c *Cluster) handle() *handle {
	factory, _ := c.store.get(c.objects)
	return &handle{c: c, factory: factory}
}

// handle gives upstream plugins a Cluster to look at. It implements the part of the framework's handle that the plugins use
// which this package calls; anything else would panic.
type handle struct {
	fwk.Handle
	c       *Cluster
	factory informers.SharedInformerFactory
}

func (h *handle) SnapshotSharedLister() fwk.SharedLister { return snapshot{c: h.c} }

func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.factory }

func (h *handle) SharedCSIManager() fwk.CSIManager { return h.c.store.csiNodes(h.c.objects) }

func (h *handle) Parallelizer() fwk.Parallelizer { return sequential{} }

// sequential does the work of plugins piece by piece: a pod and a node are too little work to share out.
type sequential struct{}

// Until implements fwk.Parallelizer.
func (sequential) Until(_ context.Context, pieces int, work workqueue.DoWorkPieceFunc, _ string) {
	for i := range pieces {
		work(i)
	}
}

// store has the objects that plugins read through listers. All what-if copies of a Cluster share it.
type store struct {
	once     sync.Once
	factory  informers.SharedInformerFactory
	features feature.Features

	labelsOnce sync.Once
	labels     map[string]labels.Set // of namespaces

	csiOnce sync.Once
	csi     csiNodes

	volumesOnce sync.Once
	volumes     volumeIndex

	looksLock sync.Mutex
	looks     []*looks

	claimsOnce sync.Once
	claims     map[types.NamespacedName]*resourceapi.ResourceClaim
}

// looks are what is known of nodes by one check.
type looks struct {
	key  string
	lock sync.Mutex
	all  map[*corev1.Node][]Violation
}

// maxLooks is for how many checks they are kept, the latest: the gangs that have volumes come one after the other.
const maxLooks = 16

func (s *store) looksFor(key string) *looks {
	s.looksLock.Lock()
	defer s.looksLock.Unlock()
	for _, known := range s.looks {
		if known.key == key {
			return known
		}
	}
	if len(s.looks) == maxLooks {
		s.looks = slices.Delete(s.looks, 0, 1)
	}
	s.looks = append(s.looks, &looks{key: key, all: map[*corev1.Node][]Violation{}})
	return s.looks[len(s.looks)-1]
}

// of returns what look finds of a node, which it does once.
func (l *looks) of(n *corev1.Node, look func() []Violation) []Violation {
	l.lock.Lock()
	defer l.lock.Unlock()
	found, known := l.all[n]
	if !known {
		found = look()
		l.all[n] = found
	}
	return found
}

// csiNodes finds the CSINodes by name.
func (s *store) csiNodes(o *Objects) csiNodes {
	s.csiOnce.Do(func() {
		s.csi = csiNodes{o.CSINodes, make(map[string]*storagev1.CSINode, len(o.CSINodes))}
		for _, n := range slices.Backward(o.CSINodes) { // of two the first counts
			s.csi.named[n.Name] = n
		}
	})
	return s.csi
}

// namespaceLabels returns the labels of each namespace.
func (s *store) namespaceLabels(o *Objects) map[string]labels.Set {
	s.labelsOnce.Do(func() {
		s.labels = make(map[string]labels.Set, len(o.Namespaces))
		for _, ns := range o.Namespaces {
			s.labels[ns.Name] = ns.Labels
		}
	})
	return s.labels
}

// resourceClaim returns the claim of devices of that name, nil if there is none.
func (s *store) resourceClaim(o *Objects, namespace, name string) *resourceapi.ResourceClaim {
	s.claimsOnce.Do(func() {
		s.claims = make(map[types.NamespacedName]*resourceapi.ResourceClaim, len(o.ResourceClaims))
		for _, k := range slices.Backward(o.ResourceClaims) { // of two the first counts
			s.claims[types.NamespacedName{Namespace: k.Namespace, Name: k.Name}] = k
		}
	})
	return s.claims[types.NamespacedName{Namespace: namespace, Name: name}]
}

// get fills the informers' indexers. The informers are never run, so there is no client and no I/O.
func (s *store) get(o *Objects) (informers.SharedInformerFactory, feature.Features) {
	s.once.Do(func() {
		s.features = feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
		s.factory = informers.NewSharedInformerFactory(nil, 0)
		core, storage := s.factory.Core().V1(), s.factory.Storage().V1()
		load(core.Namespaces().Informer(), o.Namespaces)
		load(core.PersistentVolumes().Informer(), o.PersistentVolumes)
		load(core.PersistentVolumeClaims().Informer(), o.PersistentVolumeClaims)
		load(storage.StorageClasses().Informer(), o.StorageClasses)
		load(storage.CSIDrivers().Informer(), o.CSIDrivers)
		load(storage.VolumeAttachments().Informer(), o.VolumeAttachments)
	})
	return s.factory, s.features
}

func load[T any](informer cache.SharedIndexInformer, objects []T) {
	for _, o := range objects {
		_ = informer.GetIndexer().Add(o) // fails only for objects without metadata, which these types have
	}
}

// snapshot lists the nodes of a Cluster.
type snapshot struct {
	fwk.SharedLister
	c *Cluster
}

func (s snapshot) NodeInfos() fwk.NodeInfoLister { return s }

func (s snapshot) StorageInfos() fwk.StorageInfoLister { return s }

// List implements fwk.NodeInfoLister.
func (s snapshot) List() ([]fwk.NodeInfo, error) {
	return s.which(func(*node) bool { return true }), nil
}

// HavePodsWithAffinityList implements fwk.NodeInfoLister.
func (s snapshot) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) {
	return s.which(func(n *node) bool { return len(n.info.PodsWithAffinity) > 0 }), nil
}

// HavePodsWithRequiredAntiAffinityList implements fwk.NodeInfoLister.
func (s snapshot) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return s.which(func(n *node) bool { return len(n.info.PodsWithRequiredAntiAffinity) > 0 }), nil
}

// HavePodsWithRequiredNonHostScopedAntiAffinityList implements fwk.NodeInfoLister.
func (s snapshot) HavePodsWithRequiredNonHostScopedAntiAffinityList() ([]fwk.NodeInfo, error) {
	return s.which(func(n *node) bool { return len(n.info.PodsWithRequiredNonHostScopedAntiAffinity) > 0 }), nil
}

// Get implements fwk.NodeInfoLister.
func (s snapshot) Get(name string) (fwk.NodeInfo, error) {
	if i, ok := s.c.byName[name]; ok {
		return s.c.nodes[i].info, nil
	}
	return nil, fmt.Errorf("node %q not found", name)
}

// IsPVCUsedByPods implements fwk.StorageInfoLister.
func (s snapshot) IsPVCUsedByPods(key string) bool {
	for _, n := range s.c.nodes {
		if n.info.PVCRefCounts[key] > 0 {
			return true
		}
	}
	return false
}

func (s snapshot) which(f func(*node) bool) []fwk.NodeInfo {
	count := 0
	for _, n := range s.c.nodes {
		if f(n) {
			count++
		}
	}
	out := make([]fwk.NodeInfo, 0, count)
	for _, n := range s.c.nodes {
		if f(n) {
			out = append(out, n.info)
		}
	}
	return out
}

// csiNodes lists CSINodes.
type csiNodes struct {
	list  []*storagev1.CSINode
	named map[string]*storagev1.CSINode
}

func (c csiNodes) CSINodes() fwk.CSINodeLister { return c }

// List implements fwk.CSINodeLister.
func (c csiNodes) List() ([]*storagev1.CSINode, error) { return c.list, nil }

// Get implements fwk.CSINodeLister.
func (c csiNodes) Get(name string) (*storagev1.CSINode, error) {
	if n := c.named[name]; n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("CSINode %q not found", name)
}

package placement

import (
	"context"
	"sync"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

// handle gives upstream plugins a Cluster to look at. It implements the part of the framework's handle that the plugins use
// which this package calls; anything else would panic.
type handle struct {
	fwk.Handle
	c       *Cluster
	factory informers.SharedInformerFactory
}

func (h *handle) SnapshotSharedLister() fwk.SharedLister { return snapshot{c: h.c} }

func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.factory }

func (h *handle) SharedCSIManager() fwk.CSIManager { return csiNodes{h.c.objects.CSINodes} }

func (h *handle) Parallelizer() fwk.Parallelizer { return inTurn{} }

// inTurn does the work of plugins piece by piece: what is asked here is too small to share out.
type inTurn struct{}

// Until implements fwk.Parallelizer.
func (inTurn) Until(_ context.Context, pieces int, work workqueue.DoWorkPieceFunc, _ string) {
	for i := range pieces {
		work(i)
	}
}

// store holds the objects that plugins read through listers. All what-if copies of a Cluster share it.
type store struct {
	once     sync.Once
	factory  informers.SharedInformerFactory
	features feature.Features
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

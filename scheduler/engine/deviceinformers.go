package engine

import (
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/clock"
)

// WatchDevices gives the engine informers of the APIs that it watches and that older
// API servers do not serve: devices are v1 since Kubernetes 1.34, and rules that
// taint them since 1.37. It watches all others in versions that are older than
// 1.30. The engine gets the informers that the factory has.
func WatchDevices(factory informers.SharedInformerFactory, client kubernetes.Interface, name *cache.InformerName) {
	devices, served := client.ResourceV1(), DiscoveryServed(client.Discovery())
	watchOptional(factory, served, name, "resourceclaims", &resourcev1.ResourceClaim{},
		devices.ResourceClaims(metav1.NamespaceAll), func() *resourcev1.ResourceClaimList { return &resourcev1.ResourceClaimList{} })
	watchOptional(factory, served, name, "resourceslices", &resourcev1.ResourceSlice{},
		devices.ResourceSlices(), func() *resourcev1.ResourceSliceList { return &resourcev1.ResourceSliceList{} })
	watchOptional(factory, served, name, "deviceclasses", &resourcev1.DeviceClass{},
		devices.DeviceClasses(), func() *resourcev1.DeviceClassList { return &resourcev1.DeviceClassList{} })
	if utilfeature.DefaultFeatureGate.Enabled(features.DRADeviceTaintRules) {
		watchOptional(factory, served, name, "devicetaintrules", &resourcev1.DeviceTaintRule{},
			devices.DeviceTaintRules(), func() *resourcev1.DeviceTaintRuleList { return &resourcev1.DeviceTaintRuleList{} })
	}
}

// watchOptional has the factory watch a resource of the group resource.k8s.io,
// if it is served.
func watchOptional[L ListObject](factory informers.SharedInformerFactory, served ServedFunc, name *cache.InformerName,
	resource string, object runtime.Object, source ListWatchClient[L], none func() L) {
	gvr := resourcev1.SchemeGroupVersion.WithResource(resource)
	lister := &OptionalLister[L]{Resource: gvr, Client: source, NewList: none, Served: served, Clock: clock.RealClock{}}
	factory.InformerFor(object, Informer(cache.NewSharedIndexInformerWithOptions(lister, object, cache.SharedIndexInformerOptions{
		Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, Identifier: name.WithResource(gvr),
	})))
}

// Informer has a factory use an informer that exists already.
func Informer(informer cache.SharedIndexInformer) func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
	return func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return informer }
}

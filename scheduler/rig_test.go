package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	discoveryfake "k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/scheduler/explainer"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/order"
)

const namespace = "research"

// rig is the whole scheduler, without its main loop, on an API server in memory.
type rig struct {
	*gangs
	t      *testing.T
	server *fake.Clientset
	groups *dynamicfake.FakeDynamicClient
	events chan string
	serial atomic.Int64

	profiles []schedulerconfig.KubeSchedulerProfile
	others   frameworkruntime.Registry // plugins besides ours
}

// gangCycle switches the engine's gangs on for a test and its subtests.
func gangCycle(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.GenericWorkload, true)
}

func newRig(t *testing.T, serving ...string) *rig {
	t.Helper()
	if !utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload) {
		gangCycle(t) // the plugins of a profile depend on it
	}
	listKinds := map[schema.GroupVersionResource]string{crdResource: "CustomResourceDefinitionList"}
	for _, d := range dialects() {
		if d.resource.Group != "" && d.resource.Group != "policy" {
			listKinds[d.resource] = "PodGroupList"
		}
	}
	for _, kind := range []string{"TFJob", "PyTorchJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob"} { // whose suspension is looked for
		listKinds[schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: strings.ToLower(kind) + "s"}] = kind + "List"
	}
	listKinds[schema.GroupVersionResource{Group: "kubeflow.org", Version: "v2beta1", Resource: "mpijobs"}] = "MPIJobList"
	listKinds[schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}] = "JobList"
	listKinds[schema.GroupVersionResource{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"}] = "LeaderWorkerSetList"
	listKinds[schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}] = "JobSetList"
	listKinds[schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayjobs"}] = "RayJobList"
	listKinds[schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}] = "RayClusterList"
	listKinds[schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}] = "TrainJobList"
	r := &rig{t: t, server: fake.NewClientset(), groups: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listKinds)}
	selectFields(r.server)
	r.server.PrependReactor("create", "pods", r.bind)
	recorder := events.NewFakeRecorder(1000)
	r.events = recorder.Events
	config, err := defaultConfig()
	if err != nil {
		t.Fatal(err)
	}
	if r.profiles, err = addProfiles(config.Profiles, serving); err != nil {
		t.Fatal(err)
	}
	// Explanations are read from a real API server only; they have tests of their own.
	unread := func(context.Context, *kube.Client, collect.Options) (explainer.Mirror, error) {
		return nil, errors.New("an API server in memory has no snapshot")
	}
	if r.gangs, err = newGangs(gangsConfig{
		client: r.server, dynamic: r.groups, follow: unread, namespace: DefaultNamespace, names: profileNames(r.profiles), recorder: recorder, idle: func(context.Context) {}, busy: func() bool { return false },
		priority: gangcache.MemberPriority, policy: order.HighestResponseRatio,
	}); err != nil {
		t.Fatal(err)
	}
	return r
}

// start runs it until the test ends.
func (r *rig) start() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	broadcaster := events.NewEventBroadcasterAdapterWithContext(ctx, r.client)
	engine, err := upstream.New(ctx, r.client, r.factory, nil,
		profile.RecorderFactory(func(name string) events.EventRecorderLogger { return broadcaster.NewRecorder(name) }),
		upstream.WithProfiles(r.profiles...), upstream.WithPodInitialBackoffSeconds(1), upstream.WithPodMaxBackoffSeconds(1))
	if err != nil {
		r.t.Fatal(err)
	}
	var work sync.WaitGroup
	r.follow(ctx, &work, engine, func() { r.t.Error("the group objects cannot be read") })
	r.factory.StartWithContext(ctx)
	r.factory.WaitForCacheSyncWithContext(ctx)
	if err := engine.WaitForHandlersSync(ctx); err != nil {
		r.t.Fatal(err)
	}
	work.Go(func() { engine.Run(ctx) })
	r.t.Cleanup(func() {
		cancel()
		work.Wait()
		r.factory.Shutdown()
		broadcaster.Shutdown()
	})
}

// bind is what the API server does to a pod that is bound.
func (r *rig) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding := action.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
	obj, err := r.server.Tracker().Get(podResource, binding.Namespace, binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod := obj.(*corev1.Pod).DeepCopy()
	pod.Spec.NodeName = binding.Target.Name
	pod.ResourceVersion = r.version()
	return true, binding, r.server.Tracker().Update(podResource, pod, binding.Namespace)
}

func (r *rig) version() string { return strconv.FormatInt(r.serial.Add(1), 10) }

func (r *rig) node(name string, cpus int) {
	r.t.Helper()
	list := corev1.ResourceList{corev1.ResourceCPU: quantity(strconv.Itoa(cpus)), corev1.ResourcePods: quantity("110")}
	_, err := r.server.CoreV1().Nodes().Create(r.t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: r.version()}, Status: corev1.NodeStatus{
			Capacity: list, Allocatable: list, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}, metav1.CreateOptions{})
	r.must(err)
}

// pod is one of a gang that requests a CPU.
func (r *rig) pod(name, schedulerName string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(name + "-" + r.version()), ResourceVersion: r.version(), CreationTimestamp: metav1.Now(),
		},
		Spec: corev1.PodSpec{SchedulerName: schedulerName, Containers: []corev1.Container{{
			Name: "main", Image: "x", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: quantity("1")}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func (r *rig) create(pods ...*corev1.Pod) {
	r.t.Helper()
	for _, pod := range pods {
		_, err := r.server.CoreV1().Pods(pod.Namespace).Create(r.t.Context(), pod, metav1.CreateOptions{})
		r.must(err)
	}
}

func (r *rig) change(name string, change func(*corev1.Pod)) {
	r.t.Helper()
	pod := r.get(name).DeepCopy()
	change(pod)
	pod.ResourceVersion = r.version()
	_, err := r.server.CoreV1().Pods(namespace).Update(r.t.Context(), pod, metav1.UpdateOptions{})
	r.must(err)
}

func (r *rig) get(name string) *corev1.Pod {
	r.t.Helper()
	pod, err := r.server.CoreV1().Pods(namespace).Get(r.t.Context(), name, metav1.GetOptions{})
	r.must(err)
	return pod
}

func (r *rig) delete(names ...string) {
	r.t.Helper()
	for _, name := range names {
		r.must(r.server.CoreV1().Pods(namespace).Delete(r.t.Context(), name, metav1.DeleteOptions{}))
	}
}

func (r *rig) placed(names ...string) (n int) {
	r.t.Helper()
	for _, name := range names {
		if r.get(name).Spec.NodeName != "" {
			n++
		}
	}
	return n
}

func (r *rig) waitPlaced(names ...string) {
	r.t.Helper()
	poll.Until(r.t, fmt.Sprintf("%v are placed", names), func() bool { return r.placed(names...) == len(names) })
}

// waitMessage waits until a pod's condition has the reason why it is not placed.
func (r *rig) waitMessage(name, why string) {
	r.t.Helper()
	poll.Until(r.t, name+" has the message "+why, func() bool { return hasMessage(r.get(name), why) })
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// crd begins or ceases to serve a resource.
func (r *rig) crd(resource schema.GroupVersionResource, served bool) {
	r.t.Helper()
	ctx, definitions, name := context.Background(), r.groups.Resource(crdResource), resource.GroupResource().String()
	if !served {
		r.must(definitions.Delete(ctx, name, metav1.DeleteOptions{}))
		return
	}
	_, err := definitions.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": name},
		"spec":   map[string]any{"versions": []any{map[string]any{"name": resource.Version, "served": true, "storage": true}}},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}},
	}}, metav1.CreateOptions{})
	r.must(err)
}

// serveBuiltIn has discovery list a resource.
func (r *rig) serveBuiltIn(resource schema.GroupVersionResource) {
	discovery := r.server.Discovery().(*discoveryfake.FakeDiscovery)
	discovery.Resources = append(discovery.Resources, &metav1.APIResourceList{
		GroupVersion: resource.GroupVersion().String(), APIResources: []metav1.APIResource{{Name: resource.Resource}},
	})
}

// selectFields has the API server in memory select pods by phase, as a real one
// does: to a watch, a pod that is selected no more is deleted.
func selectFields(server *fake.Clientset) {
	selected := func(obj runtime.Object, selector fields.Selector) bool {
		pod, ok := obj.(*corev1.Pod)
		return ok && (selector == nil || selector.Matches(fields.Set{"status.phase": string(pod.Status.Phase)}))
	}
	server.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		obj, err := server.Tracker().List(podResource, corev1.SchemeGroupVersion.WithKind("Pod"), action.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		list := obj.(*corev1.PodList)
		kept := list.Items[:0]
		for i := range list.Items {
			if selected(&list.Items[i], action.(clienttesting.ListAction).GetListRestrictions().Fields) {
				kept = append(kept, list.Items[i])
			}
		}
		list.Items = kept
		return true, list, nil
	})
	server.PrependWatchReactor("pods", func(action clienttesting.Action) (bool, watch.Interface, error) {
		selector := action.(clienttesting.WatchAction).GetWatchRestrictions().Fields
		w, err := server.Tracker().Watch(podResource, action.GetNamespace(), kubetest.WatchedFrom(action))
		if err != nil {
			return true, nil, err
		}
		var mu sync.Mutex
		known := map[types.UID]bool{}
		return true, watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
			mu.Lock()
			defer mu.Unlock()
			pod, ok := e.Object.(*corev1.Pod)
			if !ok {
				return e, true
			}
			was := known[pod.UID] || e.Type != watch.Added
			is := e.Type != watch.Deleted && selected(pod, selector)
			known[pod.UID] = is
			if !is {
				e.Type = watch.Deleted
			}
			return e, is || was
		}), nil
	})
}

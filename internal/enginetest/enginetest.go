// Package enginetest runs the engine in the process of a test, on a clientset
// that keeps objects in memory. It takes seconds where a control plane takes
// minutes, and lets a test refuse any request. What a real API server adds,
// such as graceful deletion, is not there.
package enginetest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/features"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/gangctl/gangctl/scheduler/engine"
)

// Profile is the schedulerName of the one profile.
const Profile = "gang-scheduler"

// Namespace is where helpers put pods and gangs.
const Namespace = "ns"

// Plugin is one that is enabled alongside the engine's own.
type Plugin struct {
	Name string
	New  frameworkruntime.PluginFactory
	// Args are its arguments as JSON; empty for none.
	Args   string
	Weight int32
	// Replaces is a plugin of the engine that is switched off; empty for none.
	Replaces string
	// ReplacesPermit is one that is switched off at Permit only; empty for none.
	ReplacesPermit string
}

// Cluster is an engine and what it schedules.
type Cluster struct {
	Client *fake.Clientset
	Groups *engine.VirtualGroups
	Engine *upstream.Scheduler
	// Pods is the informer that the engine reads. It calls its handlers one
	// after another, in the order in which they were added.
	Pods cache.SharedIndexInformer
	// Through wraps the client that the engine writes through; it may be nil.
	Through func(kubernetes.Interface) kubernetes.Interface
	// Attach is called with the engine before it runs; it may be nil.
	Attach func(*upstream.Scheduler)

	t testing.TB
}

// Start runs an engine until the test ends. Prepare, which may be nil, is
// called before anything is read.
func Start(t testing.TB, prepare func(*Cluster), plugins ...Plugin) *Cluster {
	t.Helper()
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.GenericWorkload, true)
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	c := &Cluster{Client: fake.NewClientset(), Groups: engine.NewVirtualGroups(), t: t}
	c.Client.PrependReactor("create", "pods", c.Bind)
	pods := coreinformers.NewFilteredPodInformer(c.Client, metav1.NamespaceAll, 0, cache.Indexers{}, nil)
	if err := pods.SetTransform(hideLeaving); err != nil {
		t.Fatal(err)
	}
	c.Pods = &ordered{SharedIndexInformer: pods}
	factory := informers.NewSharedInformerFactory(c.Client, 0)
	factory.InformerFor(&corev1.Pod{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return c.Pods })
	factory.InformerFor(&schedulingv1beta1.PodGroup{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(c.Groups, &schedulingv1beta1.PodGroup{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	})
	if prepare != nil {
		prepare(c)
	}
	client := engine.StatusClient(c.Client, c)
	if c.Through != nil {
		client = c.Through(client)
	}
	registry, profiles := configure(t, plugins)
	broadcaster := events.NewEventBroadcasterAdapterWithContext(ctx, client)
	var err error
	c.Engine, err = upstream.New(ctx, client, factory, nil,
		profile.RecorderFactory(func(name string) events.EventRecorderLogger { return broadcaster.NewRecorder(name) }),
		upstream.WithProfiles(profiles...), upstream.WithFrameworkOutOfTreeRegistry(registry),
		upstream.WithPodInitialBackoffSeconds(1), upstream.WithPodMaxBackoffSeconds(1))
	if err != nil {
		t.Fatal(err)
	}
	if c.Attach != nil {
		c.Attach(c.Engine)
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	if err := c.Engine.WaitForHandlersSync(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); c.Engine.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		factory.Shutdown()
		broadcaster.Shutdown()
	})
	return c
}

func configure(t testing.TB, plugins []Plugin) (frameworkruntime.Registry, []schedulerconfig.KubeSchedulerProfile) {
	config, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	p := &config.Profiles[0]
	p.SchedulerName = Profile
	registry := frameworkruntime.Registry{}
	for _, plugin := range plugins {
		registry[plugin.Name] = plugin.New
		p.Plugins.MultiPoint.Enabled = append(p.Plugins.MultiPoint.Enabled, schedulerconfig.Plugin{Name: plugin.Name, Weight: plugin.Weight})
		p.Plugins.MultiPoint.Enabled = slices.DeleteFunc(p.Plugins.MultiPoint.Enabled, func(q schedulerconfig.Plugin) bool {
			return plugin.Replaces != "" && q.Name == plugin.Replaces
		})
		if plugin.ReplacesPermit != "" {
			p.Plugins.Permit.Disabled = append(p.Plugins.Permit.Disabled, schedulerconfig.Plugin{Name: plugin.ReplacesPermit})
		}
		if plugin.Args != "" {
			p.PluginConfig = append(p.PluginConfig, schedulerconfig.PluginConfig{
				Name: plugin.Name, Args: &runtime.Unknown{Raw: []byte(plugin.Args), ContentType: runtime.ContentTypeJSON},
			})
		}
	}
	return registry, config.Profiles
}

// hideLeaving does what the scheduler's own informer does with members that are
// being deleted.
func hideLeaving(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok && pod.DeletionTimestamp != nil && pod.Spec.NodeName != "" {
		pod = pod.DeepCopy()
		pod.Spec.SchedulingGroup = nil
		return pod, nil
	}
	return obj, nil
}

// GroupOf finds the virtual PodGroup of a pod that [Pod] made, even of one that
// leaves.
func (c *Cluster) GroupOf(pod *corev1.Pod) (group types.NamespacedName, ok bool) {
	name, ok := pod.Labels[groupLabel]
	return types.NamespacedName{Namespace: pod.Namespace, Name: name}, ok
}

// Required is the minimum and the priority of a gang.
func (c *Cluster) Required(group types.NamespacedName) (count, priority int32, ok bool) {
	object, ok := c.Groups.Get(group.Namespace, group.Name)
	if !ok {
		return 0, 0, false
	}
	return object.Spec.SchedulingPolicy.Gang.MinCount, *object.Spec.Priority, true
}

// GroupCondition implements engine.ConditionSink.
func (c *Cluster) GroupCondition(namespace, name, kind string) *metav1.Condition {
	return c.Groups.Condition(namespace, name, kind)
}

// SetCondition implements engine.ConditionSink.
func (c *Cluster) SetCondition(namespace, name string, condition metav1.Condition) (*schedulingv1beta1.PodGroup, bool) {
	return c.Groups.SetCondition(namespace, name, condition)
}

// Bind does what an API server does with the binding of a pod.
func (c *Cluster) Bind(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding, ok := action.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
	if !ok {
		return false, nil, nil
	}
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	obj, err := c.Client.Tracker().Get(pods, action.GetNamespace(), binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod := obj.(*corev1.Pod).DeepCopy()
	pod.Spec.NodeName = binding.Target.Name
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	return true, binding, c.Client.Tracker().Update(pods, pod, pod.Namespace)
}

// FailBindings refuses the binding of a pod, so many times; indefinitely if times
// is negative.
func (c *Cluster) FailBindings(pod string, times int, err error) {
	c.Client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "binding" || times == 0 {
			return false, nil, nil
		}
		if binding, ok := action.(clienttesting.CreateAction).GetObject().(*corev1.Binding); !ok || binding.Name != pod {
			return false, nil, nil
		}
		if times > 0 {
			times--
		}
		return true, nil, err
	})
}

// Group adds a gang, or changes its minimum. Its name is that of its dialect,
// labels, and what is given.
func (c *Cluster) Group(name string, minimum, priority int32, change ...func(*schedulingv1beta1.PodGroup)) {
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "labels:" + name, UID: types.UID("group-" + name)},
		Spec: schedulingv1beta1.PodGroupSpec{
			Priority:         &priority,
			DisruptionMode:   &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}},
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: minimum}},
		},
	}
	for _, f := range change {
		f(group)
	}
	c.Groups.Set(group)
}

// Condition returns the message of a pod's PodScheduled condition.
func (c *Cluster) Condition(name string) string {
	pod, err := c.Client.CoreV1().Pods(Namespace).Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition.Message
		}
	}
	return ""
}

// ordered is an informer that calls its handlers one after another, as the
// scheduler's own does.
type ordered struct {
	cache.SharedIndexInformer

	mu           sync.Mutex
	handlers     []cache.ResourceEventHandler
	registration cache.ResourceEventHandlerRegistration
}

// AddEventHandler implements cache.SharedInformer.
func (o *ordered) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return o.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (o *ordered) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.registration == nil {
		registration, err := o.SharedIndexInformer.AddEventHandlerWithOptions(cache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(obj any, initial bool) { o.each(func(h cache.ResourceEventHandler) { h.OnAdd(obj, initial) }) },
			UpdateFunc: func(old, obj any) { o.each(func(h cache.ResourceEventHandler) { h.OnUpdate(old, obj) }) },
			DeleteFunc: func(obj any) { o.each(func(h cache.ResourceEventHandler) { h.OnDelete(obj) }) },
		}, options)
		if err != nil {
			return nil, err
		}
		o.registration = registration
	}
	o.handlers = append(o.handlers, handler)
	return o.registration, nil
}

func (o *ordered) each(call func(cache.ResourceEventHandler)) {
	o.mu.Lock()
	handlers := o.handlers[:len(o.handlers):len(o.handlers)]
	o.mu.Unlock()
	for _, handler := range handlers {
		call(handler)
	}
}

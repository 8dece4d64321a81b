package planner

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

const (
	ours = "gang-scheduler"
	gpus = corev1.ResourceName("nvidia.com/gpu")
)

func TestMain(m *testing.M) {
	if err := utilfeature.DefaultMutableFeatureGate.OverrideDefault(features.GenericWorkload, true); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	watch.DefaultChanSize = 10_000 // a watcher of the tracker whose channel is full panics
	os.Exit(m.Run())
}

// versioned numbers the versions of objects, as an API server does; the engine passes over updates without a new one.
type versioned struct {
	clienttesting.ObjectTracker
	newest atomic.Int64
}

func (v *versioned) number(obj runtime.Object) {
	if meta, err := apimeta.Accessor(obj); err == nil {
		meta.SetResourceVersion(fmt.Sprint(v.newest.Add(1)))
	}
}

func (v *versioned) Create(gvr schema.GroupVersionResource, obj runtime.Object, ns string, options ...metav1.CreateOptions) error {
	v.number(obj)
	return v.ObjectTracker.Create(gvr, obj, ns, options...)
}

func (v *versioned) Update(gvr schema.GroupVersionResource, obj runtime.Object, ns string, options ...metav1.UpdateOptions) error {
	v.number(obj)
	return v.ObjectTracker.Update(gvr, obj, ns, options...)
}

func (v *versioned) Patch(gvr schema.GroupVersionResource, obj runtime.Object, ns string, options ...metav1.PatchOptions) error {
	v.number(obj)
	return v.ObjectTracker.Patch(gvr, obj, ns, options...)
}

// rig is the engine with our plugin, on an API that is kept in memory.
type rig struct {
	*testing.T
	client  *fake.Clientset
	api     clienttesting.ObjectTracker // what the client sees
	engine  *upstream.Scheduler
	planner *Planner
	planned bool
	claims  *claims.Ledger
	reasons *reasons.Store

	registry frameworkruntime.Registry
	popped   func(*framework.QueuedPodGroupInfo) // is called with each gang that leaves the engine's queue, before its attempt begins

	mu       sync.Mutex
	attempts map[string]int // of gangs, by name
	writes   map[string]int // to the API, by kind
	watched  map[string]bool
}

// change adapts the engine before it runs.
type change func(*rig, *schedulerconfig.KubeSchedulerProfile)

// withArgs sets the arguments of the planner.
func withArgs(text string) change {
	return func(_ *rig, profile *schedulerconfig.KubeSchedulerProfile) {
		ours := func(c schedulerconfig.PluginConfig) bool { return c.Name == Name }
		profile.PluginConfig = append(slices.DeleteFunc(profile.PluginConfig, ours), schedulerconfig.PluginConfig{
			Name: Name, Args: &runtime.Unknown{Raw: []byte(text), ContentType: runtime.ContentTypeJSON},
		})
	}
}

// newRig runs the engine with the planner.
func newRig(t *testing.T, changes ...change) *rig {
	return startRig(t, true, clock.RealClock{}, changes...)
}

// startRig runs the engine, with the planner if planned; reports are timed by a clock.
func startRig(t *testing.T, planned bool, reports clock.PassiveClock, changes ...change) *rig {
	t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	r := &rig{T: t, client: &fake.Clientset{}, reasons: reasons.New(reports, nil), attempts: map[string]int{}, writes: map[string]int{}, watched: map[string]bool{}}
	r.api = &versioned{ObjectTracker: clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())}
	r.client.AddReactor("*", "*", r.record)
	r.client.AddReactor("create", "pods", r.bind)
	r.client.AddReactor("*", "*", clienttesting.ObjectReaction(r.api))
	r.client.AddWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := r.api.Watch(action.GetResource(), action.GetNamespace())
		r.mu.Lock()
		defer r.mu.Unlock()
		r.watched[action.GetResource().Resource] = true
		return true, w, err
	})
	config, err := latest.Default()
	r.must(err)
	config.Profiles[0].SchedulerName = ours
	multi := &config.Profiles[0].Plugins.MultiPoint
	if planned {
		multi.Enabled = append(multi.Enabled, schedulerconfig.Plugin{Name: Name})
		withArgs(`{"searchBudget":"10s"}`)(r, &config.Profiles[0]) // on a busy machine, too, searches end with a proof
	}
	handle := engine.NewHandle()
	attempts := NewAttempts(handle, clock.RealClock{})
	r.claims = claims.NewLedger(handle, attempts, clock.RealClock{}, audience.Hidden)
	r.planner = New(handle, attempts, r.claims, nil, r.reasons, nil, config.Profiles)
	r.planner.Register(metrics.NewKubeRegistry().MustRegister)
	r.registry = frameworkruntime.Registry{Name: handle.Binding(r.planner.NewPlugin)}
	for _, c := range changes {
		c(r, &config.Profiles[0])
	}
	factory := informers.NewSharedInformerFactory(r.client, 0)
	recorders := profile.RecorderFactory(func(string) events.EventRecorderLogger { return &recorder{rig: r} })
	r.engine, err = upstream.New(ctx, r.client, factory, nil, recorders,
		upstream.WithProfiles(config.Profiles...),
		upstream.WithFrameworkOutOfTreeRegistry(r.registry),
		upstream.WithPodInitialBackoffSeconds(0), upstream.WithPodMaxBackoffSeconds(0),
	)
	r.must(err)
	if r.popped != nil {
		next := r.engine.NextEntity
		r.engine.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
			entity, err := next(logger)
			if gang, ok := entity.(*framework.QueuedPodGroupInfo); ok && err == nil {
				r.popped(gang)
			}
			return entity, err
		}
	}
	if planned {
		Follow(r.engine, r.planner, func(*corev1.Pod) {})
		r.planned = true
	}
	next := r.engine.NextEntity
	r.engine.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		entity, err := next(logger)
		if gang, ok := entity.(*framework.QueuedPodGroupInfo); ok && err == nil {
			r.mu.Lock()
			r.attempts[gang.GetName()]++
			r.mu.Unlock()
		}
		return entity, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	r.must(r.engine.WaitForHandlersSync(ctx))
	poll.Until(r, "all is watched", func() bool { // what is created between a list and its watch would be missed
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.watched["nodes"] && r.watched["pods"] && r.watched["podgroups"]
	})
	var running sync.WaitGroup
	running.Go(func() { r.engine.Run(ctx) })
	running.Go(func() { r.planner.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait(); factory.Shutdown() })
	return r
}

// bind is what the API server makes of a binding.
func (r *rig) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding := action.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
	obj, err := r.api.Get(action.GetResource(), action.GetNamespace(), binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod := obj.(*corev1.Pod).DeepCopy()
	pod.Spec.NodeName = binding.Target.Name
	return true, binding, r.api.Update(action.GetResource(), pod, action.GetNamespace())
}

// record counts writes.
func (r *rig) record(action clienttesting.Action) (bool, runtime.Object, error) {
	switch action.GetVerb() {
	case "get", "list", "watch":
	default:
		r.mu.Lock()
		r.writes[action.GetVerb()+" "+action.GetResource().Resource+"/"+action.GetSubresource()]++
		r.mu.Unlock()
	}
	return false, nil, nil
}

// tried is how often the engine began with a gang.
func (r *rig) tried(gang string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.attempts[gang]
}

func (r *rig) counted() (attempts, writes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.attempts {
		attempts += n
	}
	for _, n := range r.writes {
		writes += n
	}
	return attempts, writes
}

// recorder counts events as the writes that they become.
type recorder struct {
	events.EventRecorderLogger
	rig *rig
}

func (e *recorder) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {
	e.rig.mu.Lock()
	defer e.rig.mu.Unlock()
	e.rig.writes["event"]++
}

func (e *recorder) WithLogger(klog.Logger) events.EventRecorderLogger { return e }

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// node adds a Ready node; amounts are as in "nvidia.com/gpu", "8".
func (r *rig) node(name string, amounts ...string) *corev1.Node {
	r.Helper()
	return r.changedNode(name, func(*corev1.Node) {}, amounts...)
}

// changedNode creates a node with a change.
func (r *rig) changedNode(name string, change func(*corev1.Node), amounts ...string) *corev1.Node {
	r.Helper()
	has := resources(append([]string{"pods", "110", "cpu", "64", "memory", "256Gi"}, amounts...)...)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status = corev1.NodeStatus{Allocatable: has, Capacity: has, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	change(n)
	r.must(r.api.Create(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""))
	return n
}

// knowsNodes waits until the engine knows the nodes: an event for one after that would have a gang tried again.
func (r *rig) knowsNodes() {
	r.Helper()
	list, err := r.api.List(corev1.SchemeGroupVersion.WithResource("nodes"), corev1.SchemeGroupVersion.WithKind("Node"), "")
	r.must(err)
	nodes := len(list.(*corev1.NodeList).Items)
	poll.Until(r, "the engine knows the nodes", func() bool { return r.engine.Cache.NodeCount() == nodes })
}

func resources(amounts ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(amounts); i += 2 {
		out[corev1.ResourceName(amounts[i])] = resource.MustParse(amounts[i+1])
	}
	return out
}

// gang adds a PodGroup.
func (r *rig) gang(name string, minimum int32, change ...func(*schedulingv1beta1.PodGroup)) {
	r.Helper()
	r.knowsNodes()
	g := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
	g.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: minimum}
	g.Spec.Priority = ptr.To(int32(0))
	for _, c := range change {
		c(g)
	}
	r.must(r.api.Create(schedulingv1beta1.SchemeGroupVersion.WithResource("podgroups"), g, "default"))
}

// pod is a pod of the default namespace, unless gang is empty a member of one.
func pod(name, gang string, amounts ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}}}
	p.Spec = corev1.PodSpec{SchedulerName: ours, Priority: ptr.To(int32(0)), Containers: []corev1.Container{{
		Name: "main", Resources: corev1.ResourceRequirements{Requests: resources(amounts...)},
	}}}
	if gang != "" {
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &gang}
	}
	return p
}

func (r *rig) create(pods ...*corev1.Pod) {
	r.Helper()
	for _, p := range pods {
		r.must(r.api.Create(corev1.SchemeGroupVersion.WithResource("pods"), p, p.Namespace))
	}
}

func (r *rig) delete(names ...string) {
	r.Helper()
	for _, name := range names {
		r.must(r.client.CoreV1().Pods("default").Delete(r.Context(), name, metav1.DeleteOptions{}))
	}
}

// places are the nodes of the pods that have one.
func (r *rig) places() map[string]string {
	r.Helper()
	list, err := r.api.List(corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithKind("Pod"), "default")
	r.must(err)
	out := map[string]string{}
	for _, p := range list.(*corev1.PodList).Items {
		if p.Spec.NodeName != "" {
			out[p.Name] = p.Spec.NodeName
		}
	}
	return out
}

func (r *rig) bound(names ...string) {
	r.Helper()
	poll.Until(r, fmt.Sprint(names, " get nodes"), func() bool {
		places := r.places()
		for _, name := range names {
			if places[name] == "" {
				return false
			}
		}
		return true
	})
}

// rests reports whether a gang is parked, and nothing that has happened has it tried again.
func (r *rig) rests(gang string) bool {
	r.planner.mu.Lock()
	defer r.planner.mu.Unlock()
	m := r.planner.parkedGangs[types.NamespacedName{Namespace: "default", Name: gang}]
	return m != nil && m.cause == causeTime
}

// parked waits until a gang is parked, with no event that may help it.
func (r *rig) parked(gang string) reasons.Reason {
	r.Helper()
	group := types.NamespacedName{Namespace: "default", Name: gang}
	poll.Until(r, gang+" is parked, and nothing happens", func() bool {
		r.planner.mu.Lock()
		defer r.planner.mu.Unlock()
		m, under := r.planner.parkedGangs[group], r.planner.current
		ended := under == nil || under.group != group // the reason is stored when it is parked already
		return m != nil && m.cause == causeTime && ended
	})
	reason, _ := r.reasons.Get(group)
	return reason
}

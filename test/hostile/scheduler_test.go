package hostile

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/internal/enginetest"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/pdb"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/groupinformer"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
	"github.com/gangctl/gangctl/scheduler/plugins/replacement"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// joined is the cache of gangs as the tracker of dead members sees it.
type joined struct{ *gangcache.Cache }

// GroupOf implements replacement.Gangs.
func (j joined) GroupOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	key, ok := j.GangOf(pod.UID)
	return key.VirtualGroup(), ok
}

// Required implements replacement.Gangs.
func (j joined) Required(group types.NamespacedName) (count, priority int32, ok bool) {
	key, err := gang.ParseVirtualName(group.Namespace, group.Name)
	if err != nil {
		return 0, 0, false
	}
	return j.Cache.Required(key)
}

// schedule brings the objects into the cache of gangs, and lets the engine with the planner look at the pods. Those of the other tenant
// must get their nodes.
func schedule(t *testing.T, in input, a *allowance) {
	t.Helper()
	config, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	config.Profiles[0].SchedulerName = enginetest.Profile
	handle, panics, counted := engine.NewHandle(), engine.NewPanics(), metrics.NewKubeRegistry()
	panics.Register(counted.MustRegister)
	attempts := planner.NewAttempts(handle, clock.RealClock{})
	ledger := claims.NewLedger(handle, attempts, clock.RealClock{}, audience.Hidden)
	why := reasons.New(clock.RealClock{}, nil)
	plans := planner.New(handle, attempts, ledger, nil, why, panics, []schedulerconfig.KubeSchedulerProfile{config.Profiles[0]})
	var tracker *replacement.Tracker
	var known *gangcache.Cache
	c := enginetest.Start(t, func(c *enginetest.Cluster) {
		known = gangcache.New(planner.GroupSink{VirtualGroups: c.Groups, Reasons: why}, gangcache.MemberPriority)
		fill(known, in)
		for _, node := range in.nodes {
			c.Create(node)
		}
		for _, device := range in.devices {
			if err := c.Client.Tracker().Add(device); err != nil {
				t.Fatal(err)
			}
		}
		for _, pod := range in.pods {
			view := known.View(pod).DeepCopy()
			view.Spec.SchedulerName = enginetest.Profile
			c.Create(view)
		}
		ended := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Core().V1().Pods().Informer()
		if tracker, err = replacement.NewTracker(joined{known}, handle, ledger, c.Pods, ended, clock.RealClock{}); err != nil {
			t.Fatal(err)
		}
		c.Attach = func(e *upstream.Scheduler) { planner.Follow(e, plans, func(*corev1.Pod) {}) }
	},
		enginetest.Plugin{Name: replacement.Name, Weight: replacement.Weight, New: handle.Binding(func(ctx contextType, o runtime.Object, f handleType) (pluginType, error) {
			return tracker.NewPlugin(ctx, o, f)
		})},
		enginetest.Plugin{Name: claims.Name, New: handle.Binding(ledger.NewPlugin)},
		enginetest.Plugin{Name: planner.Name, New: handle.Binding(plans.NewPlugin)},
	)
	for deadline := time.Now().Add(patience); !allTried(t, c, known); time.Sleep(2 * time.Millisecond) {
		a.check(t)
		if time.Now().After(deadline) {
			t.Fatalf("after %s the other tenant's gang waits, or a pod was not looked at", patience)
		}
	}
	families, err := counted.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if m.GetCounter().GetValue() > 0 {
				t.Errorf("%s %v: %v", family.GetName(), m.GetLabel(), m.GetCounter().GetValue())
			}
		}
	}
}

// fill brings the objects into the cache, as the informers do, and takes from it what is shown to users.
func fill(known *gangcache.Cache, in input) {
	handler := groupinformer.NewGangHandler(known, func(change func() gangcache.Change) { change() })
	for _, u := range in.objects {
		gvk := u.GroupVersionKind()
		handler.SetObject(gvk.GroupVersion().WithResource(resourceOf(gvk)), u)
	}
	for _, budget := range in.budgets {
		if d, ok := pdb.Declare(budget); ok {
			known.SetBudget(gangcache.Object{Declaration: d, GroupKind: d.Kind.GroupKind()})
		}
	}
	for _, pod := range in.pods {
		known.SetPod(pod)
	}
	for _, key := range known.All() {
		known.Incomplete(key)
		known.Ambiguous(key)
		known.Required(key)
	}
}

// allTried reports whether the other tenant's gang has nodes, and every pod that the engine tries was tried.
func allTried(t *testing.T, c *enginetest.Cluster, known *gangcache.Cache) bool {
	t.Helper()
	list, err := c.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range list.Items {
		if pod.Spec.NodeName != "" {
			continue
		}
		key, member := known.GangOf(pod.UID)
		if pod.Namespace == quiet || member && known.Incomplete(key) == "" && len(pod.Status.Conditions) == 0 && pod.DeletionTimestamp == nil {
			return false
		}
	}
	return true
}

// typed reads the objects that Go types exist for; ok is false if an API server would not have taken them.
func typed(objects []*unstructured.Unstructured) (in input, ok bool) {
	in.objects = objects
	convert := func(u *unstructured.Unstructured, into any) bool {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into) == nil
	}
	for _, u := range objects {
		ok := true
		switch u.GetKind() {
		case "Pod":
			pod := &corev1.Pod{}
			ok = convert(u, pod)
			in.pods = append(in.pods, pod)
		case "Node":
			node := &corev1.Node{}
			ok = convert(u, node)
			in.nodes = append(in.nodes, node)
		case "PodDisruptionBudget":
			budget := &policyv1.PodDisruptionBudget{}
			ok = convert(u, budget)
			in.budgets = append(in.budgets, budget)
		case "Job":
			ok = validJob(u)
		case "ResourceClaim", "ResourceSlice", "DeviceClass":
			device := newDevice(u.GetKind())
			ok = convert(u, device)
			in.devices = append(in.devices, device)
		}
		if !ok || !admitted(u) {
			return input{}, false
		}
	}
	return in, true
}

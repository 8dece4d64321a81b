package planner

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics/testutil"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// disagreements are how often the engine refused what was planned.
func (r *rig) disagreements() int {
	r.Helper()
	n, err := testutil.GetCounterMetricValue(r.planner.plans.disagreements)
	r.must(err)
	return int(n)
}

// results are how many plans had a result.
func (r *rig) results(result string) int {
	r.Helper()
	n, err := testutil.GetCounterMetricValue(r.planner.plans.results.WithLabelValues(result))
	r.must(err)
	return int(n)
}

// picky is a filter that refuses one node.
type picky struct{ node string }

func (p picky) Name() string { return "Picky" }

func (p picky) Filter(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if node.Node().Name == p.node {
		return fwk.NewStatus(fwk.Unschedulable, "not this one")
	}
	return nil
}

// withPicky adds a filter that the planner knows nothing of.
func withPicky(node string) change {
	return func(r *rig, profile *schedulerconfig.KubeSchedulerProfile) {
		r.registry["Picky"] = func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return picky{node}, nil }
		profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, schedulerconfig.Plugin{Name: "Picky"})
	}
}

// A member that the engine refuses on its planned node is placed without a plan, and counted.
func TestTheEngineJudges(t *testing.T) {
	r := newRig(t, withPicky("n1"))
	r.node("n1", "nvidia.com/gpu", "4")
	r.node("n2", "nvidia.com/gpu", "4")
	r.gang("g", 2)
	r.create(member("g", 0, "nvidia.com/gpu", "2"), member("g", 1, "nvidia.com/gpu", "2"))
	r.bound("g-0", "g-1")
	if n := r.disagreements(); n != 2 {
		t.Errorf("%d disagreements, want 2", n)
	}
	for name, node := range r.places() {
		if node != "n2" {
			t.Errorf("%s is on %s", name, node)
		}
	}
}

// A gang that has no placement only under rules that the engine does not enforce is left to the engine.
func TestOnlyProofsRefuse(t *testing.T) {
	ready := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	for name, c := range map[string]struct {
		change change
		node   func(*corev1.Node)
		pod    func(*corev1.Pod)
	}{
		"a node that is not Ready, and has no taint yet": {node: func(n *corev1.Node) { n.Status.Conditions = ready }},
		"a resource that the profile is to ignore": {
			change: func(_ *rig, profile *schedulerconfig.KubeSchedulerProfile) {
				for _, c := range profile.PluginConfig {
					if a, ok := c.Args.(*schedulerconfig.NodeResourcesFitArgs); ok {
						a.IgnoredResources = []string{"example.com/license"}
					}
				}
			},
			pod: func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests["example.com/license"] = resources("x", "1")["x"]
			},
		},
		"a filter that the profile does not use": {
			change: func(_ *rig, profile *schedulerconfig.KubeSchedulerProfile) {
				profile.Plugins.Filter.Disabled = []schedulerconfig.Plugin{{Name: names.NodeUnschedulable}}
			},
			node: func(n *corev1.Node) { n.Spec.Unschedulable = true },
		},
	} {
		t.Run(name, func(t *testing.T) {
			var changes []change
			if c.change != nil {
				changes = append(changes, c.change)
			}
			r := newRig(t, changes...)
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Allocatable: resources("cpu", "4", "memory", "4Gi", "pods", "110")}}
			if c.node != nil {
				c.node(n)
			}
			r.must(r.api.Create(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""))
			r.gang("g", 2)
			a, b := member("g", 0, "cpu", "1"), member("g", 1, "cpu", "1")
			if c.pod != nil {
				c.pod(a)
				c.pod(b)
			}
			r.create(a, b)
			r.bound("g-0", "g-1")
			if r.results(resultUnproven) == 0 {
				t.Error("no plan was unproven, so the test shows nothing")
			}
		})
	}
}

// A gang that the engine did not place, though nothing proves that it cannot, is tried again after a while.
func TestUnprovenIsTriedAgain(t *testing.T) {
	r := newRig(t, withPicky("n1"), withArgs(`{"searchBudget":"10s","retryPeriod":"1s"}`))
	r.node("n1", "nvidia.com/gpu", "4")
	r.gang("g", 1)
	r.create(member("g", 0, "nvidia.com/gpu", "2"))
	if reason := r.parked("g"); reason.Finding.Code != answer.FitsNotPlaced || reason.Finding.Never {
		t.Errorf("a gang that was planned is explained as impossible: %+v", reason)
	}
	attempts := r.tried("g")
	poll.Until(r, "it is tried again", func() bool { return r.tried("g") > attempts })
	if n := r.tried("g"); n != attempts+1 {
		t.Errorf("%d attempts at once", n-attempts)
	}
}

// So is one when a node goes, by the engine's own event.
func TestUnprovenIsTriedWhenANodeGoes(t *testing.T) {
	r := newRig(t, withPicky("n1"), withArgs(`{"searchBudget":"10s","retryPeriod":"5m"}`))
	r.node("n1", "nvidia.com/gpu", "4")
	r.node("n2", "nvidia.com/gpu", "0")
	r.gang("g", 1)
	r.create(member("g", 0, "nvidia.com/gpu", "2"))
	r.parked("g")
	attempts := r.tried("g")
	r.must(r.client.CoreV1().Nodes().Delete(t.Context(), "n2", metav1.DeleteOptions{}))
	poll.Until(r, "it is tried again", func() bool { return r.tried("g") > attempts })
}

func TestArgs(t *testing.T) {
	for args, want := range map[string]string{
		`{"searchBudget":"0s"}`:                      "args.searchBudget: 0s is not from 1ms to 10s",
		`{"searchBudget":"11s"}`:                     "args.searchBudget: 11s is not from 1ms to 10s",
		`{"retryPeriod":"10ms"}`:                     "args.retryPeriod: 10ms is not from 1s to 5m0s",
		`{"retryPeriods":"10s"}`:                     `unknown field "retryPeriods"`,
		`{"searchBudget":"10s","retryPeriod":"10s"}`: "",
	} {
		_, err := New(nil, nil, nil, nil, nil, nil, nil).NewPlugin(t.Context(), &runtime.Unknown{Raw: []byte(args), ContentType: runtime.ContentTypeJSON}, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", args, err, want)
		}
	}
}

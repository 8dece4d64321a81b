package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
)

// broken panics at every extension point.
type broken struct{}

func (broken) Name() string { return "Broken" }

func (broken) PreEnqueue(context.Context, *corev1.Pod) *fwk.Status { panic("PreEnqueue") }

func (broken) PreFilter(context.Context, fwk.CycleState, *corev1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	panic("PreFilter")
}

func (broken) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (broken) Reserve(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	panic("Reserve")
}

func (broken) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) { panic("Unreserve") }

func (broken) Permit(context.Context, fwk.CycleState, *corev1.Pod, string) (*fwk.Status, time.Duration) {
	panic("Permit")
}

func (broken) PreBindPreFlight(context.Context, fwk.CycleState, *corev1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	panic("PreBindPreFlight")
}

func (broken) PreBind(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	panic("PreBind")
}

func (broken) PostBind(context.Context, fwk.CycleState, *corev1.Pod, string) { panic("PostBind") }

func (broken) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{QueueingHintFn: func(klog.Logger, *corev1.Pod, any, any) (fwk.QueueingHint, error) { panic("hint") }}}, nil
}

func (broken) SignPod(context.Context, *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	panic("SignPod")
}

// A panic in a plugin ends neither the process nor another pod's attempt: the pod is refused, with the reason, and it is counted.
func TestGuardedPlugin(t *testing.T) {
	_, ctx := ktesting.NewTestContext(t)
	panics := NewPanics()
	panics.Register(metrics.NewKubeRegistry().MustRegister)
	plugin, err := panics.Guarded(func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return broken{}, nil })(ctx, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, ok := plugin.(interface {
		fwk.PreEnqueuePlugin
		fwk.PreFilterPlugin
		fwk.ReservePlugin
		fwk.PermitPlugin
		fwk.PreBindPlugin
		fwk.PostBindPlugin
		fwk.EnqueueExtensions
		fwk.SignPlugin
	})
	if !ok || p.Name() != "Broken" {
		t.Fatalf("got %T", plugin)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "x"}}
	_, preFilter := p.PreFilter(ctx, nil, pod, nil)
	permit, _ := p.Permit(ctx, nil, pod, "n")
	_, preFlight := p.PreBindPreFlight(ctx, nil, pod, "n")
	_, sign := p.SignPod(ctx, pod)
	all := []*fwk.Status{p.PreEnqueue(ctx, pod), preFilter, p.Reserve(ctx, nil, pod, "n"), permit, preFlight, p.PreBind(ctx, nil, pod, "n"), sign}
	for i, s := range all {
		if s.Code() != fwk.Unschedulable || !strings.Contains(s.Message(), "a bug of the scheduler: it panicked over this pod in Broken") {
			t.Errorf("%d: got %v", i, s)
		}
	}
	p.Unreserve(ctx, nil, pod, "n")
	p.PostBind(ctx, nil, pod, "n")
	events, err := p.EventsToRegister(ctx)
	if err != nil || len(events) != 1 {
		t.Fatalf("got %v, %v", events, err)
	}
	if hint, err := events[0].QueueingHintFn(klog.FromContext(ctx), pod, nil, nil); hint != fwk.Queue || err != nil {
		t.Errorf("got %v, %v", hint, err)
	}
	if got, err := testutil.GetCounterMetricValue(panics.total.WithLabelValues("Broken")); err != nil || int(got) != len(all)+3 {
		t.Errorf("counted %v, %v; want %d", got, err, len(all)+3)
	}
}

// filtering has one extension point, and no set of ours.
type filtering struct{}

func (filtering) Name() string { return "Filtering" }

func (filtering) PostFilter(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	return nil, nil
}

// A plugin is never called at fewer extension points, or at more, for being guarded.
func TestGuardedPluginHasTheSamePoints(t *testing.T) {
	_, err := NewPanics().Guarded(func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return filtering{}, nil })(t.Context(), nil, nil)
	if err == nil || !strings.Contains(err.Error(), "plugin Filtering has the extension points [PostFilter]") {
		t.Errorf("got %v", err)
	}
}

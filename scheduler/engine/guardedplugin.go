package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// Guarded returns a factory of the same plugin, of which no panic over the objects of one user ends the process. The pod over which it
// panicked has no place in this attempt: its condition and its event have the reason, and the engine tries it again later. Where a plugin only has
// an opinion, as with scores, it has none.
//
// The engine calls a plugin at the extension points whose interfaces it has, so what is returned has the same ones. A set that no plugin of
// ours has is an error.
func (p *Panics) Guarded(factory frameworkruntime.PluginFactory) frameworkruntime.PluginFactory {
	return func(ctx context.Context, args runtime.Object, framework fwk.Handle) (fwk.Plugin, error) {
		plugin, err := factory(ctx, args, framework)
		if err != nil {
			return nil, err
		}
		return guarded(plugin, guardedPoint{plugin, p.Guard(plugin.Name())})
	}
}

// guarded returns a plugin with the interfaces of another. Each set of interfaces takes a type of its own.
func guarded(plugin fwk.Plugin, g guardedPoint) (fwk.Plugin, error) {
	_, signs := plugin.(fwk.SignPlugin)
	_, enqueues := plugin.(fwk.PreEnqueuePlugin)
	_, filters := plugin.(fwk.FilterPlugin)
	_, reserves := plugin.(fwk.ReservePlugin)
	_, permits := plugin.(fwk.PermitPlugin)
	_, scores := plugin.(fwk.ScorePlugin)
	_, refuses := plugin.(fwk.PreFilterPlugin)
	_, postBinds := plugin.(fwk.PostBindPlugin)
	_, preempts := plugin.(fwk.PodGroupPostFilterPlugin)
	_, sorts := plugin.(fwk.QueueSortPlugin)
	type (
		refusing struct {
			guardedPreFilter
			guardedEvents
			guardedSign
		}
		reserving struct {
			refusing
			guardedReserve
		}
	)
	refuse := refusing{guardedPreFilter{g}, guardedEvents{g}, guardedSign{g}}
	reserve := reserving{refuse, guardedReserve{g}}
	var made fwk.Plugin
	switch {
	case sorts:
		made = struct {
			guardedPoint
			guardedSort
			guardedReserve
		}{g, guardedSort{g, &corev1.Pod{}}, guardedReserve{g}}
	case preempts:
		made = struct {
			guardedPoint
			guardedPostFilter
			guardedReserve
			guardedEvents
		}{g, guardedPostFilter{g}, guardedReserve{g}, guardedEvents{g}}
	case scores && !refuses:
		made = struct {
			guardedPoint
			guardedScore
			guardedSign
		}{g, guardedScore{g}, guardedSign{g}}
	case scores:
		made = struct {
			guardedPoint
			reserving
			guardedScore
		}{g, reserve, guardedScore{g}}
	case permits:
		made = struct {
			guardedPoint
			reserving
			guardedPreEnqueue
			guardedBinding
			guardedPostBind
		}{g, reserve, guardedPreEnqueue{g}, guardedBinding{g}, guardedPostBind{g}}
	case postBinds:
		made = struct {
			guardedPoint
			reserving
			guardedPostBind
		}{g, reserve, guardedPostBind{g}}
	case filters && enqueues:
		made = struct {
			guardedPoint
			refusing
			guardedPreEnqueue
			guardedFilter
		}{g, refuse, guardedPreEnqueue{g}, guardedFilter{g}}
	case filters && reserves:
		made = struct {
			guardedPoint
			reserving
			guardedFilter
		}{g, reserve, guardedFilter{g}}
	case filters:
		made = struct {
			guardedPoint
			refusing
			guardedFilter
		}{g, refuse, guardedFilter{g}}
	case refuses && signs:
		made = struct {
			guardedPoint
			reserving
		}{g, reserve}
	}
	if have, want := fmt.Sprint(points(made)), fmt.Sprint(points(plugin)); made == nil || have != want {
		return nil, fmt.Errorf("plugin %s has the extension points %s, and is guarded at %s", plugin.Name(), want, have)
	}
	return made, nil
}

// points are the extension points whose interfaces a plugin has.
func points(p fwk.Plugin) (names []string) {
	add := func(name string, has bool) {
		if has {
			names = append(names, name)
		}
	}
	_, has := p.(fwk.PreEnqueuePlugin)
	add("PreEnqueue", has)
	_, has = p.(fwk.QueueSortPlugin)
	add("QueueSort", has)
	_, has = p.(fwk.EnqueueExtensions)
	add("EventsToRegister", has)
	_, has = p.(fwk.PreFilterPlugin)
	add("PreFilter", has)
	_, has = p.(fwk.FilterPlugin)
	add("Filter", has)
	_, has = p.(fwk.PostFilterPlugin)
	add("PostFilter", has)
	_, has = p.(fwk.PodGroupPostFilterPlugin)
	add("PodGroupPostFilter", has)
	_, has = p.(fwk.PreScorePlugin)
	add("PreScore", has)
	_, has = p.(fwk.ScorePlugin)
	add("Score", has)
	_, has = p.(fwk.ReservePlugin)
	add("Reserve", has)
	_, has = p.(fwk.PermitPlugin)
	add("Permit", has)
	_, has = p.(fwk.PreBindPlugin)
	add("PreBind", has)
	_, has = p.(fwk.BindPlugin)
	add("Bind", has)
	_, has = p.(fwk.PostBindPlugin)
	add("PostBind", has)
	_, has = p.(fwk.SignPlugin)
	add("SignPod", has)
	_, has = p.(fwk.PlacementGeneratePlugin)
	add("GeneratePlacements", has)
	_, has = p.(fwk.PlacementScorePlugin)
	add("ScorePlacement", has)
	return names
}

// guardedPoint is a plugin with the guard of its part.
type guardedPoint struct {
	plugin fwk.Plugin
	guard  *Guard
}

// Name implements fwk.Plugin.
func (g guardedPoint) Name() string { return g.plugin.Name() }

// recovered handles a panic over a pod, and returns the status that the pod has; it is deferred.
func (g guardedPoint) recovered(ctx context.Context, pod *corev1.Pod, then func(*fwk.Status)) {
	cause := recover()
	if cause == nil {
		return
	}
	g.guard.count()
	klog.FromContext(ctx).Error(fmt.Errorf("panic: %v", cause), "Recovered from a panic over a pod: this is a bug, please report it",
		"plugin", g.Name(), "pod", klog.KObj(pod), "stack", string(debug.Stack()))
	then(fwk.NewStatus(fwk.Unschedulable, "a bug of the scheduler: it panicked over this pod in "+g.Name()+"; its log has the details"))
}

// status has a panic of f as a status.
func (g guardedPoint) status(ctx context.Context, pod *corev1.Pod, f func() *fwk.Status) (s *fwk.Status) {
	defer g.recovered(ctx, pod, func(bug *fwk.Status) { s = bug })
	return f()
}

type guardedPreEnqueue struct{ at guardedPoint }

// PreEnqueue implements fwk.PreEnqueuePlugin.
func (g guardedPreEnqueue) PreEnqueue(ctx context.Context, pod *corev1.Pod) *fwk.Status {
	return g.at.status(ctx, pod, func() *fwk.Status { return g.at.plugin.(fwk.PreEnqueuePlugin).PreEnqueue(ctx, pod) })
}

type guardedPreFilter struct{ at guardedPoint }

// PreFilter implements fwk.PreFilterPlugin.
func (g guardedPreFilter) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (r *fwk.PreFilterResult, s *fwk.Status) {
	defer g.at.recovered(ctx, pod, func(bug *fwk.Status) { r, s = nil, bug })
	return g.at.plugin.(fwk.PreFilterPlugin).PreFilter(ctx, state, pod, nodes)
}

// PreFilterExtensions implements fwk.PreFilterPlugin. They are not guarded: those of our plugins that have any have them of kube-scheduler's own.
func (g guardedPreFilter) PreFilterExtensions() fwk.PreFilterExtensions {
	return g.at.plugin.(fwk.PreFilterPlugin).PreFilterExtensions()
}

type guardedFilter struct{ at guardedPoint }

// Filter implements fwk.FilterPlugin.
func (g guardedFilter) Filter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	return g.at.status(ctx, pod, func() *fwk.Status { return g.at.plugin.(fwk.FilterPlugin).Filter(ctx, state, pod, node) })
}

type guardedPostFilter struct{ at guardedPoint }

// PostFilter implements fwk.PostFilterPlugin.
func (g guardedPostFilter) PostFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes fwk.NodeToStatusReader) (r *fwk.PostFilterResult, s *fwk.Status) {
	defer g.at.recovered(ctx, pod, func(bug *fwk.Status) { r, s = nil, bug })
	return g.at.plugin.(fwk.PostFilterPlugin).PostFilter(ctx, state, pod, nodes)
}

// PodGroupPostFilter implements fwk.PodGroupPostFilterPlugin.
func (g guardedPostFilter) PodGroupPostFilter(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc) (r *fwk.PodGroupPostFilterResult, s *fwk.Status) {
	defer g.at.recovered(ctx, first(group), func(bug *fwk.Status) { r, s = nil, bug })
	return g.at.plugin.(fwk.PodGroupPostFilterPlugin).PodGroupPostFilter(ctx, state, group, schedule)
}

// first is a member of a gang, by which the gang is found in a log.
func first(group fwk.PodGroupInfo) *corev1.Pod {
	for _, pod := range group.GetUnscheduledPods() {
		return pod
	}
	return &corev1.Pod{}
}

type guardedScore struct{ at guardedPoint }

// PreScore implements fwk.PreScorePlugin.
func (g guardedScore) PreScore(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (s *fwk.Status) {
	defer g.at.recovered(ctx, pod, func(*fwk.Status) { s = fwk.NewStatus(fwk.Skip) })
	return g.at.plugin.(fwk.PreScorePlugin).PreScore(ctx, state, pod, nodes)
}

// Score implements fwk.ScorePlugin.
func (g guardedScore) Score(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) (score int64, s *fwk.Status) {
	defer g.at.recovered(ctx, pod, func(*fwk.Status) { score, s = 0, nil })
	return g.at.plugin.(fwk.ScorePlugin).Score(ctx, state, pod, node)
}

// ScoreExtensions implements fwk.ScorePlugin.
func (g guardedScore) ScoreExtensions() fwk.ScoreExtensions {
	return g.at.plugin.(fwk.ScorePlugin).ScoreExtensions()
}

type guardedReserve struct{ at guardedPoint }

// Reserve implements fwk.ReservePlugin.
func (g guardedReserve) Reserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	return g.at.status(ctx, pod, func() *fwk.Status { return g.at.plugin.(fwk.ReservePlugin).Reserve(ctx, state, pod, node) })
}

// Unreserve implements fwk.ReservePlugin.
func (g guardedReserve) Unreserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) {
	defer g.at.recovered(ctx, pod, func(*fwk.Status) {})
	g.at.plugin.(fwk.ReservePlugin).Unreserve(ctx, state, pod, node)
}

// guardedBinding guards the extension points between the decision for a node and the binding.
type guardedBinding struct{ at guardedPoint }

// Permit implements fwk.PermitPlugin.
func (g guardedBinding) Permit(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) (s *fwk.Status, wait time.Duration) {
	defer g.at.recovered(ctx, pod, func(bug *fwk.Status) { s, wait = bug, 0 })
	return g.at.plugin.(fwk.PermitPlugin).Permit(ctx, state, pod, node)
}

// PreBindPreFlight implements fwk.PreBindPlugin.
func (g guardedBinding) PreBindPreFlight(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) (r *fwk.PreBindPreFlightResult, s *fwk.Status) {
	defer g.at.recovered(ctx, pod, func(bug *fwk.Status) { r, s = nil, bug })
	return g.at.plugin.(fwk.PreBindPlugin).PreBindPreFlight(ctx, state, pod, node)
}

// PreBind implements fwk.PreBindPlugin.
func (g guardedBinding) PreBind(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	return g.at.status(ctx, pod, func() *fwk.Status { return g.at.plugin.(fwk.PreBindPlugin).PreBind(ctx, state, pod, node) })
}

type guardedPostBind struct{ at guardedPoint }

// PostBind implements fwk.PostBindPlugin.
func (g guardedPostBind) PostBind(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) {
	defer g.at.recovered(ctx, pod, func(*fwk.Status) {})
	g.at.plugin.(fwk.PostBindPlugin).PostBind(ctx, state, pod, node)
}

type guardedSort struct {
	at    guardedPoint
	about *corev1.Pod // none: it is called too often to make one each time
}

// Less implements fwk.QueueSortPlugin: who came first is first, where the plugin does not know.
func (g guardedSort) Less(a, b fwk.QueuedEntityInfo) (less bool) {
	defer g.at.recovered(context.Background(), g.about, func(*fwk.Status) { less = a.GetTimestamp().Before(b.GetTimestamp()) })
	return g.at.plugin.(fwk.QueueSortPlugin).Less(a, b)
}

type guardedEvents struct{ at guardedPoint }

// EventsToRegister implements fwk.EnqueueExtensions: a pod is tried again, where the plugin does not know whether an event helps it.
func (g guardedEvents) EventsToRegister(ctx context.Context) ([]fwk.ClusterEventWithHint, error) {
	events, err := g.at.plugin.(fwk.EnqueueExtensions).EventsToRegister(ctx)
	for i := range events {
		if hint := events[i].QueueingHintFn; hint != nil {
			events[i].QueueingHintFn = func(logger klog.Logger, pod *corev1.Pod, before, after any) (h fwk.QueueingHint, err error) {
				defer g.at.recovered(klog.NewContext(context.Background(), logger), pod, func(*fwk.Status) { h, err = fwk.Queue, nil })
				return hint(logger, pod, before, after)
			}
		}
	}
	return events, err
}

type guardedSign struct{ at guardedPoint }

// SignPod implements fwk.SignPlugin: a pod without a signature is like no other.
func (g guardedSign) SignPod(ctx context.Context, pod *corev1.Pod) (fragments []fwk.SignFragment, s *fwk.Status) {
	defer g.at.recovered(ctx, pod, func(bug *fwk.Status) { fragments, s = nil, bug })
	return g.at.plugin.(fwk.SignPlugin).SignPod(ctx, pod)
}

package preemption

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	policylisters "k8s.io/client-go/listers/policy/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"

	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/plugins/args"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// Name is the name of the plugin in a configuration file.
const Name = "GangPreemption"

// Replaces is the plugin of kube-scheduler in whose place it is.
const Replaces = "DefaultPreemption"

// Args are the arguments of the plugin GangPreemption.
type Args struct {
	// Enabled is whether gangs and pods of the profile may evict others, by
	// default true.
	Enabled bool `json:"enabled"`
	// SearchBudget is how long the search for victims may take, by default 300ms.
	// While it runs nothing else is scheduled.
	SearchBudget metav1.Duration `json:"searchBudget"`
	// TerminationTimeout is how long after the end of its grace a pod that is being
	// deleted is still expected to go, by default 5m. After that others may have to.
	TerminationTimeout metav1.Duration `json:"terminationTimeout"`
}

// DefaultArgs are the arguments where a configuration sets none.
func DefaultArgs() Args {
	return Args{
		Enabled: true, SearchBudget: metav1.Duration{Duration: 300 * time.Millisecond},
		TerminationTimeout: metav1.Duration{Duration: 5 * time.Minute},
	}
}

// The least and the most that the arguments may be.
const (
	minBudget  = 10 * time.Millisecond
	maxBudget  = 10 * time.Second
	minTimeout = time.Second
)

// Validate implements args.Args.
func (a Args) Validate() error {
	if d := a.SearchBudget.Duration; d < minBudget || d > maxBudget {
		return fmt.Errorf("searchBudget: %s is not from %s to %s", d, minBudget, maxBudget)
	}
	if d := a.TerminationTimeout.Duration; d < minTimeout {
		return fmt.Errorf("terminationTimeout: %s is less than %s", d, minTimeout)
	}
	return nil
}

// Plugin is GangPreemption in one profile.
type Plugin struct {
	preemptor *Preemptor
	handle    fwk.Handle
	args      Args
	budgets   policylisters.PodDisruptionBudgetLister
	trees     fwk.PodGroupPostFilterPlugin // for composite groups; nil where there are none
}

var (
	_ fwk.PostFilterPlugin         = &Plugin{}
	_ fwk.PodGroupPostFilterPlugin = &Plugin{}
	_ fwk.ReservePlugin            = &Plugin{}
	_ fwk.EnqueueExtensions        = &Plugin{}
)

// NewPlugin makes the plugin of one profile; it is a frameworkruntime.PluginFactory.
func (p *Preemptor) NewPlugin(ctx context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	a, err := args.Decode(object, DefaultArgs())
	if err != nil {
		return nil, err
	}
	trees, err := newTrees(ctx, handle)
	if err != nil {
		return nil, err
	}
	factory := handle.SharedInformerFactory()
	return &Plugin{preemptor: p, handle: handle, args: a, budgets: factory.Policy().V1().PodDisruptionBudgets().Lister(), trees: trees}, nil
}

// Name implements fwk.Plugin.
func (pl *Plugin) Name() string { return Name }

// Reserve implements fwk.ReservePlugin: room ends when whoever it was made for is
// placed. All members of a gang are decided on before anybody else.
func (pl *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if !state.IsPodGroupSchedulingCycle() {
		pl.preemptor.used(pod, node)
	}
	return nil
}

// Unreserve implements fwk.ReservePlugin. The place of a member is then held as
// that of one that died; for a pod on its own others may have to go again.
func (pl *Plugin) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) {}

// EventsToRegister names no events: the plugin refuses no pod that fits.
func (pl *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// PostFilter implements fwk.PostFilterPlugin: room for a pod on its own.
func (pl *Plugin) PostFilter(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	c := cause{key: claims.ConsumerOf(pod), pods: []*corev1.Pod{pod}, min: 1, priority: corev1helpers.PodPriority(pod)}
	if pod.Spec.PreemptionPolicy != nil {
		c.never = *pod.Spec.PreemptionPolicy == corev1.PreemptNever
	}
	c.judge = func(ctx context.Context, assigned map[string][]*corev1.Pod) (map[string][]*corev1.Pod, error) {
		return pl.judgePod(ctx, pod, assigned)
	}
	_, what := pl.attempt(ctx, c)
	// The pod is not nominated, which would be a write: its room is kept without.
	return nil, fwk.NewStatus(fwk.Unschedulable, what)
}

// PodGroupPostFilter implements fwk.PodGroupPostFilterPlugin: room for a gang.
func (pl *Plugin) PodGroupPostFilter(ctx context.Context, state fwk.PodGroupCycleState, info fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	if info.GetType() == fwk.CompositePodGroupKeyType && pl.trees != nil && pl.args.Enabled {
		return pl.freeForTree(ctx, state, info, schedule)
	}
	c, ok, err := pl.causeOf(info)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	if !ok {
		return nil, fwk.NewStatus(fwk.Unschedulable, "preemption: the gang has what it needs")
	}
	c.judge = func(ctx context.Context, _ map[string][]*corev1.Pod) (map[string][]*corev1.Pod, error) {
		assignments, status := schedule(ctx)
		if !status.IsSuccess() {
			return nil, nil
		}
		assigned := map[string][]*corev1.Pod{}
		for _, a := range assignments.ProposedAssignments {
			assigned[a.GetNodeName()] = append(assigned[a.GetNodeName()], a.GetPod())
		}
		return assigned, nil
	}
	makes, what := pl.attempt(ctx, c)
	if makes {
		return &fwk.PodGroupPostFilterResult{NominatingInfos: pl.preemptor.nominations(c.key)}, fwk.NewStatus(fwk.Success, what)
	}
	return nil, fwk.NewStatus(fwk.Unschedulable, what)
}

// freeForTree frees nodes for a composite group. What the engine tries meanwhile is on nodes without the victims: no claim goes by that.
func (pl *Plugin) freeForTree(ctx context.Context, state fwk.PodGroupCycleState, info fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc) (result *fwk.PodGroupPostFilterResult, status *fwk.Status) {
	pl.preemptor.claims.Simulate(func() { result, status = pl.trees.PodGroupPostFilter(ctx, state, info, schedule) })
	return result, status
}

// newTrees returns the engine's own preemption, which frees nodes for composite groups: a search for room of ours knows one gang at a time. It is nil
// where the engine knows none.
func newTrees(ctx context.Context, handle fwk.Handle) (fwk.PodGroupPostFilterPlugin, error) {
	if !gangcache.PlacesTrees() {
		return nil, nil
	}
	var args runtime.Object = &schedulerconfig.DefaultPreemptionArgs{MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100}
	plugin, err := frameworkplugins.NewInTreeRegistry()[Replaces](ctx, args, handle)
	if err != nil {
		return nil, fmt.Errorf("preemption for composite groups: %w", err)
	}
	trees, ok := plugin.(fwk.PodGroupPostFilterPlugin)
	if !ok {
		return nil, fmt.Errorf("preemption for composite groups: %T frees no nodes for groups", plugin)
	}
	return trees, nil
}

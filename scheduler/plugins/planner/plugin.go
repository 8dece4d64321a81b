// Package planner finds a place for every member of a gang at once, before the engine tries the members one by one.
//
// The engine places the members of a gang greedily, each where it scores best alongside those before it. For members that differ
// that may fail although the gang has a placement. When the engine begins with a gang, the plugin GangPlanner has package placement search
// for a placement of the whole gang, and returns for each member the one node that it has there. The engine's own filters then check
// that node alone. A member that they refuse is placed as if there were no plan, and counted.
//
// A gang that provably has no placement fails at once, with the numbers that prove it in the store of reasons. Where package placement is
// stricter than the engine, or does not know all that the engine knows, that is no proof, and the engine tries by itself.
//
// A gang that failed is parked: it is tried again when an event may help it, not by the clock. See parkedGang.
package planner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/gangctl/gangctl/pkg/gang/networktopology"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/args"
	"github.com/gangctl/gangctl/scheduler/plugins/crossnode"
)

// Name is the name of the plugin in a configuration file.
const Name = "GangPlanner"

// Args are the arguments of the plugin GangPlanner.
type Args struct {
	// SearchBudget is how long the search for a placement of one gang may take, by default 200ms. A search that hits it
	// proves nothing: the engine tries the gang by itself.
	SearchBudget metav1.Duration `json:"searchBudget"`
	// RetryPeriod is after how long a gang is tried again of which it is not proven that it has no placement, or not known in full why, though nothing
	// has changed in the cluster; by default 10s.
	RetryPeriod metav1.Duration `json:"retryPeriod"`
}

// DefaultArgs are the arguments where a configuration sets none.
func DefaultArgs() Args {
	return Args{SearchBudget: metav1.Duration{Duration: placement.DefaultBudget}, RetryPeriod: metav1.Duration{Duration: 10 * time.Second}}
}

// The least and the most that the arguments may be. While a search runs no other pod is scheduled.
const (
	minBudget = time.Millisecond
	maxBudget = 10 * time.Second
	minRetry  = time.Second
	maxRetry  = maxParked
)

// Validate implements args.Args.
func (a Args) Validate() error {
	if d := a.SearchBudget.Duration; d < minBudget || d > maxBudget {
		return fmt.Errorf("searchBudget: %s is not from %s to %s", d, minBudget, maxBudget)
	}
	if d := a.RetryPeriod.Duration; d < minRetry || d > maxRetry {
		return fmt.Errorf("retryPeriod: %s is not from %s to %s", d, minRetry, maxRetry)
	}
	return nil
}

// enforcement caches whether the profile enforces every rule that a proof rests on.
type enforcement struct {
	once     sync.Once
	complete bool
}

// provenFilters are the filters that a proof rests on.
var provenFilters = []string{
	names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity, names.NodePorts, names.NodeResourcesFit, names.InterPodAffinity,
}

// enforcesAll reports whether the profile enforces every rule that a proof rests on. A configuration may disable filters, and have
// resources ignored. A gang without a placement under the rules may then have one for the engine.
func (pl *Plugin) enforcesAll() bool {
	pl.enforcement.once.Do(func() {
		lister, ok := pl.handle.(interface {
			ListPlugins() *schedulerconfig.Plugins
		})
		if !ok {
			return
		}
		on := sets.New[string]()
		for _, f := range lister.ListPlugins().Filter.Enabled {
			on.Insert(crossnode.Replaced(f.Name))
		}
		pl.enforcement.complete = on.HasAll(provenFilters...) && !pl.planner.ignoresResources(pl.handle.ProfileName())
	})
	return pl.enforcement.complete
}

// ignoresResources reports whether a profile is configured to ignore some resources. The engine adds those that an extender manages to
// the same configuration.
func (p *Planner) ignoresResources(profile string) bool {
	at := slices.IndexFunc(p.profiles, func(s schedulerconfig.KubeSchedulerProfile) bool { return s.SchedulerName == profile })
	if at < 0 {
		return true // not known, so nothing is certain
	}
	for _, c := range p.profiles[at].PluginConfig {
		if a, ok := c.Args.(*schedulerconfig.NodeResourcesFitArgs); ok && len(a.IgnoredResources)+len(a.IgnoredResourceGroups) > 0 {
			return true
		}
	}
	return false
}

// Plugin is GangPlanner in one profile.
type Plugin struct {
	planner     *Planner
	handle      fwk.Handle
	args        Args
	enforcement enforcement
}

var (
	_ fwk.PreEnqueuePlugin  = &Plugin{}
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.FilterPlugin      = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
)

// NewPlugin is the factory of the plugin.
func (p *Planner) NewPlugin(_ context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	a, err := args.Decode(object, DefaultArgs())
	if err != nil {
		return nil, err
	}
	return &Plugin{planner: p, handle: handle, args: a}, nil
}

// Name implements fwk.Plugin.
func (pl *Plugin) Name() string { return Name }

// PreEnqueue implements fwk.PreEnqueuePlugin: a parked gang is not tried.
func (pl *Plugin) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if group, ok := engine.GroupOf(pod); ok && pl.planner.isParked(group) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "nothing happened since the last attempt that could help its gang")
	}
	return nil
}

// EventsToRegister implements fwk.EnqueueExtensions. There are none: the planner sees all events, and wakes gangs by itself.
func (pl *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// The keys of the planner's data in the state of a placement and of one member.
const (
	planKey   fwk.StateKey = Name + "/plan"
	memberKey fwk.StateKey = Name + "/member"
)

// plan is the verdict on a gang, in the course of one placement.
type plan struct {
	verdict
	// requester is the member that the engine was trying when the plan was made.
	requester types.UID
	// given is how many members have been offered their nodes.
	given int
}

// Clone implements fwk.StateData. All members share the plan.
func (p *plan) Clone() fwk.StateData { return p }

// plannedNode is the node of a member in the plan.
type plannedNode struct {
	name string // empty if the engine refused it there, and is to find another
	of   *plan
	// inTurn: the member is tried when the plan has it tried.
	inTurn bool
}

// Clone implements fwk.StateData.
func (p plannedNode) Clone() fwk.StateData { return p }

// plannedFor returns the node of the member that a state is of, and whether there is one.
func plannedFor(state fwk.CycleState) (plannedNode, bool) {
	data, err := state.Read(memberKey)
	if err != nil {
		return plannedNode{}, false
	}
	at, ok := data.(plannedNode)
	return at, ok && at.name != ""
}

// Planned reports whether the member that a state is of has a node in a plan that holds for the engine as it is: the plan counts the same pods, and the
// engine has followed it so far. It is known once PreFilter of this plugin has run.
func Planned(state fwk.CycleState) bool {
	at, ok := plannedFor(state)
	return ok && at.inTurn && at.of.onSnapshot
}

// offer gives a member its node. A plan whose members are not all where it has them is a plan no longer: what it was checked against may not hold for the
// members that are left.
func (pl *Plugin) offer(state fwk.CycleState, pod *corev1.Pod, p *plan, group types.NamespacedName) *fwk.PreFilterResult {
	node := p.nodes[pod.UID]
	members, err := pl.handle.SnapshotSharedLister().PodGroupStates().Get(group.Namespace, group.Name)
	p.onSnapshot = p.onSnapshot && err == nil && members.ScheduledPodsCount() == int(p.bound)+p.given
	p.given++
	// The requester was tried before there was a plan, be it its turn or not.
	inTurn := p.requester != pod.UID || len(p.sequence) == 0 || p.sequence[0] == pod.UID
	state.Write(memberKey, plannedNode{name: node, of: p, inTurn: inTurn})
	return &fwk.PreFilterResult{NodeNames: sets.New(node)}
}

// PreFilter implements fwk.PreFilterPlugin. All plugins that may refuse a member at PreFilter come before, so they have let it pass.
func (pl *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if key, ok := networktopology.Selected(pod); ok {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("it selects nodes by %s, which no node has as a label: its kubelet would refuse the pod", key))
	}
	skip := fwk.NewStatus(fwk.Skip)
	if pl.sharesDomain(state, pod) {
		skip = nil // Filter is called where PreFilter does not skip
	}
	if _, err := state.Read(memberKey); err == nil {
		return nil, skip
	}
	if !state.IsPodGroupSchedulingCycle() {
		if wait, why := pl.planner.postponement(types.NamespacedName{Namespace: pod.Namespace}, pod); wait > 0 {
			pl.planner.activateAfter(pod, wait)
			return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why)
		}
		return nil, fwk.NewStatus(fwk.Skip)
	}
	if pl.planner.outOfTime(pod) {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("the search for the devices of its gang took more than %s and %s a member", attemptLimit, memberLimit))
	}
	p := pl.planFor(ctx, state, pod)
	if p.proven || p.postponed > 0 || p.waitsForVolumes {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, p.reason.Sentence())
	}
	_, planned := p.nodes[pod.UID]
	group, _ := engine.GroupOf(pod)
	switch {
	case planned:
		return pl.offer(state, pod, p, group), nil
	case len(p.nodes) > 0 && p.requester == pod.UID:
		// It might take the node of a member that the gang needs. The other members without a node come after those.
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "other members of its gang come first")
	}
	return nil, skip
}

// PreFilterExtensions implements fwk.PreFilterPlugin.
func (pl *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter implements fwk.FilterPlugin. The engine checks a nominated node, or the node of the previous member, whatever PreFilter
// returned.
func (pl *Plugin) Filter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if status := checkDomain(state, node.Node()); status != nil {
		return status
	}
	if at, ok := plannedFor(state); ok && at.name != node.Node().Name {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the gang's placement has another node for this member")
	}
	return nil
}

// SignPod implements fwk.SignPlugin.
func (pl *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return engine.SignAlone(pod)
}

// planFor returns the plan for the gang under way; an empty one leaves everything to the engine.
func (pl *Plugin) planFor(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) *plan {
	placement := state.GetPlacementCycleState()
	if placement == nil {
		return &plan{}
	}
	if data, err := placement.Read(planKey); err == nil {
		if p, ok := data.(*plan); ok {
			return p
		}
	}
	p := &plan{}
	placement.Write(planKey, p)
	c := pl.planner.cycleOf(pod, pl.args)
	if c == nil {
		return p
	}
	if wait, why := pl.planner.postponement(c.group, c.pods()...); wait > 0 && !c.dryRuns(state) {
		p.verdict, p.requester = *c.postponed(wait, why), pod.UID
		pl.planner.setVerdict(c, &p.verdict, pod)
		return p
	}
	logger := klog.FromContext(ctx)
	var v *verdict
	done, err := pl.planner.guard.Do(logger, c.group.String(), func() string { return engine.VersionOf(c.pods()...) }, func() (err error) {
		v, err = pl.planner.search(ctx, pl, c, pod)
		return err
	})
	if err != nil {
		logger.Error(err, "Cannot plan a gang; it is left to the engine", "podGroup", c.group)
	}
	if err != nil || !done {
		return p
	}
	p.verdict, p.requester = *v, pod.UID
	dryRun := c.dryRuns(state)
	c.order(p, pod, dryRun)
	if !dryRun {
		pl.planner.setVerdict(c, v, pod)
		for _, volume := range v.provisions {
			pl.planner.volumes.queue.Add(volume)
		}
	}
	return p
}

// setVerdict records the verdict on the gang on the cluster as it is.
func (p *Planner) setVerdict(c *cycle, v *verdict, requester *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.verdict, c.requester = v, requester.UID
}

// cycleOf returns the attempt that a pod is part of, nil if it is part of none.
func (p *Planner) cycleOf(pod *corev1.Pod, a Args) *cycle {
	group, ok := engine.GroupOf(pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok || p.current == nil || p.current.group != group {
		return nil
	}
	p.current.args = a
	p.current.readTopology()
	return p.current
}

// refused reports whether a member was refused on the node that was planned for it. It is then tried without a plan.
func (p *Planner) refused(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) bool {
	at, ok := plannedFor(state)
	if !ok {
		return false
	}
	at.of.onSnapshot = false
	if p.refusedForOrder(pod) {
		return false
	}
	klog.FromContext(ctx).V(2).Info("The engine refuses a member on the node planned for it", "pod", klog.KObj(pod), "node", at.name)
	p.plans.disagreements.Inc()
	p.changed.Suspect() // should a change of a node have been missed, the next plan does not repeat it
	state.Write(memberKey, plannedNode{})
	return true
}

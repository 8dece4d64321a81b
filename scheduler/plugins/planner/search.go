package planner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// verdict is what is known of a gang before its members are tried.
type verdict struct {
	// nodes are the places of members, by pod; nil where the engine is to find them.
	nodes map[types.UID]string
	// sequence is the order in which the members have to come; empty if any will do.
	sequence []types.UID
	// proven: there is no placement that makes the gang start, or none for any further member of one that has started.
	proven bool
	// claimed: there might be one if nothing were kept from the gang.
	claimed bool
	lacks   map[corev1.ResourceName]int64
	// stranded: it has places and fewer than it needs, and not even what is about to come would complete it.
	stranded bool
	// reason explains a gang for which no placement was found; nil of others.
	reason *reasons.Reason
	// among is the number of nodes that were looked at, bound that of the members with a place, need how many must have one.
	among       int
	bound, need int32
	// retry is what has the gang tried again if the engine does not place it.
	retry string
}

// query is the search for one gang.
type query struct {
	planner *Planner
	plugin  *Plugin
	cycle   *cycle
	members *memberRoles
	gang    placement.Gang
	nodes   []fwk.NodeInfo
	claims  []claims.Claim
	// free is the cluster, kept the same less what is kept from the gang.
	free, kept *placement.Cluster
	opts       placement.Options
}

// search plans the gang that the engine is at, from the requesting member on.
func (p *Planner) search(ctx context.Context, plugin *Plugin, c *cycle, requester *corev1.Pod) (*verdict, error) {
	start := time.Now()
	v, err := p.placeRest(ctx, plugin, c, max(0, c.position(requester)))
	if err != nil {
		return nil, err
	}
	p.plans.duration.Observe(time.Since(start).Seconds())
	result := resultUnproven
	switch {
	case v.nodes != nil:
		result = resultPlaced
	case v.proven:
		result = resultImpossible
	}
	p.plans.results.WithLabelValues(result).Inc()
	return v, nil
}

// placeRest plans a gang of which the engine has refused some members already. If the others have no placement, what is reported and
// proven is of all: those may be refused for what no proof rests on, and then events help that would not wake the gang.
func (p *Planner) placeRest(ctx context.Context, plugin *Plugin, c *cycle, refused int) (*verdict, error) {
	all, err := p.query(plugin, c, c.pods())
	if err != nil {
		return nil, err
	}
	if refused == 0 {
		return all.answer(ctx), nil
	}
	rest, err := p.query(plugin, c, c.pods()[refused:])
	if err != nil {
		return nil, err
	}
	if rest.gang.Total() >= rest.gang.MinMember {
		if v := rest.answer(ctx); v.nodes != nil {
			return v, nil
		}
	}
	v := all.answer(ctx)
	if v.nodes != nil {
		v = all.blank() // it counts on members that are refused
	}
	return v, nil
}

func (p *Planner) query(plugin *Plugin, c *cycle, members []*corev1.Pod) (*query, error) {
	lister := plugin.handle.SnapshotSharedLister()
	nodes, err := lister.NodeInfos().List()
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	state, err := lister.PodGroupStates().Get(c.group.Namespace, c.group.Name)
	if err != nil {
		return nil, fmt.Errorf("look up gang: %w", err)
	}
	antiAffine, err := lister.NodeInfos().HavePodsWithRequiredAntiAffinityList()
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	q := &query{planner: p, plugin: plugin, cycle: c, nodes: nodes}
	if q.members, err = rolesOf(members, antiAffine); err != nil {
		return nil, err
	}
	q.gang = placement.Gang{Roles: q.members.roles, MinMember: 1}
	if policy := c.gang.PodGroup.Spec.SchedulingPolicy.Gang; policy != nil {
		q.gang.MinMember = policy.MinCount
	}
	for _, pod := range state.ScheduledPods() {
		q.gang.Bound = append(q.gang.Bound, pod.UID)
	}
	// An attempt that places no member is of no use to a gang that has all that it needs.
	q.gang.MinMember = max(q.gang.MinMember, int32(len(q.gang.Bound))+1)

	objects, err := p.objects(plugin.handle, q.members)
	if err != nil {
		return nil, err
	}
	q.free = p.index.Update(nodes, objects)
	q.kept = q.free
	if q.claims = p.claims.Withheld(lister.NodeInfos(), c.group, q.members.examples()); len(q.claims) > 0 {
		q.kept = q.free.With(claims.PlacedPods(q.claims)...)
	}
	q.opts = placement.Options{Budget: c.args.SearchBudget.Duration, Pack: true}
	return q, nil
}

func (q *query) priority() int32 { return priorityOf(q.members.roles[0].Pod) }

func (q *query) answer(ctx context.Context) *verdict {
	v := q.blank()
	if slices.ContainsFunc(q.cycle.pods(), func(p *corev1.Pod) bool { return p.Status.NominatedNodeName != "" }) {
		return v // room was made for the members where they are nominated, and the engine tries them there first
	}
	ctx, cancel := context.WithTimeout(ctx, q.opts.Budget)
	defer cancel()
	opts := q.opts
	opts.Prefer = q.preferred(ctx)
	found := placement.Place(ctx, q.kept, q.gang, opts)
	if found.Fits() {
		return q.placed(ctx, found, opts)
	}
	proof := q.proof(ctx, q.kept, found)
	v.proven = proof.Impossible() && len(proof.Unmodelled) == 0 && !q.substituted() && q.plugin.complete()
	if v.proven {
		v.lacks, v.retry = q.lacks(), fmt.Sprintf("when nodes or room come free, at the latest after %s", parkedAtMost)
		v.stranded = v.bound > 0 && v.bound < v.need && q.stranded(ctx)
	}
	fits, possible := q.unclaimed(ctx)
	v.claimed = possible
	switch {
	case found.Proof == placement.BudgetHit && !v.proven:
		v.reason = q.explainUnknown(found)
	case v.proven:
		v.reason = q.explain(proof, fits)
	default:
		v.reason = q.explain(found, fits)
		v.reason.Finding.Verdict, v.reason.Finding.Never = answer.Waiting, false // the engine may know better
	}
	q.complete(v)
	return v
}

// unclaimed reports whether the gang fits if nothing is kept from it, and whether that is at least possible: then it has to be tried
// when less is kept, even if the time was too short to find out.
func (q *query) unclaimed(ctx context.Context) (fits, possible bool) {
	if q.kept == q.free {
		return false, false
	}
	found := placement.Place(ctx, q.free, q.gang, q.opts)
	return found.Fits(), found.Fits() || !q.proof(ctx, q.free, found).Impossible()
}

// blank is the verdict on a gang of which nothing is known yet.
func (q *query) blank() *verdict {
	v := &verdict{
		among: len(q.nodes), bound: int32(len(q.gang.Bound)), need: 1,
		retry: fmt.Sprintf("after any change to nodes or pods, at the latest after %s", q.cycle.args.RetryPeriod.Duration),
	}
	if policy := q.cycle.gang.PodGroup.Spec.SchedulingPolicy.Gang; policy != nil {
		v.need = policy.MinCount
	}
	return v
}

// complete adds to a reason what does not depend on why there is no placement.
func (q *query) complete(v *verdict) {
	v.reason.Nodes, v.reason.Retry, v.reason.AboveMin = v.among, v.retry, v.bound >= v.need
	v.reason.Reserved = q.planner.claims.Nodes(q.cycle.group)
}

// placed gives every member its node. Pods that are about to come to those nodes by preemption are let in first.
func (q *query) placed(ctx context.Context, found placement.Result, opts placement.Options) *verdict {
	chosen := map[string]fwk.NodeInfo{}
	lister := q.plugin.handle.SnapshotSharedLister().NodeInfos()
	for _, a := range found.Placement {
		if chosen[a.Node] != nil {
			continue
		}
		if info, err := lister.Get(a.Node); err == nil {
			chosen[a.Node] = info
		}
	}
	if len(nominated(q.plugin.handle, slices.Collect(maps.Values(chosen)), q.cycle.group, q.priority())) > 0 {
		alongside := q.kept.With(nominated(q.plugin.handle, q.nodes, q.cycle.group, q.priority())...)
		if found = placement.Place(ctx, alongside, q.gang, opts); !found.Fits() {
			return q.blank()
		}
	}
	v := q.blank()
	v.nodes = make(map[types.UID]string, len(found.Placement))
	for _, a := range found.Placement {
		v.nodes[q.member(a)] = a.Node
	}
	for _, a := range found.Sequence {
		v.sequence = append(v.sequence, q.member(a))
	}
	return v
}

// member is the pod that an assignment is for.
func (q *query) member(a placement.Assignment) types.UID {
	i := slices.IndexFunc(q.members.roles, func(r placement.Role) bool { return r.Name == a.Role })
	return q.members.pods[i][a.Member].UID
}

// beyond are the rules that are left out of a proof: what they allow depends on more than the planner can see (volumes and
// devices that are being bound), or on the order in which pods come.
var beyond = []placement.Constraint{
	placement.VolumeClaim, placement.VolumeZone, placement.VolumeNode, placement.VolumeLimits, placement.DRADevices, placement.PodAffinity, placement.TopologySpread,
}

// proof searches again under rules that are certainly no stricter than the engine's.
func (q *query) proof(ctx context.Context, cluster *placement.Cluster, found placement.Result) placement.Result {
	lenient := cluster.AsScheduled()
	if lenient == cluster && !q.members.refers && !q.members.interPod {
		return found
	}
	opts := q.opts
	opts.Ignore = placement.Constraints{}.Insert(beyond...)
	return placement.Place(ctx, lenient, q.gang, opts)
}

// substituted reports whether the engine may get a resource that members request from devices, on nodes that do not offer it.
func (q *query) substituted() bool {
	for _, r := range q.members.roles {
		for name := range request.Of(r.Pod) {
			if slices.ContainsFunc(q.planner.alone.DeviceClasses, func(c *resourceapi.DeviceClass) bool {
				return ptr.Deref(c.Spec.ExtendedResourceName, "") == string(name) || string(name) == resourceapi.ResourceDeviceClassPrefix+c.Name
			}) {
				return true
			}
		}
	}
	return false
}

// lacks are the resources of which the gang needs more, to start, than is left of all nodes together.
func (q *query) lacks() map[corev1.ResourceName]int64 {
	required := int(q.gang.MinMember) - len(q.gang.Bound)
	requested := map[corev1.ResourceName][]int64{}
	total := 0
	for _, r := range q.members.roles {
		for name, quantity := range request.Of(r.Pod) {
			for range r.Count {
				requested[name] = append(requested[name], request.Amount(name, quantity))
			}
		}
		total += int(r.Count)
	}
	out := map[corev1.ResourceName]int64{}
	for name, amounts := range requested {
		slices.Sort(amounts)
		var least int64
		// The members that request none come first.
		for i := range required - (total - len(amounts)) {
			least += amounts[min(i, len(amounts)-1)]
		}
		if lack := least - q.free.Unused(name); lack > 0 {
			out[name] = lack
		}
	}
	return out
}

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
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// verdict is the result of the search for a gang.
type verdict struct {
	// nodes are the nodes of members, by pod; nil where the engine is to find them.
	nodes map[types.UID]string
	// onSnapshot: of what members must be spread over, the plan counts the pods of the engine's snapshot, and no others.
	onSnapshot bool
	// sequence is the order in which the members have to be tried; empty for any order.
	sequence []types.UID
	// proven: there is no placement that makes the gang start, or none for any further member of one that has started.
	proven bool
	// complete: there was time for all that its reason may have; ofEqual: all of it is of a gang that equals it.
	complete, ofEqual bool
	// claimed: there might be one without the claims of others.
	claimed bool
	lacks   map[corev1.ResourceName]int64
	wants   *wants
	// postponed: it is not tried for so long, because searches like its own took too long. Nothing is known of a placement.
	postponed time.Duration
	// waitsForVolumes: there is a placement as soon as claims that members share have their volumes; provisions are those to be made.
	waitsForVolumes bool
	provisions      []provision
	// cannotComplete: it is partly placed, and would not be complete with all that is about to come, either.
	cannotComplete bool
	// reason explains a gang for which no placement was found; nil of others.
	reason *reasons.Reason
	// nodeCount is the number of nodes in the search, bound that of the members with a node, minCount how many must have one.
	nodeCount       int
	bound, minCount int32
	// retry is the text on when the gang is tried again if the engine does not place it.
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
	// free is the cluster, kept the cluster less what others claim.
	free, kept *placement.Cluster
	opts       placement.Options
	// cut: the time for the reason was over before all of it was found.
	cut bool
}

// search plans the gang under way, from the requesting member on.
func (p *Planner) search(ctx context.Context, plugin *Plugin, c *cycle, requester *corev1.Pod) (*verdict, error) {
	start := time.Now()
	v, err := p.placeRest(ctx, plugin, c, max(0, c.position(requester)))
	if err != nil {
		return nil, err
	}
	took := time.Since(start)
	p.plans.duration.Observe(took.Seconds())
	if v.nodes == nil {
		c.searched += took
	}
	result := resultUnproven
	switch {
	case v.nodes != nil:
		result = resultPlaced
	case v.proven && v.ofEqual:
		result = resultEqual
	case v.proven:
		result = resultImpossible
	}
	p.plans.results.WithLabelValues(result).Inc()
	return v, nil
}

// placeRest plans a gang of which the engine has refused some members already. If the others have no placement, the proof is on all
// members: some may be refused under rules that no proof rests on, and then events may help that would not wake the gang.
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
	q := &query{planner: p, plugin: plugin, cycle: c, nodes: nodes}
	if q.members, q.free, err = p.rolesOn(plugin.handle, nodes, members, c.topology); err != nil {
		return nil, err
	}
	q.gang = placement.Gang{Roles: q.members.roles, MinMember: c.minCount(), Topology: c.topology}
	for _, pod := range state.ScheduledPods() {
		q.gang.Bound = append(q.gang.Bound, pod.UID)
	}
	// A gang that has its minimum needs at least one member more, or the attempt would place none.
	q.gang.MinMember = max(q.gang.MinMember, int32(len(q.gang.Bound))+1)

	q.kept = q.free
	if q.claims = p.claims.Withheld(lister.NodeInfos(), c.group, q.members.examples(), nil); len(q.claims) > 0 {
		q.kept = q.free.With(claims.PlacedPods(q.claims)...)
	}
	q.opts = placement.Options{Budget: c.args.SearchBudget.Duration, Pack: true}
	return q, nil
}

func (q *query) priority() int32 { return corev1helpers.PodPriority(q.members.roles[0].Pod) }

func (q *query) answer(ctx context.Context) *verdict {
	v := q.blank()
	nominated := map[types.UID]string{}
	for _, p := range q.cycle.pods() {
		if node := p.Status.NominatedNodeName; node != "" {
			nominated[p.UID] = node
		}
	}
	if len(nominated) > 0 && q.roomIsMade() {
		if claims := q.unprovisioned(nominated); len(claims) > 0 {
			return q.waitsForVolumes(claims, claims)
		}
		return v // room was made for the members where they are nominated, and the engine tries them there first
	}
	if !q.sharesProof() {
		return q.searched(ctx)
	}
	proofs, state := &q.planner.proofs, q.free.State()
	if proofs.any(state) {
		if known := proofs.of(q.proofKey(), state); known != nil {
			q.addContext(known)
			return known
		}
	}
	if v = q.searched(ctx); v.proven && v.complete {
		proofs.keep(q.proofKey(), state, v)
	}
	return v
}

// roomIsMade reports whether preemption makes room for the gang: its own, or that of the engine for composite groups. Nominations of others may be out of date, and
// are preferred where they can be.
func (q *query) roomIsMade() bool {
	return gangcache.PlacesTrees() || q.planner.claims.Progress(q.cycle.group) != ""
}

// searched is the answer of a search.
func (q *query) searched(ctx context.Context) *verdict {
	v := q.blank()
	ctx, cancel := context.WithTimeout(ctx, q.opts.Budget)
	defer cancel()
	opts := q.opts
	opts.Prefer = q.preferred(ctx)
	found := placement.Place(ctx, q.kept, q.gang, opts)
	switch {
	case found.Fits() && len(found.Released) > 0:
		return q.blank() // no plan holds before the engine has failed, and has taken the devices from the claims
	case found.Fits():
		return q.placed(ctx, found, opts)
	}
	if claims := q.beingProvisioned(); len(claims) > 0 {
		opts.Ignore = placement.Constraints{}.Insert(placement.VolumeNode)
		if placement.Place(ctx, q.kept, q.gang, opts).Fits() {
			return q.waitsForVolumes(claims, nil)
		}
	}
	proof := q.proof(ctx, q.kept, found)
	v.proven = proof.Impossible() && len(proof.Unmodelled) == 0 && !q.substituted() && q.plugin.enforcesAll()
	if v.proven {
		v.lacks, v.wants = q.lacks(), q.wants(proof)
		v.cannotComplete = v.bound > 0 && v.bound < v.minCount && q.cannotComplete(ctx)
	}
	fits, possible := q.unclaimed(ctx)
	v.claimed = possible
	switch {
	case found.Proof == placement.BudgetHit && !v.proven:
		v.reason = q.explainUnknown(found)
	case v.proven:
		v.reason = q.explain(ctx, proof, fits)
	default:
		v.reason = q.explain(ctx, found, fits)
		v.reason.Finding.Verdict, v.reason.Finding.Never = answer.Waiting, false // the engine may know better
	}
	if v.complete = ctx.Err() == nil && !q.cut; v.proven {
		v.retry = retriesWithRoom(q.cycle.atMostParked(v))
	}
	q.addContext(v)
	return v
}

// unclaimed reports whether the gang fits without the claims of others, and whether that is not impossible. It is then tried again when
// claims end, even if the search had too little time to prove a fit.
func (q *query) unclaimed(ctx context.Context) (fits, possible bool) {
	if q.kept == q.free {
		return false, false
	}
	found := placement.Place(ctx, q.free, q.gang, q.opts)
	return found.Fits(), found.Fits() || !q.proof(ctx, q.free, found).Impossible()
}

// blank returns the verdict on a gang that has not been searched yet.
func (q *query) blank() *verdict {
	return &verdict{
		nodeCount: len(q.nodes), bound: int32(len(q.gang.Bound)), minCount: q.cycle.minCount(),
		retry: fmt.Sprintf("after any change to nodes or pods, at the latest after %s", q.cycle.args.RetryPeriod.Duration),
	}
}

// addContext adds to a reason what does not depend on why there is no placement.
func (q *query) addContext(v *verdict) {
	v.reason.Nodes, v.reason.Retry, v.reason.AboveMin = v.nodeCount, v.retry, v.bound >= v.minCount
	v.reason.Reserved = q.planner.claims.Nodes(q.cycle.group)
}

// placed gives every member its node. Pods that are nominated for those nodes come first.
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
	v := q.blank()
	standIns := claims.PlacedPods(q.claims)
	if len(nominated(q.plugin.handle, slices.Collect(maps.Values(chosen)), q.cycle.group, q.priority())) > 0 {
		others := nominated(q.plugin.handle, q.nodes, q.cycle.group, q.priority())
		standIns = append(standIns, others...)
		alongside := q.kept.With(others...)
		if found = placement.Place(ctx, alongside, q.gang, opts); !found.Fits() {
			return q.blank()
		}
	}
	v.onSnapshot = !q.members.dependsOn(standIns)
	v.nodes, v.sequence = q.members.assign(found)
	if v.sequence == nil {
		q.members.swapToNominated(v.nodes)
	}
	if q.nominatedInTheWay(v.nodes) {
		return q.blank()
	}
	if claims := q.unprovisioned(v.nodes); len(claims) > 0 {
		return q.waitsForVolumes(claims, claims)
	}
	return v
}

// nominatedInTheWay reports whether a plan has members on nodes for which others of the gang are nominated, and are not planned: the engine counts these there.
func (q *query) nominatedInTheWay(nodes map[types.UID]string) bool {
	used := sets.New(slices.Collect(maps.Values(nodes))...)
	return slices.ContainsFunc(q.cycle.pods(), func(p *corev1.Pod) bool {
		return used.Has(p.Status.NominatedNodeName) && nodes[p.UID] != p.Status.NominatedNodeName
	})
}

// unproven are the constraints that no proof rests on. They depend on more than the planner sees (volumes and devices that are being
// bound), or on the order in which pods come.
var unproven = []placement.Constraint{
	placement.VolumeClaim, placement.VolumeZone, placement.VolumeNode, placement.VolumeLimits, placement.DRADevices, placement.PodAffinity, placement.TopologySpread,
}

// proof searches again under rules that are no stricter than the engine's.
func (q *query) proof(ctx context.Context, cluster *placement.Cluster, found placement.Result) placement.Result {
	lenient := cluster.AsScheduled()
	if lenient == cluster && !q.members.refersToClaims && !q.members.interPod {
		return found
	}
	opts := q.opts
	opts.Ignore = placement.Constraints{}.Insert(unproven...)
	return placement.Place(ctx, lenient, q.gang, opts)
}

// substituted reports whether the engine may get a resource that members request from devices, on nodes that do not offer it.
func (q *query) substituted() bool {
	for _, r := range q.members.roles {
		list := request.Of(r.Pod)
		for _, class := range q.planner.classesOnly.DeviceClasses {
			_, extended := list[corev1.ResourceName(ptr.Deref(class.Spec.ExtendedResourceName, ""))]
			_, named := list[corev1.ResourceName(resourceapi.ResourceDeviceClassPrefix+class.Name)]
			if extended || named {
				return true
			}
		}
	}
	return false
}

// lacks returns what the minimum of the gang requests beyond what is free on all nodes together.
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

package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// room is what there is for the role that is hardest to place, counted as why-pending counts it.
type room struct {
	role placement.Role
	// name is the resource that the numbers are about, per what one member asks for, count how many members are to be placed,
	// need what they ask for together with those of the other roles.
	name      corev1.ResourceName
	per, need int64
	count     int32
	// nodes are those that members may use at all, free what each of them has left; sum and largest are over these. total and most
	// are the same of what they have when nothing is used.
	nodes        []string
	free         []int64
	sum, largest int64
	total, most  int64
}

// fixed are the rules that keep a member off a node whatever else runs there.
var fixed = placement.Constraints{}.Insert(placement.NodeName, placement.NodeSelector, placement.NodeAffinity, placement.Taint, placement.Cordon, placement.NotReady, placement.Deleting, placement.VolumeZone, placement.VolumeNode)

// explain puts a proof into words.
func (q *inquiry) explain(proof placement.Result, claimed bool) *reasons.Reason {
	r := q.look(proof)
	code, verdict, who, message := q.reason(proof, r)
	finding := answer.Finding{Code: code, Stage: answer.StagePlacement, Verdict: verdict, Who: who, Never: verdict == answer.Blocked, Message: message}
	finding.Details = append(finding.Details, fmt.Sprintf("%d of %d members fit now", q.fit(proof), q.gang.Total()))
	finding.Facts = r.facts(proof)
	note := &reasons.Reason{Finding: finding, Required: q.gang.MinMember, Fit: q.fit(proof)}
	if r.need > r.sum {
		note.Shortages = []reasons.Shortage{{
			Resource:  string(r.name),
			Requested: phrase.Quantity(r.name, r.need), Available: phrase.Quantity(r.name, r.sum), Total: phrase.Quantity(r.name, r.total),
		}}
	}
	if claimed {
		note.Finding.Code = answer.ReservedByOthers
		note.Finding.Message = q.keptFrom(note) + "; " + message
	}
	return note
}

// keptFrom reads like: room is held for the replacement of research/llama-3 (gang research/llama) until 12:00:00 UTC on n1. It
// names who it is kept for in the note, too.
func (q *inquiry) keptFrom(note *reasons.Reason) string {
	nodes := map[string][]string{}
	for _, c := range q.claims {
		note.Blockers = append(note.Blockers, nameFor(c.For))
		why := c.Why
		if why == "" {
			why = "kept for " + nameFor(c.For)
		}
		nodes[why] = append(nodes[why], c.Node)
	}
	slices.Sort(note.Blockers)
	note.Blockers = slices.Compact(note.Blockers)
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(nodes)) {
		on := nodes[why]
		slices.Sort(on)
		parts = append(parts, fmt.Sprintf("room on %s is %s", phrase.Names(slices.Compact(on)), why))
	}
	if more := len(parts) - mostClaims; more > 0 {
		parts = append(parts[:mostClaims], fmt.Sprintf("and for %d others", more))
	}
	return strings.Join(parts, ", ")
}

// mostClaims is how many claims are told one by one.
const mostClaims = 3

// nameFor is a gang's name as its users know it.
func nameFor(group types.NamespacedName) string {
	if key, err := gang.ParseVirtualName(group.Namespace, group.Name); err == nil {
		return key.Namespace + "/" + key.Name
	}
	return group.String()
}

// reason is the sentence for a proof.
func (q *inquiry) reason(proof placement.Result, r room) (answer.Code, answer.Verdict, answer.Who, string) {
	wants := r.wants()
	switch {
	case len(r.nodes) == 0:
		return answer.SelectorNoMatch, answer.Blocked, answer.User, fmt.Sprintf("no node may be used by %s", wants)
	case r.per > r.most:
		return answer.TooBig, answer.Blocked, answer.User, fmt.Sprintf("it needs %s, and no node that it may use has more than %s",
			wants, phrase.Amount(r.name, r.most))
	case r.need > r.total:
		return answer.TooBig, answer.Blocked, answer.User, fmt.Sprintf("it needs %s, and the %s that it may use have %s in all",
			wants, phrase.Count(len(r.nodes), "node"), phrase.Amount(r.name, r.total))
	case proof.Bound != nil && proof.Bound.Constraint != "":
		return answer.NodesBusy, answer.Waiting, answer.Nobody, fmt.Sprintf("it needs %s, and %s leaves room for %d", wants, proof.Bound.Constraint, proof.Bound.Have)
	case r.need > r.sum:
		code := answer.NodesBusy
		if !strings.Contains(string(r.name), "/") {
			code = answer.Insufficient(string(r.name))
		}
		return code, answer.Waiting, answer.Nobody, fmt.Sprintf("%s of %s free on the %s that it may use, and it needs %s",
			phrase.Quantity(r.name, r.sum), phrase.Amount(r.name, r.total), phrase.Count(len(r.nodes), "node"), wants)
	}
	return answer.Fragmented, answer.Waiting, answer.Nobody, fmt.Sprintf("needs %s on one node; %s are free but as %s", wants, phrase.Amount(r.name, r.sum), r.shape())
}

// sentence is what the members of a gang without a placement say.
func (v *verdict) sentence() string { return v.note.Sentence() }

// explainUnknown says that the search took too long; the engine may still find a placement.
func (q *inquiry) explainUnknown(found placement.Result) *reasons.Reason {
	return &reasons.Reason{
		Finding: answer.Finding{
			Code: answer.SearchIncomplete, Stage: answer.StagePlacement, Verdict: answer.Waiting, Who: answer.Nobody,
			Message: fmt.Sprintf("no placement found for all members within %s; there may be one", q.opts.Budget),
			Facts:   map[string]any{"proof": string(found.Proof)},
		},
		Required: q.gang.MinMember, Fit: q.fit(found),
	}
}

// fit is how many members have a place, or could have one at once.
func (q *inquiry) fit(result placement.Result) int32 {
	n := int32(len(q.gang.Bound))
	for _, placed := range result.Placed {
		n += placed
	}
	return n
}

// look measures the room for the role that is hardest to place: the one of which the fewest members found a place, or of the
// resource that is proven to be short.
func (q *inquiry) look(proof placement.Result) room {
	role := slices.MinFunc(q.party.roles, func(a, b placement.Role) int {
		share := func(r placement.Role) int64 { return int64(proof.Placed[r.Name]) * 1000 / int64(r.Count) }
		device := func(r placement.Role) int64 { return amountOf(r.Pod, phrase.Device(placement.Request(r.Pod))) }
		return cmp.Or(cmp.Compare(share(a), share(b)), cmp.Compare(device(b), device(a)), cmp.Compare(a.Name, b.Name))
	})
	r := room{role: role, name: phrase.Device(placement.Request(role.Pod)), count: role.Count}
	if b := proof.Bound; b != nil && b.Resource != "" {
		r.name = b.Resource
	}
	if r.name == "" {
		r.name = corev1.ResourceCPU
	}
	if len(q.party.roles) == 1 {
		r.count = min(role.Count, q.gang.MinMember-int32(len(q.gang.Bound)))
	}
	for _, other := range q.party.roles {
		n := int64(other.Count)
		if len(q.party.roles) == 1 {
			n = int64(r.count)
		}
		r.need += n * amountOf(other.Pod, r.name)
	}
	r.per = amountOf(role.Pod, r.name)
	for _, row := range q.kept.Matrix(role.Pod).Rows {
		if slices.ContainsFunc(row.Violations, func(v placement.Violation) bool { return fixed.Has(v.Constraint) }) {
			continue
		}
		r.nodes = append(r.nodes, row.Node)
		free := max(0, placement.Amount(r.name, q.kept.Free(row.Node)[r.name]))
		if free > 0 {
			r.free = append(r.free, free)
		}
		r.sum += free
		r.largest = max(r.largest, free)
		total := placement.Amount(r.name, q.kept.Node(row.Node).Status.Allocatable[r.name])
		r.total += total
		r.most = max(r.most, total)
	}
	return r
}

func amountOf(pod *corev1.Pod, name corev1.ResourceName) int64 {
	if name == corev1.ResourcePods {
		return 1
	}
	return placement.Amount(name, placement.Request(pod)[name])
}

// wants reads like: 2 workers with 8 GPUs each.
func (r room) wants() string {
	each := ""
	if r.count != 1 {
		each = " each"
	}
	noun, _, _ := strings.Cut(phrase.Member(r.role.Name), "#")
	return fmt.Sprintf("%s with %s%s", phrase.Count(r.count, noun), phrase.Amount(r.name, r.per), each)
}

// shape reads like 4+4+2: what is free, node by node, largest first.
func (r room) shape() string {
	slices.SortFunc(r.free, func(a, b int64) int { return cmp.Compare(b, a) })
	var parts []string
	for i, n := range r.free {
		if i == 8 {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, phrase.Quantity(r.name, n))
	}
	return strings.Join(parts, "+")
}

// facts are the numbers under the names that why-pending gives them.
func (r room) facts(proof placement.Result) map[string]any {
	return map[string]any{
		"proof": string(proof.Proof), "role": r.role.Name, "resource": string(r.name), "perMember": r.per, "members": r.count,
		"requested": r.need, "free": r.sum, "largestHole": r.largest, "total": r.total,
	}
}

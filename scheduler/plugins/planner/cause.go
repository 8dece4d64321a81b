package planner

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// explain returns the reason for a proof.
func (q *query) explain(ctx context.Context, proof placement.Result, claimed bool) *reasons.Reason {
	rooms, rules := q.lacking(ctx, proof)
	r := rooms[0]
	code, verdict, who, message := q.reason(ctx, proof, r)
	if len(rules) > 0 {
		code, _ = phrase.RuleCode(rules[0].Constraint)
		verdict, who, message = answer.Waiting, answer.Nobody, q.ruled(ctx, rules, proof)
	}
	for _, other := range rooms[1:min(len(rooms), 1+mostShort)] {
		message += fmt.Sprintf("; and %s %s, too", phrase.Resource(other.Resource), phrase.IsShort(other.Resource))
	}
	finding := answer.Finding{Code: code, Stage: answer.StagePlacement, Verdict: verdict, Who: who, Never: verdict == answer.Blocked && who == answer.User, Message: message}
	finding.Details = append(finding.Details, fmt.Sprintf("%d of %d members fit now", q.fit(proof), q.gang.Total()))
	finding.Facts = phrase.RoomFacts(r)
	finding.Facts["proof"] = string(proof.Proof)
	reason := &reasons.Reason{Finding: finding, Required: q.gang.MinMember, Fit: q.fit(proof)}
	if r.Requested > r.Free && len(rules) == 0 {
		reason.Shortages = []reasons.Shortage{{
			Resource:  string(r.Resource),
			Requested: phrase.Quantity(r.Resource, r.Requested), Available: phrase.Quantity(r.Resource, r.Free), Total: phrase.Quantity(r.Resource, r.Total),
		}}
	}
	if claimed {
		reason.Finding.Code = answer.ReservedByOthers
		reason.Finding.Message = q.keptFrom(reason) + "; " + message
	}
	return reason
}

// mostShort is how many resources are named that are short as well.
const mostShort = 2

// lacking measures the room for the resources that are short together: by proof as in the diagnosis, or, where that takes too long, for what the
// role that is hardest to place requests. rules are what keeps the gang from the room that there is;
// none if a resource is short, too.
func (q *query) lacking(ctx context.Context, proof placement.Result) (rooms []placement.Room, rules []placement.Cause) {
	// What was searched before may have used up the time. The causes have their own, and so has what is counted of them, as the numbers of a part of the
	// roles would be wrong.
	ctx = context.WithoutCancel(ctx)
	causes := placement.FindCauses(ctx, q.kept, q.gang, placement.Options{Budget: q.opts.Budget})
	ctx, cancel := context.WithTimeout(ctx, q.opts.Budget)
	defer cancel()
	defer func() { q.cut = q.cut || causes.Cut || ctx.Err() != nil }()
	for _, cause := range causes.Ordered() {
		if r, ok := causes.Room(ctx, q.kept, q.gang, cause); ok {
			rooms = append(rooms, r)
		}
	}
	if len(rooms) > 0 {
		return rooms, nil
	}
	rules = causes.All
	if slices.ContainsFunc(rules, func(cause placement.Cause) bool { _, ok := phrase.RuleCode(cause.Constraint); return !ok }) {
		rules = nil // a rule of single nodes is one of them
	}
	return []placement.Room{q.kept.Lacking(ctx, q.gang, proof)}, rules
}

// ruled is the message for a gang that rules keep from the room that there is.
func (q *query) ruled(ctx context.Context, rules []placement.Cause, proof placement.Result) string {
	var names []string
	for _, cause := range rules {
		topology := q.gang.Topology
		if cause.Constraint == placement.PodAffinity && slices.ContainsFunc(cause.Roles, func(r placement.Role) bool { return topology.Requires(r.Pod) }) {
			if message, apart := q.together(ctx); apart {
				return message
			}
			names = append(names, phrase.Sharing(topology.AllRequired()[0]))
			continue
		}
		names = append(names, phrase.Rule(cause.Constraint, cause.Roles[0].Pod))
	}
	return phrase.Ruled(strings.Join(names, " with "), q.gang, q.fit(proof), q.gang.Total())
}

// together is the message for a gang that finds no room in one domain, or for its parts in one for each; apart is false if there is room in one, but for
// other rules.
func (q *query) together(ctx context.Context) (message string, apart bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.opts.Budget)
	defer cancel()
	late := false
	domains := func(g placement.Gang, key string) []placement.DomainRoom {
		rooms := q.kept.Domains(ctx, g, key, q.opts)
		if late = ctx.Err() != nil; late {
			q.cut = true
			return nil // not all was counted
		}
		return rooms
	}
	if key := q.gang.Topology.Required; key != "" {
		rooms := domains(q.gang, key)
		at := q.kept.BoundDomains(q.gang.Bound, key)
		if left := q.gang.MinMember - int32(len(q.gang.Bound)); !late && !placement.RoomyDomain(rooms, left, at) {
			return phrase.Together(q.gang, key, rooms, at), true
		}
	}
	parts := q.kept.PartRooms(q.gang, domains)
	return phrase.TogetherInParts(parts), len(parts) > 0
}

// keptFrom returns a text like: room on n1 is held for the replacement of research/llama-3 (gang research/llama) until 12:00:00 UTC.
// It adds the consumers to the blockers of the reason.
func (q *query) keptFrom(reason *reasons.Reason) string {
	nodes := map[string][]string{}
	reader := q.planner.claims.Reader(q.cycle.group.Namespace)
	for _, c := range q.claims {
		reason.Blockers = append(reason.Blockers, reasons.Blocker{Name: audience.Reader{}.Name(c.Who), Text: reader.Name(c.Who)})
		why := c.Why.For(reader)
		nodes[why] = append(nodes[why], c.Node)
	}
	slices.SortFunc(reason.Blockers, func(a, b reasons.Blocker) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Text, b.Text))
	})
	reason.Blockers = slices.CompactFunc(reason.Blockers, func(a, b reasons.Blocker) bool { return a.Name == b.Name })
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

// mostClaims is how many claims are named one by one.
const mostClaims = 3

// reason returns the code, verdict, audience and message for a proof.
func (q *query) reason(ctx context.Context, proof placement.Result, r placement.Room) (answer.Code, answer.Verdict, answer.Who, string) {
	requests := phrase.Wants(r) + phrase.InAll(r)
	switch {
	case len(r.Nodes) == 0:
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.opts.Budget)
		defer cancel()
		m := q.kept.MatrixWithin(limited, r.Role.Pod)
		code, who := closed(m)
		if len(m.Rows) == 0 {
			return code, answer.Blocked, who, "the cluster has no node"
		}
		return code, answer.Blocked, who, fmt.Sprintf("no node may be used by %s: %s", requests, strings.Join(phrase.Rejections(m, placement.Constraint.Static), ", "))
	case r.PerMember > r.LargestTotal:
		return answer.TooBig, answer.Blocked, answer.User, fmt.Sprintf("it needs %s, and no node that it may use has more than %s",
			requests, phrase.AmountDown(r.Resource, r.LargestTotal))
	case r.Requested > r.Total:
		return answer.TooBig, answer.Blocked, answer.User, fmt.Sprintf("it needs %s, and the %s that it may use have %s in all",
			requests, phrase.Count(len(r.Nodes), "node"), phrase.AmountDown(r.Resource, r.Total))
	case proof.Bound != nil && proof.Bound.Constraint != "":
		code, ruled := phrase.RuleCode(proof.Bound.Constraint)
		if !ruled {
			code = answer.NodesBusy
		}
		return code, answer.Waiting, answer.Nobody, fmt.Sprintf("it needs %s, and %s leaves room for %d",
			phrase.Wants(r)+phrase.Kinds(r), phrase.Rule(proof.Bound.Constraint, r.Role.Pod), proof.Bound.Have)
	case r.Requested > r.Free:
		return answer.Shortage(string(r.Resource), false), answer.Waiting, answer.Nobody, phrase.Busy(r, phrase.Allowed(r, "it"))
	case r.Holds(): // what else it takes was not found in time, or is what keeps a member from every node, such as a claim that is missing
		return answer.SearchIncomplete, answer.Waiting, answer.Nobody, phrase.NotShort(r)
	}
	return answer.Shortage(string(r.Resource), true), answer.Waiting, answer.Nobody, phrase.Fragmented(r)
}

// closed is the code where no node is open to a role, and who has to act: those who run the nodes if one would be open that is cordoned, not ready or being deleted, else
// whoever chose what they select.
func closed(m placement.Matrix) (answer.Code, answer.Who) {
	if len(m.Rows) == 0 {
		return answer.TooBig, answer.Admin
	}
	unmatched := 0
	for _, row := range m.Rows {
		repairable := true
		for _, v := range row.Violations {
			repairable = repairable && (!v.Constraint.Static() || v.Constraint == placement.Cordon || v.Constraint == placement.NotReady || v.Constraint == placement.Deleting)
		}
		if repairable {
			return answer.NodeNotReady, answer.Admin
		}
		if slices.ContainsFunc(row.Violations, func(v placement.Violation) bool {
			return v.Constraint == placement.NodeSelector || v.Constraint == placement.NodeAffinity
		}) {
			unmatched++
		}
	}
	if unmatched == len(m.Rows) {
		return answer.SelectorNoMatch, answer.User
	}
	return answer.TooBig, answer.User
}

// explainUnknown returns the reason where the search timed out, or did not begin; the engine may still find a placement.
func (q *query) explainUnknown(found placement.Result) *reasons.Reason {
	message := fmt.Sprintf("no placement found for all members within %s; there may be one", q.opts.Budget)
	if found.Limit != "" {
		message = fmt.Sprintf("no placement is searched for %s; there may be one", found.Limit)
	}
	return &reasons.Reason{
		Finding: answer.Finding{
			Code: answer.SearchIncomplete, Stage: answer.StagePlacement, Verdict: answer.Waiting, Who: answer.Nobody,
			Message: message,
			Facts:   map[string]any{"proof": string(found.Proof)},
		},
		Required: q.gang.MinMember, Fit: q.fit(found), Cut: true,
	}
}

// fit returns how many members have a node, or could have one at once.
func (q *query) fit(result placement.Result) int32 {
	n := int32(len(q.gang.Bound))
	for _, placed := range result.Placed {
		n += placed
	}
	return n
}

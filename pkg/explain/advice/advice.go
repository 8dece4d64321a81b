// Package advice searches for what would make a gang start. Every action is tried on a changed snapshot, through all stages,
// before it is offered. It is pure.
package advice

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/ladder"
	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

// search is one search for one gang.
type search struct {
	ctx  context.Context
	w    *world.World
	g    *world.Gang
	base *ladder.Result
	opts ladder.Options

	actions []answer.Action
}

// resizable are the reasons for which another size, another rule or more room may help. Where something is broken or
// refused, none of that does.
var resizable = []answer.Code{
	answer.NSQuota, answer.NSQuotaTooSmall, answer.QueueQuota, answer.QueueTooSmall, answer.KueueQuota, answer.TooBig, answer.NodeNotReady,
	answer.NodesCordoned, answer.GPUUnhealthy, answer.StuckTerminating, answer.NodesBusy, answer.Fragmented, answer.InsufficientCPU,
	answer.InsufficientMemory, answer.InsufficientStorage, answer.InsufficientPods, answer.TopologyFragmented, answer.TopologySpread, answer.VolumeZone,
	answer.DRAUnallocatable, answer.SlotStolen, answer.MemberLost, answer.GangBypassed, answer.MutualDeadlock, answer.QueueOrder, answer.ReservedByOthers,
}

// Search returns what would make the gang of a result start, the best first.
func Search(ctx context.Context, w *world.World, base *ladder.Result, opts ladder.Options) []answer.Action {
	s := &search{ctx: ctx, w: w, g: base.Gang, base: base, opts: opts}
	if base.Primary == nil || base.Verdict.Starts() || base.Verdict == answer.Uncertain || base.Verdict == answer.Failed {
		return nil
	}
	s.fixes()
	if slices.Contains(resizable, base.Primary.Code) {
		s.reshape()
		s.trim()
		s.relax()
		s.fewer()
		s.uncordon()
		s.addNodes()
		s.wait()
		s.evict()
	}
	slices.SortStableFunc(s.actions, func(a, b answer.Action) int { return cmp.Compare(rank(a), rank(b)) })
	return s.actions
}

// order is that of the kinds in which nothing is lost before those in which something is.
var order = []answer.ActionKind{answer.Fix, answer.Reshape, answer.Trim, answer.Relax, answer.Wait, answer.Fewer, answer.Uncordon, answer.Quota, answer.AddNodes, answer.Evict}

// rank puts what the user can do before what happens by itself, and that before what others must do.
func rank(a answer.Action) int {
	n := slices.Index(order, a.Kind)
	if a.By == answer.Admin {
		n += len(order)
	}
	return n
}

// try climbs all stages again in the cluster that apply makes.
func (s *search) try(apply func(*snapshot.Snapshot) *snapshot.Snapshot) (*ladder.Result, bool) {
	if s.ctx.Err() != nil {
		return nil, false
	}
	changed := apply(s.w.Snap)
	if changed == nil {
		return nil, false
	}
	w := s.w.Assume(changed)
	subject := same(w, s.g)
	if subject == nil {
		return nil, false
	}
	r := ladder.Climb(s.ctx, w, subject, s.opts)
	return r, r.Starts()
}

// same finds the job again.
func same(w *world.World, g *world.Gang) *world.Subject {
	if g.Bare != nil {
		subject, err := w.Find(world.Question{Kind: "pod", Namespace: g.Bare[0].Namespace, Name: g.Bare[0].Name})
		if err != nil {
			return nil
		}
		return subject
	}
	for _, subject := range w.Jobs() {
		if subject.Kind.GroupKind() == g.Kind.GroupKind() && subject.Name() == g.Name() {
			return subject
		}
	}
	return nil
}

// offer adds an action if the gang starts after it.
func (s *search) offer(fix ladder.Fix) bool {
	r, ok := s.try(fix.Apply)
	if !ok {
		return false
	}
	a := fix.Action
	a.Verified = true
	a.Placement = Placement(r)
	s.actions = append(s.actions, a)
	return true
}

// Placement names the members of a result's placement.
func Placement(r *ladder.Result) []answer.Placed {
	if r.Place == nil || !r.Place.Fits() {
		return nil
	}
	var placed []answer.Placed
	for _, a := range r.Place.Placement {
		if members := r.Party.Members[a.Role]; int(a.Member) < len(members) {
			placed = append(placed, answer.Placed{Member: members[a.Member].Name(), Node: a.Node})
		}
	}
	slices.SortFunc(placed, func(a, b answer.Placed) int { return cmp.Compare(a.Member, b.Member) })
	return placed
}

// fixes are what the findings themselves know; where no single one is enough, all of them together.
func (s *search) fixes() {
	one := false
	findings := s.base.Findings()
	for _, f := range findings {
		for _, fix := range f.Fixes {
			one = s.offer(fix) || one
		}
	}
	var steps []ladder.Fix
	for _, f := range findings {
		if len(f.Fixes) > 0 {
			steps = append(steps, f.Fixes[0])
		}
	}
	if one || len(steps) < 2 {
		return
	}
	s.offer(together(steps))
}

// together does one step after the other.
func together(steps []ladder.Fix) ladder.Fix {
	all := ladder.Fix{Action: answer.Action{Kind: answer.Fix, By: answer.User, Change: map[string]any{}}}
	for i, step := range steps {
		if i > 0 {
			all.Text += ", and "
			all.Command += "\n"
		}
		all.Text += step.Text
		all.Command += step.Command
		for key, value := range step.Change {
			all.Change[key] = value
		}
		if step.By == answer.Admin {
			all.By = answer.Admin
		}
	}
	all.Apply = func(snap *snapshot.Snapshot) *snapshot.Snapshot {
		for _, step := range steps {
			if snap = step.Apply(snap); snap == nil {
				return nil
			}
		}
		return snap
	}
	return all
}

// change is a key of a role.
func change(role, key string) string { return fmt.Sprintf("%s.%s", role, key) }

package advice

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
)

const (
	// maxFirst is how many first steps are tried at most, and maxSteps how many are taken one after the other before the last.
	maxFirst = 5
	maxSteps = 2
)

// upon is the search that another one goes on from, and the step after which that one searches.
type upon struct {
	*search
	step stage.Fix
}

// root is the search in the cluster as it is.
func (s *search) root() *search {
	for s.upon != nil {
		s = s.upon.search
	}
	return s
}

// stepper searches for several steps that start the gang together: a first one, and what is found in the cluster after that.
type stepper struct{ *search }

// steps offers what starts the gang after a first step. Of two causes, each with its own way out, one is the first step, whichever that is, and the other
// is what the whole search finds after it. A further step is taken only where one is not enough.
func (s stepper) steps() {
	if s.again {
		return
	}
	repaired := slices.ContainsFunc(s.actions, func(a answer.Action) bool {
		return a.Kind == answer.Fix || a.Kind == answer.Uncordon || a.Kind == answer.Evict
	})
	var firsts []stage.Fix
	users := 0
	if !s.usersWay() && (len(s.actions) == 0 || len(s.cut) == 0) { // what was not tried to the end may do without a further step
		firsts, users = s.firsts()
	}
	var rests []*search
	for i, first := range firsts {
		if s.spent() || s.usersWay() || i >= users && len(s.actions) > 0 {
			break
		}
		rest := s.after(first, min(2, len(firsts)-i))
		if rest == nil || rest.repeats(s.root().rests) {
			continue
		}
		s.root().rests = append(s.root().rests, rest)
		rest.single()
		rests = append(rests, rest)
		s.partial = s.partial || rest.hurried || len(rest.cut) > 0
	}
	if len(s.actions) == 0 && s.taken() < maxSteps {
		for i, rest := range rests {
			if s.spent() || len(s.actions) > 0 {
				break
			}
			if rest.base.Verdict == answer.Waiting {
				continue
			}
			rest.budget = s.share(min(2, len(rests)-i))
			rest.within(answer.Fix, 1, stepper{rest}.steps)
			s.partial = s.partial || len(rest.cut) > 0
		}
	}
	if !repaired {
		s.thenWaits(rests)
	}
}

// taken is how many steps were taken before.
func (s *search) taken() (n int) {
	for on := s.upon; on != nil; on = on.upon {
		n++
	}
	return n + 1
}

// repeats reports whether the same steps were taken in another order, or what is the same in other words, and all was searched for after them.
func (s *search) repeats(earlier []*search) bool {
	changes := s.changes()
	return slices.ContainsFunc(earlier, func(other *search) bool {
		return len(other.cut) == 0 && !other.hurried && (other.w == s.w || changes != nil && equality.Semantic.DeepEqual(changes, other.changes()))
	})
}

// changes are those of all steps before; nil where two of them change the same, or it is not known what one changes.
func (s *search) changes() map[string]any {
	all := map[string]any{}
	for on := s.upon; on != nil; on = on.upon {
		if len(on.step.Change) == 0 {
			return nil
		}
		for key, value := range on.step.Change {
			if _, again := all[key]; again {
				return nil
			}
			all[key] = value
		}
	}
	return all
}

// usersWay reports whether something was found that the user can do, or that happens by itself.
func (s *search) usersWay() bool {
	return slices.ContainsFunc(s.actions, func(a answer.Action) bool { return a.By != answer.Admin })
}

// after is the search in the cluster after a step, with one of some shares of the time; nil where the step cannot be taken.
func (s stepper) after(step stage.Fix, shares int) *search {
	a := s.attempt(step.Apply)
	if a == nil || a.r == nil {
		return nil
	}
	switch r := a.r; {
	case r.Starts():
		s.add(step, Placement(r))
		return nil
	case r.Primary == nil || r.Verdict == answer.Uncertain || r.Verdict == answer.Failed:
		return nil
	}
	return &search{budget: s.share(shares), tools: s.tools, w: a.w, g: a.r.Gang, base: a.r, reader: s.reader, depth: s.depth, behind: s.behind, upon: &upon{s.search, step}}
}

// firsts are the steps that something is searched after: what each finding knows, and what has nodes that could take members be open to them. Those of the user come
// first: what is found after them may be the user's, too. Where a way is known, none but these are worth their time. Other ways to do the same come last.
func (s stepper) firsts() (all []stage.Fix, ofUser int) {
	var users, admins, further []stage.Fix
	for _, f := range s.base.Findings() {
		for i, fix := range f.Fixes {
			switch {
			case fix.Kind == answer.Uncordon: // which is not enough alone
				admins = append(admins, fix)
			case searched(f, fix):
			case i > 0:
				further = append(further, fix)
			case fix.By == answer.Admin:
				admins = append(admins, fix)
			default:
				users = append(users, fix)
			}
		}
	}
	if s.base.Primary.Code == answer.TooBig && !slices.ContainsFunc(admins, func(fix stage.Fix) bool { return fix.Repair != nil }) { // which is found without a look at what is closed
		if closed := (nodeRepairer{s.search}).closed(); len(closed.Names) > 0 {
			admins = append(admins, closed.Fix())
		}
	}
	for _, set := range (relaxer{s.search}).openings() {
		fix := s.fix(relaxed(set...))
		fix.Action = patch.Commanded(fix.Action, s.g, fix.Edit)
		same := func(has stage.Fix) bool {
			return overwrites(fix.Change, has.Change) && overwrites(has.Change, fix.Change)
		}
		if slices.ContainsFunc(users, same) {
			further = append(further, fix)
		} else {
			users = append(users, fix)
		}
	}
	all = slices.Concat(users, admins, further)
	return all[:min(maxFirst, len(all))], len(users)
}

// thenWaits offers a step after which the gang only waits for others: a queue that does not exist has to be named rightly on a cluster that is busy, too. Where nothing at all
// starts the gang, it is a step after which something else is in the way: that is one less. Neither starts it, so neither is verified to.
func (s stepper) thenWaits(rests []*search) {
	if s.base.Verdict != answer.Blocked || slices.ContainsFunc(s.actions, func(a answer.Action) bool { return !a.Verified }) {
		return
	}
	waits := func(r *stage.Diagnosis, starts bool) bool { return r != nil && !starts && r.Verdict == answer.Waiting }
	if all, more := alternative(s.base.Findings(), 0); more {
		fix := fixer{s.search}.together(fixer{s.search}.fewest(all, waits))
		if r, starts := s.try(fix.Apply); waits(r, starts) {
			s.promise(fix, r)
			return
		}
	}
	for _, rest := range rests {
		if waits(rest.base, false) {
			s.promise(rest.upon.step, rest.base)
			return
		}
	}
	for _, rest := range rests {
		if len(s.actions) == 0 && rest.base.Verdict == answer.Blocked && rest.base.Primary.Message != s.base.Primary.Message {
			s.promise(rest.upon.step, rest.base)
			return
		}
	}
}

// promise adds a fix that does not start the gang, with what is in its way then.
func (s *search) promise(fix stage.Fix, r *stage.Diagnosis) {
	if s.upon != nil {
		all, _ := s.upon.with(fix)
		s.upon.promise(all, r)
		return
	}
	if r.Verdict == answer.Blocked {
		fix.Text += ", and then it is blocked: " + r.Primary.Message
		if see := r.Primary.Commands; len(see) > 0 && command.Within(see[0], s.reader.Sees) {
			fix.How = joined(described(fix.Action), "then see "+see[0])
		}
	} else {
		fix.Text += ", and then it waits: " + r.Primary.Message
	}
	n := len(s.actions)
	s.add(fix, Placement(r))
	for i := range s.actions[n:] {
		s.actions[n+i].Verified = false
	}
}

// with is a fix of a search that goes on from this one, with the step before; other is true where that becomes another one.
func (u upon) with(fix stage.Fix) (all stage.Fix, other bool) {
	first, last := u.step, fix
	limit, other := u.lower(fix)
	if other {
		first, last = fix, limit
	}
	all = fixer{u.search}.together([]stage.Fix{first, last})
	if all.Edit != nil {
		all.Kind = leading(first.Kind, last.Kind)
	}
	return all, other
}

// lower is the step before where that raises a limit, as it is for the gang that an edit leaves: a smaller one needs no more.
func (u upon) lower(edit stage.Fix) (limit stage.Fix, ok bool) {
	if u.step.Kind != answer.Quota || edit.Edit == nil {
		return limit, false
	}
	r, _ := u.try(edit.Apply)
	if r == nil {
		return limit, false
	}
	same := func(fix stage.Fix, key string) bool {
		return equality.Semantic.DeepEqual(fix.Change[key], u.step.Change[key])
	}
	for _, f := range r.Findings() {
		for _, fix := range f.Fixes {
			if fix.Kind == answer.Quota && same(fix, "object") && same(fix, "resource") {
				return fix, true
			}
		}
	}
	return limit, false
}

// take adds a fix of a search that goes on from this one, with the step before, unless a part of that is known to be enough. It was found to work after that step, with the members
// placed so: it is tried again only where the step becomes another one.
func (u upon) take(fix stage.Fix, placed []answer.Placed) {
	if step, fewer := u.fewerNodes(fix); fewer {
		all, _ := upon{u.search, step}.with(fix)
		if u.covered(all) || u.offer(all) {
			return
		}
	}
	switch all, other := u.with(fix); {
	case u.covered(all):
	case other:
		u.offer(all)
	default:
		u.add(all, placed)
	}
}

// fewerNodes is the step before where that is a repair of nodes of which some have room enough for what an edit leaves.
func (u upon) fewerNodes(edit stage.Fix) (step stage.Fix, ok bool) {
	repair := u.step.Repair
	if repair == nil || len(repair.Names) < 2 || edit.Edit == nil {
		return step, false
	}
	request, ok := whatif.PlacementRequest(u.w, u.g, edit.Edit)
	enough := func(names []string) bool {
		return u.room(u.vacated().MapNodes(stage.Only(names, repair.Of)), request)
	}
	if !ok || !enough(repair.Names) {
		return step, false
	}
	names := least(repair.Names, enough)
	return repair.Some(names, names), len(names) < len(repair.Names) && !u.spent()
}

// merges reports whether a fix and the step before are one edit of the job: it is as that, and not one after the other, that they are tried.
func (u upon) merges(fix stage.Fix) bool { return u.step.Edit != nil && fix.Edit != nil }

// offerMerged offers an edit with the step before, in the search that this one goes on from.
func (s *search) offerMerged(fix stage.Fix) bool {
	if s.spent() {
		return false
	}
	all, _ := s.upon.with(fix)
	starts := false
	switch {
	case s.upon.known(all):
		starts = true
	case s.upon.covered(all):
		_, starts = s.try(fix.Apply) // it may be more than what is enough
	default:
		starts = s.upon.offer(all)
	}
	if starts {
		s.found(fix)
	}
	return starts
}

// found notes that a fix works after the step before.
func (s *search) found(fix stage.Fix) {
	a := s.restated(fix).Action
	a.Verified = true
	s.actions = append(s.actions, a)
}

// covered reports whether something that was found does with a part of what a fix changes.
func (s *search) covered(fix stage.Fix) bool {
	return slices.ContainsFunc(s.actions, func(a answer.Action) bool { return a.Verified && covers(a, fix) })
}

// known reports whether something that was found does all that a fix changes, and no more.
func (s *search) known(fix stage.Fix) bool {
	return slices.ContainsFunc(s.actions, func(a answer.Action) bool { return a.Verified && len(a.Change) == len(fix.Change) && covers(a, fix) })
}

// covers reports whether an action does a part of what a fix changes, or all of it.
func covers(a answer.Action, fix stage.Fix) bool {
	for key, value := range a.Change {
		if !equality.Semantic.DeepEqual(fix.Change[key], value) && !reversed(fix.Change[key], value) {
			return false
		}
	}
	return len(a.Change) > 0
}

// reversed reports whether two changes of a key are those of the same two steps, in the other order.
func reversed(a, b any) bool {
	x, _ := a.([]any)
	y, _ := b.([]any)
	return len(x) == 2 && len(y) == 2 && equality.Semantic.DeepEqual(x, []any{y[1], y[0]})
}

// searchedFor are the kinds of edits that are searched for, in the order in which they name several: besides these a job is repaired.
var searchedFor = []answer.ActionKind{answer.Reshape, answer.Trim, answer.Fewer, answer.Relax}

// leading is the kind of two edits together, in whichever order they are.
func leading(a, b answer.ActionKind) answer.ActionKind {
	for _, kind := range searchedFor {
		if kind == a || kind == b {
			return kind
		}
	}
	return answer.Fix
}

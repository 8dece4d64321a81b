package advice

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// edit is an action that submits the job again with another spec.
type edit struct {
	answer.Action
	apply func(*whatif.Spec)
}

// after is the edit on top of another one.
func (e edit) after(first edit) edit {
	all := e
	all.Text, all.Cost = inOne(first.Text, e.Text), joined(first.Cost, e.Cost)
	all.Change = map[string]any{}
	maps.Copy(all.Change, first.Change)
	maps.Copy(all.Change, e.Change)
	all.apply = func(spec *whatif.Spec) {
		first.apply(spec)
		e.apply(spec)
	}
	return all
}

// inOne is the text of two actions that are one, such as the same change of two roles. Owners are asked once.
func inOne(a, b string) string {
	if a == "" || a == b {
		return b
	}
	if first := phrase.Unasked(a); first != a && phrase.Unasked(b) != b {
		return first + ", and " + phrase.Unasked(b) + phrase.IfOwnersAgree
	}
	return a + ", and " + b
}

// change is a key of a role.
func change(role, key string) string { return fmt.Sprintf("%s.%s", role, key) }

// hasRoom reports whether the members as edited have a placement on the nodes, once those that are there are gone.
func (s *search) hasRoom(e edit) bool {
	request, ok := whatif.PlacementRequest(s.w, s.g, e.apply)
	return ok && s.room(s.vacated(), request)
}

// minMember is the key of a change of the minimum.
const minMember = "minMember"

// restated is an edit with what comes of a minimum above all members: see [whatif.AsItIs].
func (s *search) restated(fix stage.Fix) stage.Fix {
	if fix.Edit == nil || s.g.Min <= s.g.Total() || fix.Change[minMember] != nil {
		return fix
	}
	if n := whatif.Revise(s.g, fix.Edit).Min; n != s.g.Min {
		fix.Change = maps.Clone(fix.Change)
		if fix.Change == nil {
			fix.Change = map[string]any{}
		}
		fix.Change[minMember] = int64(n)
		fix.Text = inOne(fix.Text, fmt.Sprintf("set minMember to %d", n))
	}
	return fix
}

// vacated is the cluster without the gang's own members.
func (s *search) vacated() *placement.Cluster {
	return s.cluster().Without(placement.PodIDs(s.g.ExistingPods())...)
}

// fix is an edit as a change of the cluster.
func (s *search) fix(e edit) stage.Fix {
	return stage.Fix{Action: e.Action, Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Resubmit(snap, s.g, e.apply) }, Edit: e.apply}
}

// startAgain is the cost of an edit for a gang that runs in part.
const startAgain = "members that run start again"

// offerEdit adds an edit if the gang starts after it.
func (s *search) offerEdit(e edit) bool {
	return s.hasRoom(e) && s.offerRoomy(e)
}

// offerRoomy is offerEdit for an edit with which there is room.
func (s *search) offerRoomy(e edit) bool {
	fix := s.fix(e)
	if s.g.Count(gang.Running) > 0 {
		fix.Cost = joined(fix.Cost, startAgain)
	}
	if s.upon != nil && s.upon.merges(fix) {
		return s.offerMerged(fix)
	}
	r, ok := s.try(fix.Apply)
	if ok {
		fix.Action = patch.Commanded(fix.Action, s.g, fix.Edit)
		if e.Cost == answer.LessCompute {
			fix.Devices = computeOf(whatif.Revise(s.g, fix.Edit).Roles)
		}
		s.add(fix, Placement(r))
	}
	return ok
}

// startsAgain reports whether the gang starts as large as it is, once what its members have is free. Another size, or more nodes, is no way out then: what is in its way
// is not that there is too little.
func (s *search) startsAgain() bool {
	same := edit{apply: func(*whatif.Spec) {}}
	if s.g.Count(gang.Starting, gang.Running, gang.Terminating, gang.Lost, gang.Failed) == 0 || len(s.g.Exclusive) == 0 && !s.hasRoom(same) {
		return false
	}
	apply := s.fix(same).Apply
	r, starts := s.try(apply)
	if starts {
		s.startOver(apply, r)
	}
	return starts
}

// startOver offers, given how that changes the cluster and the diagnosis after it, that the pods of a replica of a LeaderWorkerSet are made again which has a topology domain for itself: its controller keeps all of them in
// that in which the leader is, and there is room for all in another. They are made again when the leader is deleted.
func (s *search) startOver(apply func(*snapshot.Snapshot) *snapshot.Snapshot, r *stage.Diagnosis) {
	g := s.g
	if g.Kind.GroupKind() != leaderworkerset.Reader().GroupKind || len(g.Exclusive) == 0 || g.Count(gang.Running) >= g.Min {
		return
	}
	i := slices.IndexFunc(g.Members, func(m gang.Member) bool { return m.Role == leaderworkerset.Leader && m.Bound() })
	if i < 0 {
		return
	}
	leader, in := g.Members[i].Pod, ""
	if n := s.w.Cluster().Node(leader.Spec.NodeName); n != nil {
		in = n.Labels[g.Exclusive[0].Rule.Required]
	}
	s.add(stage.Fix{Apply: apply, Action: answer.Action{Kind: answer.Fix, By: answer.User, Cost: startAgain,
		Text:   fmt.Sprintf("delete pod %s, which keeps the others in %s=%s: all of them are made again, and there is room for all elsewhere", leader.Name, g.Exclusive[0].Rule.Required, in),
		Change: map[string]any{"pods": []string{leader.Name}}, Command: command.DeletePods(leader.Namespace, []*corev1.Pod{leader})}}, Placement(r))
}

// computeOf is how many devices the pods of some roles take in all, whichever of their containers requests them.
func computeOf(roles []gang.Role) (n int64) {
	for _, role := range roles {
		n += podrequest.Devices(request(role)) * int64(role.Replicas)
	}
	return n
}

// offerLargest adds the edit with the largest value, from lo to hi, after which the gang starts. Smaller values take less.
func (s *search) offerLargest(lo, hi int64, to func(int64) edit) {
	n, ok := placement.Largest(lo, hi, func(n int64) bool { return s.hasRoom(to(n)) })
	if !ok || s.spent() || s.offerRoomy(to(n)) || !s.rationed() {
		return
	}
	// There is room, but a quota or a queue allows less.
	n, ok = placement.Largest(lo, n-1, func(n int64) bool {
		_, starts := s.try(s.fix(to(n)).Apply)
		return starts
	})
	if ok && !s.spent() {
		s.offerEdit(to(n))
	}
}

// assumes reports whether commands would change a job that is not in the cluster yet, or not like that.
func (s *search) assumes(commands string) bool {
	if !s.w.Assumed {
		return false
	}
	job := fmt.Sprintf(" %s %s ", strings.ToLower(s.g.Kind.Kind), s.g.Meta.Name)
	return strings.Contains(commands, " patch"+job) || strings.Contains(commands, " get"+job)
}

// like is how a job that is assumed gets another spec: where that was given, in flags those of the line that would resize it.
func (s *search) like(line string) string {
	how, stored := "submit it like that", false
	if now := s.w.Present(); now != s.w && now.Lookup(s.g.Kind.GroupKind(), s.g.Meta.Namespace, s.g.Meta.Name) != nil {
		how, stored = "resize it like that", true
	}
	args := resize.ArgsIn(line)
	if args == nil {
		return how
	}
	flags, left := slices.DeleteFunc(args[1:], func(arg string) bool { return arg == "--"+resize.FlagRecreate }), []string(nil)
	if !stored {
		flags, left = resize.AsSubmitted(flags)
	}
	if len(flags) > 0 {
		how += ", with " + shell.Join(flags...)
	}
	if len(left) > 0 {
		how += ", without node selector " + strings.Join(left, ", ")
	}
	return how
}

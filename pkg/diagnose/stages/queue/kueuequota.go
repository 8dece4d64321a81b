package queue

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// quotaWait is a gang that a ClusterQueue has too little quota for.
type quotaWait struct {
	*stage.Context
	tree *cohort.Tree
	// queue is the ClusterQueue, and wl the Workload of the gang; nil where there is none yet.
	queue, wl *unstructured.Unstructured
	// sets are what Kueue counts of the gang, and short is what is short for one of them.
	sets  []cohort.PodSet
	short cohort.Shortage
}

// kueueQuota assigns each role a flavor with enough left, as Kueue does, and reports the first role without one. Pods select
// the nodes of their flavors and tolerate what these tolerate, so the placement must too: where none has enough left, what any flavor that it may be one day gives them.
func kueueQuota(c *stage.Context, out *stage.Result, queue, wl *unstructured.Unstructured) *stage.Finding {
	tree := queueing.QuotaTreeFor(c.View, wl)
	sets := queueing.PodSets(c.View, c.Gang)
	waits := func(short *cohort.Shortage) quotaWait { return quotaWait{c, tree, queue, wl, sets, *short} }
	potential := tree.Potential(queue.GetName())
	if short := undeclared(c, out, potential.Undeclared(sets...), queue, wl); short != nil {
		return waits(short).never()
	}
	if _, short := potential.Assign(sets...); short != nil {
		return waits(short).never()
	}
	flavors, short := tree.Available(queue.GetName()).Assign(sets...)
	out.Injected = map[string]cohort.Injected{}
	if short != nil {
		whole := tree.Potential(queue.GetName())
		for _, set := range sets {
			out.Injected[set.Name] = whole.Injected(set)
		}
		return waits(short).held(out)
	}
	for role, names := range flavors {
		out.Injected[role] = tree.Injected(names...)
	}
	inPart(c, out, tree.Available(queue.GetName()), queue.GetName())
	return nil
}

// inPart remarks with how many members Kueue admits a Job that it may admit in part, where the quota is not enough for all.
func inPart(c *stage.Context, out *stage.Result, left *cohort.Availability, queue string) {
	if c.Gang.Kind.Group != batchv1.GroupName || c.Gang.MinMember == nil {
		return
	}
	most, _ := placement.Largest(int64(*c.Gang.MinMember), int64(c.Gang.Total()), func(n int64) bool {
		job := *c.Gang.Job
		job.MinMember = new(int32(n))
		some := *c.Gang
		some.Job = &job
		_, short := left.Assign(queueing.PodSets(c.View, &some)...)
		return short == nil
	})
	if most > 0 && most < int64(c.Gang.Total()) {
		out.Note("Kueue starts it with %d of its %d members, its %s allows %d and more: ClusterQueue %s has no quota for all of them now", most, c.Gang.Total(), batchjob.MinParallelism, *c.Gang.MinMember, queue)
	}
}

// unavailable matches how Kueue reports that a ClusterQueue has no quota at all for what is requested.
var unavailable = regexp.MustCompile(`resource (\S+) unavailable in ClusterQueue`)

// undeclared finds which of all resources for which the queue has no quota keeps the gang out. Whether Kueue leaves that out of account is in its configuration, which is
// not seen: what it counts of the job, or reported of it, decides.
func undeclared(c *stage.Context, out *stage.Result, all []cohort.Shortage, queue, wl *unstructured.Unstructured) *cohort.Shortage {
	if len(all) == 0 || wl != nil && kueue.Admitted(wl) {
		return nil
	}
	if wl != nil {
		condition, status := gang.ConditionIn(wl, "QuotaReserved")
		m := unavailable.FindStringSubmatch(condition.Message)
		for _, s := range all {
			if queueing.Counts(wl, s.Name) || status == "False" && m != nil && m[1] == string(s.Name) {
				return &s
			}
		}
	}
	var names []string
	for _, s := range all {
		names = append(names, string(s.Name))
	}
	out.Note("ClusterQueue %s has no quota for %s: Kueue admits none that requests it, unless it is configured to leave that out of account", queue.GetName(), phrase.And(names))
	return nil
}

// never finds that the gang is more than the queue can ever give: of all its flavors, or of those that its own rules leave it.
func (w quotaWait) never() *stage.Finding {
	c, queue, name, s := w.Context, w.queue, w.queue.GetName(), w.short
	f := stage.Found(answer.QueueTooSmall, "Kueue can never admit it: ClusterQueue %s allows %s in all (flavor %s), and the gang needs %s",
		name, phrase.Amount(s.Name, s.Potential), s.Flavor, phrase.Quantity(s.Name, s.Requested)).Fact("queue", name).Fact("role", s.PodSet).
		See(queue.GetAPIVersion(), queue.GetKind(), queue, ".spec.resourceGroups")
	if s.Uncovered {
		f.Message = fmt.Sprintf("Kueue can never admit it: ClusterQueue %s has no quota for %s at all, and %s requests %s", name, s.Name, s.PodSet, phrase.Amount(s.Name, s.Requested))
		if of := c.Gang.RoleByName(s.PodSet); of != nil && of.Replicas > 1 && s.Requested%int64(of.Replicas) == 0 {
			f.Message += fmt.Sprintf(", %s for each of %s", phrase.Quantity(s.Name, s.Requested/int64(of.Replicas)), phrase.Count(of.Replicas, "member"))
		}
		f.Fact("resource", string(s.Name)).Fact("requested", s.Requested).Fact("limit", int64(0)).
			Detail("an administrator can cover it in spec.resourceGroups, or have Kueue leave it out of account (resources.excludeResourcePrefixes of its configuration)")
		computesOn := func(r gang.Role) bool {
			return request.Device(request.Of(&corev1.Pod{Spec: r.Template.Spec})) == s.Name
		}
		if !slices.ContainsFunc(c.Gang.Roles, computesOn) { // a job is of no use without its accelerator
			f.Fix(without(c, s.Name))
		}
		return f
	}
	others := usable(c, queue, w.tree.Potential(name).Exclusions(s.Name, s.PodSet, w.sets...))
	if s.Unsuited {
		f.Message = fmt.Sprintf("Kueue can never admit it: %s may use none of the flavors of ClusterQueue %s (%s): its nodeSelector, affinity or tolerations do not match them", s.PodSet, name, s.Flavor)
		for _, flavor := range strings.Split(s.Flavor, ", ") {
			if u := queueing.Object(c.View, "ResourceFlavor", "", flavor); u != nil {
				f.See(u.GetAPIVersion(), u.GetKind(), u, ".spec")
			}
		}
	}
	if !s.Unsuited && ofFlavors(f, w.tree, name, s) && len(others) == 0 {
		f.Message = fmt.Sprintf("Kueue can never admit it: ClusterQueue %s allows %s of one flavor (%s), and the gang needs %s of one", name, phrase.Amount(s.Name, s.Potential), s.Flavor, phrase.Quantity(s.Name, s.Requested))
	}
	if len(others) > 0 { // the queue is large enough: the rules of the job are what is in the way
		f.As(answer.Blocked, answer.User)
		f.Never = false
		f.Message = strings.Replace(f.Message, "can never admit it", "cannot admit it as it is", 1)
		if !s.Unsuited {
			f.Message += "; " + others[0].text
			others[0].text = ""
		}
	}
	for _, other := range others {
		other.add(c, f)
	}
	if s.Unsuited {
		return f
	}
	if !borrowMore(quotaFacts(f, s), w.tree, queue, s) {
		f.Fix(raiseNominal(queue, s, s.Nominal+s.Requested-s.Potential))
	}
	return lendMore(f, w.tree, name, s, s.Requested-s.Potential)
}

// without requests none of a resource.
func without(c *stage.Context, name corev1.ResourceName) stage.Fix {
	change := map[string]any{}
	for _, role := range c.Gang.Roles {
		change[role.Name+"."+string(name)] = nil
	}
	return patch.Job(c.Gang, answer.Fix, fmt.Sprintf("request no %s", name), change, func(spec *whatif.Spec) {
		for i := range spec.Roles {
			pod := &spec.Roles[i].Template.Spec
			for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
				for j := range containers {
					delete(containers[j].Resources.Requests, name)
					delete(containers[j].Resources.Limits, name)
				}
			}
		}
	})
}

// held finds that others use what the gang needs.
func (w quotaWait) held(out *stage.Result) *stage.Finding {
	queue, name, s := w.queue, w.queue.GetName(), w.short
	f := stage.Found(answer.KueueQuota, "Kueue holds it: ClusterQueue %s has %s of %s left (flavor %s), and the gang needs %s, %s more",
		name, phrase.Quantity(s.Name, max(0, s.Available)), phrase.Amount(s.Name, s.Potential), s.Flavor, phrase.Quantity(s.Name, s.Requested), phrase.Quantity(s.Name, s.Requested-s.Available)).
		See(queue.GetAPIVersion(), queue.GetKind(), queue, ".spec.resourceGroups").Fact("queue", name)
	quotaFacts(f, s)
	ofFlavors(f, w.tree, name, s)
	for _, other := range usable(w.Context, queue, w.tree.Available(name).Exclusions(s.Name, s.PodSet, w.sets...)) {
		other.add(w.Context, f)
	}
	policies, mayPreempt := w.preempts(out, f)
	w.consumers(f, mayPreempt)
	if w.wl != nil {
		w.state(f)
	}
	if f.Code == answer.VictimsTerminating {
		return f
	}
	if !borrowMore(f, w.tree, queue, s) {
		f.Fix(raiseNominal(queue, s, s.Nominal+s.Requested-s.Available))
	}
	lendMore(f, w.tree, name, s, s.Requested-s.Available)
	for _, policy := range policies {
		f.Fix(policy)
	}
	return f
}

// state adds what Kueue reports of the Workload: its place among those that wait, and what it waits for besides.
func (w quotaWait) state(f *stage.Finding) {
	wl, now := w.wl, w.View.Now
	position(w.Context, f, wl, w.queue.GetName())
	evictedFor(w.Context, f, wl)
	if at := kueue.RequeueAt(wl); at.After(now) {
		f.Detail("Kueue looks at it again at %s, in %s, and not before", phrase.Clock(at, now), phrase.Age(at.Sub(now)))
	}
	if condition, status := gang.ConditionIn(wl, "QuotaReserved"); status == "False" {
		if f.SinceTime(condition.At); !ofEviction(wl, condition) {
			f.Detail("Kueue reported %s ago: %s", phrase.Age(w.View.Age(condition.At)), condition.Message)
		}
	}
}

// ofFlavors adds what each of several flavors has of the resource that is short, and reports whether there are several: Kueue divides no role over them.
func ofFlavors(f *stage.Finding, tree *cohort.Tree, queue string, s cohort.Shortage) bool {
	all := tree.Available(queue).Of(s.Name)
	if len(all) < 2 {
		return false
	}
	text := func(n int64) string { return phrase.Quantity(s.Name, n) }
	f.Detail("of its flavors %s left; all pods of %s are of one", phrase.NamesOf(all[:min(len(all), maxFlavors)], func(q cohort.FlavorQuota) string {
		return fmt.Sprintf("%s has %s of %s", q.Flavor, text(max(0, q.Available)), text(q.Potential))
	}), s.PodSet)
	return true
}

// maxFlavors is how many flavors are named.
const maxFlavors = 8

func elsewhere(queue, own string) string {
	if queue == own {
		return ""
	}
	return " in ClusterQueue " + queue
}

func quotaFacts(f *stage.Finding, s cohort.Shortage) *stage.Finding {
	text := func(n int64) string { return phrase.Quantity(s.Name, n) }
	f.Detail("requested %s, used %s, limit %s (%s)", text(s.Requested), text(s.Used), text(s.Potential), s.Name)
	if s.Potential != s.Nominal {
		f.Detail("of the limit %s are the queue's own quota, the rest its cohort lends", text(s.Nominal))
	}
	return f.Fact("flavor", s.Flavor).Fact("resource", string(s.Name)).Fact("requested", s.Requested).Fact("used", s.Used).Fact("limit", s.Potential)
}

// position adds how many wait before the job in its ClusterQueue.
func position(c *stage.Context, f *stage.Finding, wl *unstructured.Unstructured, queue string) {
	all, mine := queueing.Waiting(c.View, queue, wl)
	if len(all) > 0 {
		ahead := len(queueing.Ahead(all, mine))
		f.Detail("position %d of %d that wait in ClusterQueue %s", ahead+1, len(all)+1, queue).Fact("position", ahead+1)
	}
}

// maxLenders is how many queues are named that do not lend what they have.
const maxLenders = 8

// lendMore adds which queues of the cohort have some of what is short, unused, and do not lend it; one that has as much as is lacking may lend that.
func lendMore(f *stage.Finding, tree *cohort.Tree, queue string, s cohort.Shortage, lacking int64) *stage.Finding {
	all := tree.Withheld(queue, s.Flavor, s.Name)
	for _, w := range all[:min(len(all), maxLenders)] {
		f.Detail("ClusterQueue %s of the same cohort has %s that nobody uses, and lends no more than %s (lendingLimit)", w.Queue, phrase.Amount(s.Name, w.Idle), phrase.Quantity(s.Name, w.Lends))
		if w.Idle < lacking {
			continue
		}
		text := phrase.Quantity(s.Name, w.Lends+lacking)
		f.Fix(stage.Fix{
			Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("raise lendingLimit of %s in flavor %s of ClusterQueue %s to %s", s.Name, s.Flavor, w.Queue, text),
				Change:  map[string]any{"lendingLimit": text, "object": "ClusterQueue/" + w.Queue, "resource": string(s.Name)},
				Command: command.JSONPatch("", "clusterqueue."+kueue.Group, w.Queue, command.Patch{Op: "replace", Path: command.Pointer(w.Path), Value: text})},
			Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Edit(snap, kueue.Kind("ClusterQueue"), "", w.Queue, func(u *unstructured.Unstructured) { setAmount(u, w.Path, text) })
			},
		})
	}
	return f
}

// borrowMore adds what the cohort has and the queue may not borrow, and reports whether it is enough: then a higher borrowing limit takes nothing from others for good, as a higher quota of
// the queue's own would, which no nodes may be there for.
func borrowMore(f *stage.Finding, tree *cohort.Tree, queue *unstructured.Unstructured, s cohort.Shortage) bool {
	name := queue.GetName()
	b, ok := tree.Borrowing(name, s.Flavor, s.Name)
	if !ok {
		return false
	}
	f.Detail("cohort %s has %s in all, %s that nobody uses; ClusterQueue %s borrows %s at most (borrowingLimit)", cohort.Of(queue), phrase.Amount(s.Name, b.Cohort), phrase.Quantity(s.Name, max(0, b.Idle)), name, phrase.Quantity(s.Name, b.Limit))
	limit, enough := b.Least(s.Requested)
	if !enough || limit <= b.Limit {
		return false
	}
	text := phrase.Quantity(s.Name, limit)
	f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("raise borrowingLimit of %s in flavor %s of ClusterQueue %s to %s", s.Name, s.Flavor, name, text),
			Change:  map[string]any{"borrowingLimit": text, "object": "ClusterQueue/" + name, "resource": string(s.Name)},
			Command: command.JSONPatch("", "clusterqueue."+kueue.Group, name, command.Patch{Op: "replace", Path: command.Pointer(b.Path), Value: text})},
		Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(snap, kueue.Kind("ClusterQueue"), "", name, func(u *unstructured.Unstructured) { setAmount(u, b.Path, text) })
		},
	})
	return true
}

// raiseNominal is the least quota of the queue's own that is enough.
func raiseNominal(queue *unstructured.Unstructured, s cohort.Shortage, limit int64) stage.Fix {
	name, text := queue.GetName(), phrase.Quantity(s.Name, limit)
	return stage.Fix{
		Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("raise nominalQuota of %s in flavor %s of ClusterQueue %s to %s", s.Name, s.Flavor, name, text),
			Change:  map[string]any{"limit": text, "object": "ClusterQueue/" + name, "resource": string(s.Name)},
			Command: command.JSONPatch("", "clusterqueue."+kueue.Group, name, command.Patch{Op: "replace", Path: command.Pointer(s.Path), Value: text})},
		Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(snap, kueue.Kind("ClusterQueue"), "", name, func(u *unstructured.Unstructured) { setAmount(u, s.Path, text) })
		},
	}
}

// setAmount writes an amount at a path through objects and lists.
func setAmount(u *unstructured.Unstructured, path []any, text string) {
	var at any = u.Object
	for i, step := range path {
		switch key := step.(type) {
		case string:
			object, _ := at.(map[string]any)
			if i == len(path)-1 {
				object[key] = text
				return
			}
			at = object[key]
		case int:
			list, _ := at.([]any)
			at = list[key]
		}
	}
}

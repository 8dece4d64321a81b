package queue

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kai"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// needs is what the members that the gang cannot do without request together, but for those that have done their work. The replicas of a Job are without those, and each of
// its waves is as many as the first.
func needs(c *stage.Context) corev1.ResourceList {
	roles, least := slices.Clone(c.Gang.Roles), min(c.Gang.Min, c.Gang.Total())
	if c.Gang.BatchJob != nil {
		least = min(least, roles[0].Replicas)
	} else {
		for _, m := range c.Gang.Members {
			i := slices.IndexFunc(roles, func(r gang.Role) bool { return r.Name == m.Role })
			if m.State == gang.Succeeded && i >= 0 {
				roles[i].Replicas--
				least--
			}
		}
	}
	least = max(0, least)
	need := whatif.Needs(roles, least)
	if d := c.Gang.Decl; d != nil && c.Gang.Bare != nil && len(c.Gang.Bare) == 0 {
		maps.Copy(need, d.MinResources) // no job is read, and no pod is there: that is all that is known
	}
	need[corev1.ResourcePods] = *resource.NewQuantity(int64(least), resource.DecimalSI)
	return need
}

// share is what is counted of one gang of a queue, and what of that its pods use.
type share struct {
	job          string
	amount, used int64
	// lasting is what of that no job's end gives back, and of what; remains is why, as the end of a sentence.
	lasting     int64
	of, remains string
}

// lasts finds what of a share no job's end gives back.
func (s *share) lasts(c *stage.Context, pods []*corev1.Pod, name corev1.ResourceName) {
	var of *view.Consumer
	var last *corev1.Pod
	for _, p := range pods {
		h := c.View.ConsumerOf(p)
		if n := request.OfResource(p, name) - request.ByClaims(p, name); h != nil && n > 0 && !c.EndsBefore(h, p) {
			s.lasting, of, last = request.Sum(s.lasting, n), h, p
		}
	}
	if of == nil {
		return
	}
	s.of, s.remains, s.lasting = c.Title(of), c.Prospects(of, last), min(s.lasting, s.amount)
	s.job = s.of
}

// capacity compares what the gang needs, less what its pods on nodes use, with what each queue from its own to the root allows. Of the first queue that has too little, each resource
// is found that it is short of: to raise one of them does not help.
func capacity(c *stage.Context, out *stage.Result, kind schema.GroupKind, q *unstructured.Unstructured) {
	need := needs(c)
	for range queueing.MaxDepth {
		short := map[corev1.ResourceName]bool{}
		for _, limit := range ceilings(c, kind, q, need) {
			if short[limit.name] {
				continue // by a lower limit
			}
			for _, d := range demands(c, kind, limit.name, need) {
				if d.want <= 0 || limit.firm && (c.Gang.Decl == nil || preemptible(c, *c.Gang.Decl)) {
					continue
				}
				if f := exceeded(c, kind, q, limit, d); f != nil {
					out.Add(f)
					short[limit.name] = true
					break
				}
			}
		}
		if len(short) > 0 {
			return
		}
		parent := queueing.Parent(q)
		i := slices.IndexFunc(c.View.Snap.Custom[kind], func(u *unstructured.Unstructured) bool { return u.GetName() == parent })
		if parent == "" || i < 0 {
			return
		}
		q = c.View.Snap.Custom[kind][i]
	}
}

// exceeded is the finding that a demand exceeds a limit of a queue, alone or with what is counted of others; nil if it does not.
func exceeded(c *stage.Context, kind schema.GroupKind, q *unstructured.Unstructured, limit ceiling, d demand) *stage.Finding {
	if d.alone() > limit.limit {
		return overQueue(c, kind, q, limit, d, nil)
	}
	if limit.level != nil && len(limit.level.others) == 0 {
		return nil // what is used of the whole cluster is evaluated where members are placed
	}
	if request.Sum(d.own, everyShare(c, kind, q.GetName(), limit, d)) <= limit.limit-d.want {
		return nil
	}
	shares := shares(c, kind, q.GetName(), limit, d)
	if sum(d, shares) <= limit.limit-d.want {
		return nil
	}
	if f := keptByStuck(c, kind, q, limit, d, shares); f != nil {
		return f
	}
	return overQueue(c, kind, q, limit, d, shares)
}

// keptByStuck is the finding that no more than what is reserved for gangs that can never start is in the way; nil if other things are, too.
func keptByStuck(c *stage.Context, kind schema.GroupKind, q *unstructured.Unstructured, limit ceiling, d demand, shares []share) *stage.Finding {
	a := admission{name: limit.name, want: d.want, used: d.own, limit: limit.limit, queue: q.GetName()}
	var reserved bool
	for _, s := range shares {
		a.used, reserved = request.Sum(a.used, min(s.amount, s.used)), reserved || s.amount > s.used
	}
	if !d.gate || !reserved {
		return nil
	}
	all := slices.DeleteFunc(reservations(c, a, within(c, kind, q.GetName())), func(r reservation) bool { return !r.stuck() })
	return a.keptBy(c, all)
}

// sum is what is used of a queue: by the gang itself and by others.
func sum(d demand, shares []share) int64 {
	used := d.own
	for _, s := range shares {
		used = request.Sum(used, s.amount)
	}
	return used
}

// within are a queue and the queues below it.
func within(c *stage.Context, kind schema.GroupKind, queue string) map[string]bool {
	inside := map[string]bool{queue: true}
	for range queueing.MaxDepth {
		for _, q := range c.View.Snap.Custom[kind] {
			if inside[queueing.Parent(q)] {
				inside[q.GetName()] = true
			}
		}
	}
	return inside
}

// shares are what is counted of other gangs of a queue and of the queues below it.
func shares(c *stage.Context, kind schema.GroupKind, queue string, limit ceiling, d demand) []share {
	var all []share
	for _, other := range counting(c, kind, queue, limit) {
		if c.Gang.Decl != nil && other.Key == c.Gang.Decl.Key {
			continue
		}
		pods := c.View.GroupPods(other)
		if amount := d.of(other, pods); amount > 0 {
			s := share{job: c.GroupName(other), amount: amount, used: queueing.Held(pods, limit.name)}
			s.lasts(c, pods, limit.name)
			if d := c.Gang.Decl; kind == kai.QueueKind() && d != nil && preemptible(c, other) && queueing.PriorityOf(c.View, other.PriorityClass) < queueing.PriorityOf(c.View, d.PriorityClass) {
				s.lasting = 0 // KAI preempts it within the queue
			}
			all = append(all, s)
		}
	}
	return all
}

// everyShare is how much is counted of all gangs of a queue and of the queues below it, that of the gang itself included.
func everyShare(c *stage.Context, kind schema.GroupKind, queue string, limit ceiling, d demand) int64 {
	type countedIn struct {
		schema.GroupKind
		queue      string
		name       corev1.ResourceName
		firm, gate bool
	}
	return view.Once(c.View, countedIn{kind, queue, limit.name, limit.firm, d.gate}, func() (all int64) {
		for _, other := range counting(c, kind, queue, limit) {
			all = request.Sum(all, d.of(other, c.View.GroupPods(other)))
		}
		return all
	})
}

// counting are the gangs of a queue, and of the queues below it, that count for a limit.
func counting(c *stage.Context, kind schema.GroupKind, queue string, limit ceiling) (all []gang.Declaration) {
	inside := within(c, kind, queue)
	for _, other := range c.View.Groups() {
		if other.Kind.Group == kind.Group && inside[other.Queue] && !(limit.firm && preemptible(c, other)) {
			all = append(all, other)
		}
	}
	return all
}

// overQueue is the finding that a demand exceeds what a queue allows, or what is left of that.
func overQueue(c *stage.Context, kind schema.GroupKind, q *unstructured.Unstructured, limit ceiling, d demand, shares []share) *stage.Finding {
	name, used := limit.name, sum(d, shares)
	text := func(n int64) string { return phrase.Quantity(name, n) }
	var f *stage.Finding
	if d.alone() > limit.limit {
		f = stage.Found(answer.QueueTooSmall, "queue %s allows %s in all%s, and %s",
			q.GetName(), phrase.Amount(name, limit.limit), limit.why(), d.needs(c, d.alone()))
	} else {
		f = stage.Found(answer.QueueQuota, "queue %s has %s of %s left%s, and %s: %s are used",
			q.GetName(), phrase.Quantity(name, max(0, limit.limit-used)), phrase.Amount(name, limit.limit), limit.why(), d.needs(c, d.want), phrase.Quantity(name, used))
	}
	if limit.firm {
		f.Detail("a gang that may be preempted can use more than the queue's quota")
	}
	limit.see(f, q)
	f.Detail("requested %s, used %s, limit %s (%s): together %s", text(d.want), text(used), text(limit.limit), name, text(request.Sum(used, d.want))).
		Fact("queue", q.GetName()).Fact("resource", string(name)).Fact("requested", d.want).Fact("used", used).Fact("limit", limit.limit).Fact("available", max(0, limit.limit-used))
	lasting, of := d.own, []string(nil)
	for _, s := range shares {
		if lasting = request.Sum(lasting, s.lasting); s.lasting > 0 {
			of = append(of, s.of)
		}
	}
	stage.DetailEach(f, shares, func(s share) string {
		if s.amount > s.used {
			return fmt.Sprintf("%s has %s reserved and uses %s%s", s.job, text(s.amount), text(s.used), s.remains)
		}
		return fmt.Sprintf("%s uses %s%s", s.job, text(s.amount), s.remains)
	})
	if f.Code == answer.QueueQuota && len(of) > 0 && lasting > limit.limit-d.want {
		noEnd(f, of)
	}
	if d.own > 0 {
		f.Detail("the gang itself uses %s", text(d.own))
	}
	d.explain(c, f)
	if d.stated() && request.Sum(used, d.need) <= limit.limit {
		f.Fact("overstated", true) // it is enough to state what is needed
		return f
	}
	if limit.firm && c.Gang.Decl != nil {
		f.Fix(mayBePreempted(c.Gang))
	}
	for _, fix := range limit.fixes(kind, q, request.Sum(used, d.want)) {
		f.Fix(fix)
	}
	return f
}

// mayBePreempted is the fix that KAI may preempt a gang, which its queue then lets use more than its quota: KAI writes what a label of the job says into the object of the gang.
func mayBePreempted(g *gang.Gang) stage.Fix {
	d, label := g.Decl, kai.PreemptibilityLabel
	return stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "let KAI preempt it, by label " + label, Change: map[string]any{"preemptibility": kai.Preemptible}, Cost: "it may be preempted",
			Command: command.Kubectl(g.Meta.Namespace, "label", "--overwrite", g.Ref(), label+"="+kai.Preemptible)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(s, d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name, func(u *unstructured.Unstructured) { whatif.Set(u, kai.Preemptible, "spec", "preemptibility") })
		},
	}
}

// preemptible reports whether KAI may preempt a gang: by its object, or else by its priority.
func preemptible(c *stage.Context, d gang.Declaration) bool {
	if u := c.View.Object(d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name); u != nil {
		f := gang.Fields{Object: u}
		if text := f.String("spec", "preemptibility"); text != "" {
			return text == kai.Preemptible
		}
	}
	return queueing.PriorityOf(c.View, d.PriorityClass) < 100
}

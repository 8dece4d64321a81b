package queue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// overcommit is by how much Volcano admits more than the cluster has, unless configured otherwise.
const overcommit = 1.2

// admission is a sum that Volcano compares with a limit when it admits a PodGroup: what it requests in minResources, what is used, and what is reserved for PodGroups
// that were admitted.
type admission struct {
	name              corev1.ResourceName
	want, used, limit int64
	// queue is the one whose limit it is; empty for that of the cluster, of which there is total.
	queue string
	total int64
}

// limited is the limit in a sentence.
func (a admission) limited() string {
	if a.queue != "" {
		return fmt.Sprintf("%s (queue %s)", phrase.Quantity(a.name, a.limit), a.queue)
	}
	return fmt.Sprintf("%s (%v times the %s of the cluster)", phrase.Quantity(a.name, a.limit), overcommit, phrase.Amount(a.name, a.total))
}

// ofCluster is what the whole cluster is compared by, of one resource.
func ofCluster(c *stage.Context, name corev1.ResourceName) admission {
	a := admission{name: name, want: request.Amount(name, c.Gang.Decl.MinResources[name])}
	a.total, a.used = queueing.InCluster(c.View, name)
	a.limit = int64(overcommit * float64(a.total))
	return a
}

// ofQueue is what the queue of the gang is compared by, where nothing but the cluster limits it.
func ofQueue(c *stage.Context, cluster admission, queue string) admission {
	type usedOf struct {
		queue string
		name  corev1.ResourceName
	}
	used := view.Once(c.View, usedOf{queue, cluster.name}, func() (used int64) {
		for _, d := range c.View.Groups() {
			if d.Key.Dialect == gang.Volcano && d.Queue == queue {
				used = request.Sum(used, min(queueing.Held(c.View.GroupPods(d), cluster.name), request.Amount(cluster.name, d.MinResources[cluster.name])))
			}
		}
		return used
	})
	return admission{name: cluster.name, want: cluster.want, used: used, limit: cluster.total, queue: queue}
}

// statedResources are the resources of a PodGroup's minResources that Volcano compares, device first.
func statedResources(d *gang.Declaration) []corev1.ResourceName {
	names := slices.DeleteFunc(slices.Collect(maps.Keys(d.MinResources)), func(name corev1.ResourceName) bool {
		return !counted(name) || request.Amount(name, d.MinResources[name]) <= 0
	})
	slices.SortFunc(names, devicesFirst)
	return names
}

// reserved looks for gangs that were admitted, reserve their minResources against all others, and do not start. Volcano
// counts them as used, and reports no more than "resource in cluster is overused".
func reserved(c *stage.Context, out *stage.Result, q *unstructured.Unstructured) {
	for _, name := range statedResources(c.Gang.Decl) {
		cluster := ofCluster(c, name)
		if cluster.mayBeKept(c) {
			if f := cluster.keptBy(c, reservations(c, cluster, nil)); f != nil {
				out.Add(f)
				return
			}
		}
		if _, of, known := above(c, q, name); !known || of != wholeCluster {
			continue
		}
		if own := ofQueue(c, cluster, q.GetName()); own.mayBeKept(c) {
			if f := own.keptBy(c, reservations(c, own, map[string]bool{q.GetName(): true})); f != nil {
				out.Add(f)
				return
			}
		}
	}
}

// overused explains why the cluster has too much in use for Volcano to admit the PodGroup: in a note where its members find no room either, which is evaluated
// where they are placed, and as a finding where only its minResources are too much. It reports whether it is so.
func overused(c *stage.Context, out *stage.Result) bool {
	need := needs(c)
	for _, name := range statedResources(c.Gang.Decl) {
		a := ofCluster(c, name)
		if a.used <= a.limit-a.want || queueing.Held(c.Gang.ExistingPods(), name) > 0 {
			continue // its own pods were placed without being admitted, and are among what is used
		}
		d := demand{name: name, want: a.want, need: request.Amount(name, need[name]), gate: true}
		text := func(n int64) string { return phrase.Quantity(name, n) }
		if a.used > a.limit-d.need {
			out.Note("the scheduler has not admitted it: %s requested %s, used %s, limit %s", phrase.Resource(name), text(a.want), text(a.used), a.limited())
			return true
		}
		f := stage.Found(answer.QueueQuota, "the scheduler admits PodGroups of up to %s of the cluster's %s now, and %s", text(max(0, a.limit-a.used)), phrase.Amount(name, a.total), d.needs(c, d.want)).
			Detail("requested %s, used %s, limit %s", text(a.want), text(a.used), a.limited()).
			Fact("queue", c.Gang.Decl.Queue).Fact("resource", string(name)).Fact("requested", a.want).Fact("used", a.used).Fact("limit", a.limit).Fact("available", max(0, a.limit-a.used))
		d.explain(c, f)
		out.Add(f.Fact("overstated", true))
		return true
	}
	return false
}

// reservation is an admitted gang that reserves resources without using them.
type reservation struct {
	d   gang.Declaration
	job *gang.Job
	// owner is what has made it, where that is of a kind that is not read.
	owner *metav1.OwnerReference
	// young reports that what has made it may be about to make its pods.
	young  bool
	amount int64
	why    *stage.Diagnosis
}

// stuck reports whether it will not start without anyone's action.
func (r reservation) stuck() bool {
	if r.job == nil {
		return !r.young
	}
	return r.job.End != nil || stage.Stuck(r.why)
}

// never reports whether it can never start as it is: nothing stands behind it, or its own user has to change it.
func (r reservation) never() bool {
	return r.job == nil || r.job.End != nil || stage.NeverStarts(r.why)
}

// reservations are the admitted gangs that hold more than their pods use, of some queues or of all, and why each does not start.
func reservations(c *stage.Context, a admission, queues map[string]bool) []reservation {
	var all []reservation
	for _, r := range everyReservation(c.View, a).all {
		if queues != nil && !queues[r.d.Queue] || c.Gang.Decl != nil && r.d.Key == c.Gang.Decl.Key {
			continue
		}
		if r.job == nil {
			r.owner, r.job = unreadOwner(c, r.d), madeUp(c, c.View.GroupPods(r.d))
			r.young = !r.d.Created.IsZero() && c.View.Age(r.d.Created) < stage.CreationGrace
		}
		if r.job != nil && c.Diagnose != nil {
			r.why = c.Diagnose(r.job)
		}
		all = append(all, r)
	}
	return all
}

// everyReserved are the admitted gangs that hold more than their pods use, whatever the queue, and how much more in each and in all, which is that of no queue.
type everyReserved struct {
	all     []reservation
	amounts map[string]int64
}

func everyReservation(v *view.View, a admission) *everyReserved {
	type reservationsOf struct {
		name    corev1.ResourceName
		cluster bool
	}
	return view.Once(v, reservationsOf{a.name, a.queue == ""}, func() *everyReserved {
		every := &everyReserved{amounts: map[string]int64{}}
		for _, d := range v.Groups() {
			if d.Key.Dialect != gang.Volcano {
				continue
			}
			pods := v.GroupPods(d)
			amount := reservedFor(d, pods, a.name, queueing.Held(pods, a.name))
			if amount <= 0 {
				continue
			}
			if a.queue == "" && d.Phase == volcano.PhaseInqueue {
				amount = reservedFor(d, pods, a.name, 0) // of the whole cluster it reserves all until every member that it needs runs, in addition to what they use
			}
			every.all = append(every.all, reservation{d: d, amount: amount, job: v.JobOfGroup(d)})
			for _, queue := range slices.Compact([]string{"", d.Queue}) {
				every.amounts[queue] = request.Sum(every.amounts[queue], amount)
			}
		}
		return every
	})
}

// madeUp is the gang that pods are which no job is read of; nil without pods.
func madeUp(c *stage.Context, pods []*corev1.Pod) *gang.Job {
	if len(pods) == 0 {
		return nil
	}
	type madeUpOf struct{ *corev1.Pod }
	return view.Once(c.View, madeUpOf{pods[0]}, func() *gang.Job {
		job, err := c.View.Find(view.Query{Kind: "pod", Namespace: pods[0].Namespace, Name: pods[0].Name})
		if err != nil {
			return nil // it is not known
		}
		return job
	})
}

// unreadOwner is what controls a group object, if that is of a kind that is not read: whether it is still there is not known, and it makes the object again.
func unreadOwner(c *stage.Context, d gang.Declaration) *metav1.OwnerReference {
	u := c.View.Object(d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name)
	if u == nil {
		return nil
	}
	if _, reader := kinds.WholeOf(u); reader.Kind != "" {
		return nil
	}
	return metav1.GetControllerOf(u)
}

// mayBeKept reports whether all that is reserved might keep the PodGroup from being admitted.
func (a admission) mayBeKept(c *stage.Context) bool {
	return a.used <= a.limit-a.want && request.Sum(a.used, a.want, everyReservation(c.View, a).amounts[a.queue]) > a.limit
}

// keptBy is the finding that reservations keep the PodGroup from being admitted; nil if they do not, or something else does, too.
func (a admission) keptBy(c *stage.Context, reservations []reservation) *stage.Finding {
	var reserved int64
	for _, r := range reservations {
		reserved = request.Sum(reserved, r.amount)
	}
	if reserved == 0 || a.used > a.limit-a.want || request.Sum(a.used, a.want, reserved) <= a.limit {
		return nil
	}
	text := func(n int64) string { return phrase.Quantity(a.name, n) }
	f := reservedBy(c, a, reservations)
	return f.Detail("requested %s, used %s, reserved %s: together %s, limit %s", text(a.want), text(a.used), text(reserved), text(request.Sum(a.used, a.want, reserved)), a.limited()).
		Fact("requested", a.want).Fact("used", a.used).Fact("limit", a.limit)
}

func reservedBy(c *stage.Context, a admission, reservations []reservation) *stage.Finding {
	idle := max(0, a.total-a.used)
	if a.queue != "" {
		idle = a.limit - a.used
	}
	stuck := slices.DeleteFunc(slices.Clone(reservations), func(r reservation) bool { return !r.stuck() })
	if len(stuck) == 0 {
		var names []string
		var promised int64
		for _, r := range reservations {
			names, promised = append(names, c.GroupName(r.d)), request.Sum(promised, r.amount)
		}
		return stage.Found(answer.ReservedByOthers,
			"%s promised to %s, which was admitted first", a.idleBut(idle, promised), phrase.Names(names)).
			Fact("resource", string(a.name)).Fact("idle", idle).Fact("reservedBy", names)
	}
	r := stuck[0]
	consumer, until := c.GroupName(r.d), "can never start"
	if !r.never() {
		until = "does not start until an administrator acts"
	}
	f := stage.Found(answer.ReservedByStuck,
		"%s reserved for %s, which %s", a.idleBut(idle, r.amount), consumer, until).
		Fact("resource", string(a.name)).Fact("idle", idle).Fact("reservedBy", consumer).Fact("reserved", r.amount)
	if c.Reader.Sees(r.d.Key.Namespace) {
		f.SeeGroup(r.d, ".spec.minResources")
	}
	switch {
	case r.job == nil && r.owner != nil:
		f.Detail("it has no pods; %s %s has made it, and would make it again", r.owner.Kind, r.owner.Name)
	case r.job == nil:
		f.Detail("no job stands behind it any more")
	case r.job.End != nil:
		f.Detail("%s has ended", bareName(c, r.d, r.job.Meta.Name))
	case r.why != nil && r.why.Primary != nil:
		text, _ := c.WhyOther(r.why)
		f.Detail("why %s does not start: %s", bareName(c, r.d, r.d.Key.Name), text).Fact("because", string(r.why.Primary.Code))
	}
	f.Detail("the scheduler reports only that resources are overused")
	for _, s := range stuck {
		f.Fix(dropGang(c, s))
	}
	return f
}

// idleBut begins a sentence about an amount that is idle and reserved, which may be a part of what is idle.
func (a admission) idleBut(idle, reserved int64) string {
	of := phrase.Amount(a.name, idle)
	if a.queue != "" {
		of += " of queue " + a.queue
	}
	if reserved < idle {
		return fmt.Sprintf("%s of %s that are idle are", phrase.Quantity(a.name, reserved), of)
	}
	return of + " are idle but"
}

// bareName is a name in the namespace of a gang, to a reader who sees it.
func bareName(c *stage.Context, d gang.Declaration, name string) string {
	if c.Reader.Sees(d.Key.Namespace) {
		return name
	}
	return "it"
}

// dropGang removes a gang that holds a reservation.
func dropGang(c *stage.Context, r reservation) stage.Fix {
	name := c.GroupName(r.d)
	pods := c.View.GroupPods(r.d)
	if r.job != nil && r.owner == nil { // which may have another name than its gang
		return c.Drop(r.job, name)
	}
	remove, owner := command.Kubectl(r.d.Key.Namespace, "delete", "podgroup."+r.d.Kind.Group, r.d.Key.Name), gang.Identity{Namespace: r.d.Key.Namespace, UID: r.d.UID}
	if of := r.owner; of != nil {
		kind := schema.FromAPIVersionAndKind(of.APIVersion, of.Kind)
		remove, owner = command.Kubectl(r.d.Key.Namespace, "delete", strings.ToLower(kind.GroupKind().String()), of.Name), gang.Identity{Namespace: r.d.Key.Namespace, UID: of.UID}
	}
	return stage.Fix{
		Action: answer.Action{Kind: answer.Evict, By: answer.Admin, Text: fmt.Sprintf("fix or delete %s", name), Cost: name + " loses its place; it does not start anyway",
			Change: map[string]any{"jobs": []string{name}}, Command: remove},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Gone(s, pods, owner) },
	}
}

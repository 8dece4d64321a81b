package queue

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// overcommit is by how much Volcano admits more than the cluster has, unless configured otherwise.
const overcommit = 1.2

// reservation is an admitted gang that reserves resources without using them.
type reservation struct {
	d      gang.Declaration
	job    *gang.Job
	amount int64
	why    *stage.Diagnosis
}

// reserved looks for gangs that were admitted, reserve their minResources against all others, and do not start. Volcano
// counts them as used, and reports no more than "resource in cluster is overused".
func reserved(c *stage.Context, out *stage.Result) {
	need := needs(c)
	for _, name := range slices.SortedFunc(maps.Keys(need), devicesFirst) {
		want := request.Amount(name, need[name])
		var total, used int64
		for _, n := range c.View.Cluster().Nodes() {
			q := n.Status.Allocatable[name]
			total += request.Amount(name, q)
		}
		for _, h := range c.View.Consumers() {
			used += h.Total(name)
		}
		reservations := reservations(c, name)
		var held int64
		for _, r := range reservations {
			held += r.amount
		}
		if held == 0 || float64(used+held+want) <= overcommit*float64(total) || float64(used+want) > overcommit*float64(total) {
			continue
		}
		out.Add(reservedBy(c, name, want, total-used, reservations))
		return
	}
}

// reservations are the admitted gangs that hold more than their pods use, and why each does not start.
func reservations(c *stage.Context, name corev1.ResourceName) []reservation {
	var all []reservation
	for _, d := range c.View.Groups() {
		if d.Key.Dialect != gang.Volcano || d.Phase != volcano.PhaseInqueue || c.Gang.Decl != nil && d.Key == c.Gang.Decl.Key {
			continue
		}
		amount := request.Amount(name, d.MinResources[name]) - held(c.View.GroupPods(d), name)
		if amount <= 0 {
			continue
		}
		r := reservation{d: d, amount: amount, job: c.View.JobOfGroup(d)}
		if r.job != nil && c.Diagnose != nil {
			r.why = c.Diagnose(r.job)
		}
		all = append(all, r)
	}
	return all
}

func reservedBy(c *stage.Context, name corev1.ResourceName, want, idle int64, reservations []reservation) *stage.Finding {
	var stuck []reservation
	for _, r := range reservations {
		if r.job == nil || r.job.End != nil || r.why != nil && r.why.Verdict == answer.Blocked {
			stuck = append(stuck, r)
		}
	}
	if len(stuck) == 0 {
		var names []string
		for _, r := range reservations {
			names = append(names, c.GroupName(r.d))
		}
		return stage.Found(answer.ReservedByOthers,
			"%s are idle but promised to %s, which was admitted first", phrase.Amount(name, idle), phrase.Names(names)).
			Fact("resource", string(name)).Fact("idle", idle).Fact("reservedBy", names)
	}
	r := stuck[0]
	consumer := c.GroupName(r.d)
	f := stage.Found(answer.ReservedByStuck,
		"%s are idle but reserved for %s, which can never start", phrase.Amount(name, idle), consumer).
		Fact("resource", string(name)).Fact("requested", want).Fact("idle", idle).Fact("reservedBy", consumer).Fact("reserved", r.amount)
	if c.Reader.Sees(r.d.Key.Namespace) {
		f.SeeRef(r.d.Kind.GroupVersion().String()+"/"+r.d.Kind.Kind+"/"+consumer, ".spec.minResources")
	}
	switch {
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
	remove, owner := command.Kubectl(r.d.Key.Namespace, "delete", "podgroup."+r.d.Kind.Group, r.d.Key.Name), gang.Identity{Namespace: r.d.Key.Namespace, UID: r.d.UID}
	if r.job != nil { // which may have another name than its gang
		remove, owner = command.Delete(r.job), gang.IdentityOf(&r.job.Meta)
	}
	return stage.Fix{
		Action: answer.Action{Kind: answer.Evict, By: answer.Admin, Text: fmt.Sprintf("fix or delete %s", name), Cost: name + " loses its place; it cannot start anyway",
			Change: map[string]any{"jobs": []string{name}}, Command: remove},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Gone(s, pods, owner) },
	}
}

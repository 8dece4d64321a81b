package autoscaler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/device"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/node"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Arrivals are the nodes that are on their way to the cluster and that the gang may use. Nil are none.
type Arrivals struct {
	// view is the cluster when they are there.
	view *view.View
	// joining are those of the cluster that are new and not ready for the gang, as they are now.
	joining []*corev1.Node
	// orders are those of autoscalers for coming more, of which it is known what they will have.
	orders []order
	coming int
}

// Arriving finds the nodes that are on their way; nil if the gang may use none.
func Arriving(c *stage.Context) *Arrivals {
	joining := joiningNodes(c)
	a := &Arrivals{view: joining.view}
	if a.view == nil {
		a.view = c.View
	}
	a.addOrders(c)
	if a.view == c.View {
		return nil
	}
	with := c.On(a.view)
	usable := node.Usable(with, with.Best())
	for _, n := range joining.nodes {
		if slices.Contains(usable, n.Name) {
			a.joining = append(a.joining, n)
		}
	}
	if len(a.joining) == 0 && a.coming == 0 {
		return nil
	}
	return a
}

// addOrders adds the nodes that were ordered and have not come yet: of groups that have a node already, and of NodeClaims that state what they will have.
func (a *Arrivals) addOrders(c *stage.Context) {
	var more further
	most := int(c.Gang.Total()) // more nodes than it has members change nothing
	for _, o := range ordersOf(c).open {
		counts := false
		if node := claimedNode(c, o); node != nil && more.claim(node, most) {
			a.coming, counts = a.coming+1, true
		}
		for _, g := range o.groups {
			models := node.InGroup(a.view, g.name)
			missing := g.to - len(models) // some may have come already
			if len(models) > 0 && missing > 0 && more.like(a.view.Cluster(), g.name, models, min(missing, most-len(more.nodes))) {
				a.coming, counts = a.coming+missing, true
			}
		}
		if counts {
			a.orders = append(a.orders, o)
		}
	}
	a.view = more.in(a.view)
}

// further are nodes that a cluster gets, with the pods that DaemonSets run on them.
type further struct {
	nodes []*corev1.Node
	pods  []*corev1.Pod
	// groups are those that the nodes are of, each with their number, and claims the NodeClaims.
	groups, claims []string
}

// claim adds the node of a NodeClaim, up to so many in all; false if it was counted already.
func (f *further) claim(node *corev1.Node, most int) bool {
	if slices.Contains(f.claims, node.Name) || len(f.nodes) >= most {
		return false
	}
	f.nodes, f.claims = append(f.nodes, node), append(f.claims, node.Name)
	return true
}

// like adds nodes like those that a group has, like the first with devices if one has any; false if they were counted already.
func (f *further) like(cluster *placement.Cluster, group string, models []*corev1.Node, count int) bool {
	if count <= 0 || slices.ContainsFunc(f.groups, func(known string) bool { return strings.HasPrefix(known, group+"=") }) {
		return false
	}
	at := max(0, slices.IndexFunc(models, func(n *corev1.Node) bool { return len(device.Of(n)) > 0 }))
	model := placement.AtCapacity(placement.Repaired(placement.Uncordoned(models[at]))).DeepCopy()
	model.Name += "-coming"
	nodes, pods := whatif.NewNodes(model, whatif.Daemons(cluster, models[at].Name), count)
	f.nodes, f.pods = append(f.nodes, nodes...), append(f.pods, pods...)
	f.groups = append(f.groups, fmt.Sprintf("%s=%d", group, count))
	return true
}

// in is the view of a cluster that has the nodes, too. Gangs that wait for nodes of the same groups look at the same one.
func (f *further) in(v *view.View) *view.View {
	assume := func() *view.View {
		snap := v.Snap.Clone()
		snap.Nodes, snap.Pods = append(snap.Nodes, f.nodes...), append(snap.Pods, f.pods...)
		return v.Assume(snap)
	}
	switch {
	case len(f.nodes) == 0:
		return v
	case len(f.claims) > 0: // which are of one gang
		return assume()
	}
	type of struct{ groups string }
	return view.Once(v, of{strings.Join(f.groups, " ")}, assume)
}

// In is the context of the cluster when the nodes are there.
func (a *Arrivals) In(c *stage.Context) *stage.Context {
	if a == nil {
		return c
	}
	return c.On(a.view)
}

// Finding is that the nodes are coming, and what for: the effect of it.
func (a *Arrivals) Finding(c *stage.Context, effect string) *stage.Finding {
	f := stage.Found(answer.ScalingUp, "%s%s", strings.Join(a.sentences(c), "; and "), effect)
	if len(a.joining) > 0 {
		f.Fact("nodes", node.Names(a.joining)).See("v1", "Node", a.joining[0], ".status.conditions")
	}
	for _, n := range a.joining {
		f.Detail("%s was created %s ago: %s", n.Name, phrase.Age(c.View.Age(n.CreationTimestamp.Time)), notYet(c, n, a.view.Cluster().Node(n.Name)))
	}
	if a.coming > 0 {
		f.SinceTime(a.orders[0].at).Fact("coming", a.coming)
	}
	return f
}

// sentences are which nodes are coming, those that have joined first.
func (a *Arrivals) sentences(c *stage.Context) (all []string) {
	if len(a.joining) > 0 {
		all = append(all, phrase.AreNames(node.Names(a.joining))+" joining the cluster")
	}
	if a.coming > 0 {
		who, what := "the autoscaler", a.orders[0].message
		if claims := a.claims(); len(claims) > 0 {
			who, what = a.orders[0].by, phrase.Names(claims)
		}
		all = append(all, fmt.Sprintf("%s coming: %s ordered %s %s ago (%s)", isComing(a.coming), who, phrase.Verb(a.coming, "it", "them"), phrase.Age(c.View.Age(a.orders[0].at)), what))
	}
	return all
}

// claims are the NodeClaims among the orders.
func (a *Arrivals) claims() (names []string) {
	for _, o := range a.orders {
		if o.claim != "" {
			names = append(names, o.claim)
		}
	}
	slices.Sort(names)
	return names
}

// Note completes what was found from a place on with the nodes that are coming: it counts them as if they were there.
func (a *Arrivals) Note(c *stage.Context, out *stage.Result, from int) {
	if a == nil || len(out.Findings) == from {
		return
	}
	out.Coming = a.view
	first := &out.Findings[from]
	for i := from; i < len(out.Findings); i++ {
		out.Findings[i].Detail("counted as there: %s", strings.Join(a.sentences(c), "; and "))
	}
	switch first.Code {
	case answer.TooBig, answer.SearchIncomplete:
		return
	}
	if count := len(a.joining) + a.coming; first.Verdict == answer.Waiting {
		first.Message += fmt.Sprintf("; of these nodes %d %s still on the way", count, phrase.Verb(count, "is", "are"))
	}
	effect := ""
	if !c.Fit(c.AfterEnds(), nil).Fits() {
		effect = ", which is a part of what it waits for"
	}
	out.Add(a.Finding(c, effect))
}

// joined are the nodes of a cluster that are new, and the cluster when they have joined: nil without any.
type joined struct {
	nodes []*corev1.Node
	view  *view.View
}

// joiningNodes are the nodes that are not ready, or do not have their devices yet, because they are new. They are the same for all gangs.
func joiningNodes(c *stage.Context) joined {
	type joiningKey struct{}
	return view.Once(c.View, joiningKey{}, func() (j joined) {
		for _, n := range c.View.Snap.Nodes {
			if whenJoined(c, n) != n {
				j.nodes = append(j.nodes, n)
			}
		}
		if len(j.nodes) > 0 {
			j.view = c.View.Assume(whatif.Nodes(c.View.Snap, func(n *corev1.Node) *corev1.Node { return whenJoined(c, n) }))
		}
		return j
	})
}

// whenJoined is a new node as it will be once it has joined; any other node is returned as it is. One that is about to go has not long to live.
func whenJoined(c *stage.Context, n *corev1.Node) *corev1.Node {
	if !node.IsNew(c, n) {
		return n
	}
	return device.Equipped(c, c.Repaired(n))
}

// notYet is what a new node lacks until it is as it will be.
func notYet(c *stage.Context, n, up *corev1.Node) string {
	if c.Repaired(n) != n {
		return node.Unfit(c, n)
	}
	var missing []string
	for name := range device.Of(up) {
		if !node.Offers(n, name) {
			missing = append(missing, phrase.Resource(name))
		}
	}
	slices.Sort(missing)
	return "its device plugin has not advertised " + phrase.And(missing) + " yet"
}

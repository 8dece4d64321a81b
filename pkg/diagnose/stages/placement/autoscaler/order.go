package autoscaler

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/device"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/node"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// scalingTakes is how long after its decision an autoscaler is still taken to be bringing nodes.
const scalingTakes = 20 * time.Minute

// scaleUp and nominates are the reasons of events by which the cluster autoscaler, and Karpenter, report that they have ordered nodes for a pod.
const scaleUp, nominates = "TriggeredScaleUp", "Nominated"

// scaled is how the cluster autoscaler announces nodes: [{ng-gpu 1->3 (max: 8)}].
var scaled = regexp.MustCompile(`\{(\S+) (\d+)->(\d+) \(max: (\d+)\)\}`)

// nominated is how Karpenter announces a node for a pod: one that it has ordered, or one that is there.
var nominated = regexp.MustCompile(`nodeclaim/([^\s,]+)(?:.*\bnode/([^\s,]+))?`)

// order is what an autoscaler has ordered for a member of the gang.
type order struct {
	pod, by, message string
	at               time.Time
	// groups are those that the cluster autoscaler makes larger.
	groups []growth
	// claim is the NodeClaim of Karpenter.
	claim string
	// failure is why it has come to nothing; empty if that was not reported.
	failure string
}

// growth is a node group and how many nodes it has and will have.
type growth struct {
	name     string
	from, to int
}

// title is the name of the group, of an id that may be a URL.
func (g growth) title() string { return g.name[strings.LastIndexByte(g.name, '/')+1:] }

// orders are what autoscalers have decided for members of the gang, the latest first: the last that they reported of a pod counts.
type orders struct {
	open, failed []order
	refusals     []view.Event
}

// refused reports whether the last that was decided is that no nodes are ordered.
func (o orders) refused() bool {
	return len(o.refusals) > 0 && (len(o.open) == 0 || o.refusals[0].Last.After(o.open[0].at))
}

// ordersKey is the key of what was ordered for a gang.
type ordersKey struct{ *gang.Gang }

// ordersOf are the orders for the members of the gang. The caller does not change the lists.
func ordersOf(c *stage.Context) orders {
	return view.Once(c.View, ordersKey{c.Gang}, func() orders { return readOrders(c) })
}

// readOrders reads the events about the members of the gang.
func readOrders(c *stage.Context) (all orders) {
	decided, reports := sets.New[string](), unfilled{}
	for _, e := range c.View.PodEvents(c.Gang) {
		if reports.read(e) {
			continue
		}
		o, orders := readOrder(e)
		if orders && reports.take(c, &o) {
			all.failed = append(all.failed, o)
			decided.Insert(e.Name)
			continue
		}
		if refuses := refusesToScale(e); !orders && !refuses || decided.Has(e.Name) {
			continue
		}
		decided.Insert(e.Name)
		switch o = failing(c, o); {
		case !orders:
			all.refusals = append(all.refusals, e)
		case len(o.groups) == 0 && o.claim == "":
		case c.View.Age(e.Last) > scalingTakes:
			if o.failure = missing(c, o); o.failure != "" {
				all.failed = append(all.failed, o)
			}
		case o.failure != "":
			all.failed = append(all.failed, o)
		default:
			all.open = append(all.open, o)
		}
	}
	all.failed = append(all.failed, reports.left(c)...)
	return all
}

// failing is an order with why it has come to nothing, and without the groups of which that is so, or the NodeClaim whose node is there.
func failing(c *stage.Context, o order) order {
	if o.claim == "" {
		var left []growth
		for _, g := range o.groups {
			if why := groupFailure(c, g.name, o.at); why != "" {
				o.failure = why
			} else {
				left = append(left, g)
			}
		}
		if len(left) > 0 {
			o.groups, o.failure = left, ""
		}
		return o
	}
	switch claim, known := c.View.NodeClaim(o.claim); {
	case claim == nil && known:
		o.failure = "NodeClaim " + o.claim + " does not exist any more"
		if events := c.View.NodeClaimEvents(o.claim); len(events) > 0 {
			o.failure += ": " + events[0].Message
		}
	case claim == nil:
	case c.View.NodeOf(claim) != nil:
		o.claim = ""
	default:
		o.failure = claim.Failure()
	}
	return o
}

// missing is which group has fewer nodes than were ordered; empty if none has, as far as its nodes are known.
func missing(c *stage.Context, o order) string {
	for _, g := range o.groups {
		if there := len(node.InGroup(c.View, g.name)); there < g.to && (there > 0 || g.from == 0) {
			return fmt.Sprintf("group %s has %s of %d", g.title(), phrase.Count(there, "node"), g.to)
		}
	}
	return ""
}

// failsToScale are the reasons of events about its own ConfigMap by which the cluster autoscaler reports that a group did not get its nodes.
func failsToScale(reason string) bool {
	return reason == "FailedToScaleUpGroup" || reason == "ScaleUpFailed" || reason == "ScaleUpTimedOut"
}

// ofGroup is how these events name the group.
var ofGroup = regexp.MustCompile(`\bgroup (\S+)`)

// groupFailure is why a group did not get its nodes, as was reported since an order; empty if it was not.
func groupFailure(c *stage.Context, group string, since time.Time) string {
	for _, e := range c.View.EventsOf("ConfigMap") {
		if !failsToScale(e.Reason) || !strings.HasPrefix(e.By, "cluster-autoscaler") || e.Last.Before(since) {
			continue
		}
		if m := ofGroup.FindStringSubmatch(e.Message); m != nil && strings.TrimSuffix(m[1], ":") == group {
			return e.Message
		}
	}
	return ""
}

// readOrder reads an event; ok is false for one that reports no order. Of a node that is there already nothing is on order any more.
func readOrder(e view.Event) (o order, ok bool) {
	o = order{pod: e.Name, by: e.By, message: e.Message, at: e.Last}
	switch e.Reason {
	case scaleUp:
		for _, m := range scaled.FindAllStringSubmatch(e.Message, -1) {
			from, _ := strconv.Atoi(m[2]) // the expression matches digits only
			to, _ := strconv.Atoi(m[3])
			o.groups = append(o.groups, growth{m[1], from, to})
		}
		return o, true
	case nominates:
		m := nominated.FindStringSubmatch(e.Message)
		if m != nil && m[2] == "" {
			o.claim = m[1]
		}
		return o, m != nil
	}
	return o, false
}

// refusesToScale recognises an autoscaler that will not help.
func refusesToScale(e view.Event) bool {
	return e.Reason == "NotTriggerScaleUp" || e.Reason == "FailedScheduling" && e.ByKarpenter()
}

// undetermined finds that nodes have been ordered for the gang of which it is not known what they will have; nil if there are none.
func undetermined(c *stage.Context, orders orders) *stage.Finding {
	for _, o := range orders.open {
		if o.claim != "" {
			if claimedNode(c, o) == nil {
				return nodeClaimed(c, o, orders)
			}
			continue
		}
		coming, unknown := 0, ""
		for _, g := range o.groups {
			nodes := node.InGroup(c.View, g.name)
			bare := slices.DeleteFunc(slices.Clone(nodes), func(n *corev1.Node) bool { return !unequipped(c, n) })
			coming += max(0, g.to-max(g.from, len(nodes))) + len(bare)
			switch {
			case len(bare) < len(nodes):
			case len(bare) > 0:
				unknown = phrase.AreNames(node.Names(bare)) + " of the group, and without devices as yet"
			case g.from > 0:
				unknown = "no node carries the name of group " + g.name
			default:
				unknown = "no node of the group exists yet"
			}
		}
		if unknown != "" {
			return stage.Found(answer.ScalingUp, "%s coming: the autoscaler ordered %s %s ago (%s)", isComing(coming), phrase.Verb(coming, "it", "them"), phrase.Age(c.View.Age(o.at)), o.message).
				SinceTime(o.at).Fact("coming", coming).Detail("whether %s enough cannot be determined: %s", phrase.Verb(coming, "it is", "they are"), unknown)
		}
	}
	return nil
}

// unequipped reports whether a node is so new that its devices of the kind that the gang requests may come yet, and how many is not known.
func unequipped(c *stage.Context, n *corev1.Node) bool {
	return node.IsNew(c, n) && slices.ContainsFunc(c.Request.Roles, func(r placement.Role) bool {
		name := request.Device(request.Of(r.Pod))
		return name != "" && !node.Offers(device.Equipped(c, n), name)
	})
}

// nodeClaimed finds that Karpenter has ordered nodes for members. What they will have is not known.
func nodeClaimed(c *stage.Context, latest order, orders orders) *stage.Finding {
	claims := sets.New[string]()
	for _, o := range orders.open {
		if o.claim != "" {
			claims.Insert(o.claim)
		}
	}
	return stage.Found(answer.ScalingUp, "%s coming: %s ordered %s ago (%s)", isComing(len(claims)), latest.by, phrase.Age(c.View.Age(latest.at)), phrase.Names(sets.List(claims))).
		SinceTime(latest.at).Fact("coming", len(claims)).Detail("whether they are enough cannot be determined before they are there")
}

// claimedNode is the node of an order of Karpenter, as its NodeClaim promises it; nil if that is not known yet.
func claimedNode(c *stage.Context, o order) *corev1.Node {
	claim, _ := c.View.NodeClaim(o.claim)
	if claim == nil {
		return nil
	}
	return claim.Node()
}

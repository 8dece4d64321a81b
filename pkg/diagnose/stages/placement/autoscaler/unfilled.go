package autoscaler

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/node"
)

// scaleUpFailed is the reason of events by which the autoscaler of GKE reports, about the pod, that the nodes which it has ordered do not come: its cloud has none to give, or its quota does not allow them.
const scaleUpFailed = "FailedScaleUp"

// inZones is how such an event says where and why: Node scale up in zones us-central1-a associated with this pod failed: GCE out of resources. Pod is at risk of not being scheduled.
var inZones = regexp.MustCompile(`^Node scale up in zones? (.+?) associated with this pod failed: (.+?)\.? Pod is at risk of not being scheduled\.?$`)

// unfilled are the last reports by pod that what was ordered for it does not come, of events that are read from the latest on. One that a later order has replaced is nil.
type unfilled map[string]*view.Event

// read takes in an event; false for one that is no such report.
func (u unfilled) read(e view.Event) bool {
	if e.Reason != scaleUpFailed {
		return false
	}
	if _, known := u[e.Name]; !known {
		u[e.Name] = &e
	}
	return true
}

// take gives the order that is read next of a pod what was reported of it since; false where nothing was, or its nodes have come all the same.
func (u unfilled) take(c *stage.Context, o *order) bool {
	e := u[o.pod]
	u[o.pod] = nil
	if e == nil || o.claim != "" || len(o.groups) > 0 && !slices.ContainsFunc(o.groups, func(g growth) bool { return len(node.InGroup(c.View, g.name)) < g.to }) {
		return false
	}
	if o.failure = missing(c, *o); o.failure != "" {
		o.failure += ": "
	}
	o.failure += whyUnfilled(c, *e)
	return true
}

// left are the reports of which the order is not to be seen any more, as events are kept for an hour.
func (u unfilled) left(c *stage.Context) (all []order) {
	for pod, e := range u {
		if e != nil {
			all = append(all, order{pod: pod, by: e.By, message: e.Message, failure: whyUnfilled(c, *e)})
		}
	}
	slices.SortFunc(all, func(a, b order) int { return cmp.Or(u[b.pod].Last.Compare(u[a.pod].Last), cmp.Compare(a.pod, b.pod)) })
	return all
}

// whyUnfilled is where and why the nodes do not come.
func whyUnfilled(c *stage.Context, e view.Event) string {
	ago := phrase.Age(c.View.Age(e.Last))
	if m := inZones.FindStringSubmatch(e.Message); m != nil {
		return fmt.Sprintf("scaling up in %s failed %s ago: %s", m[1], ago, m[2])
	}
	return fmt.Sprintf("scaling up failed %s ago: %s", ago, e.Message)
}

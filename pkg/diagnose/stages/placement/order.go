package placement

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
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
}

// growth is a node group and how many nodes it has and will have.
type growth struct {
	name     string
	from, to int
}

// ordersOf are what autoscalers have ordered for members of the gang, the latest first: the last that they reported of a pod counts. refused reports whether the last
// that they reported of all is that they order nothing.
func ordersOf(c *stage.Context) (all []order, refused bool) {
	decided := sets.New[string]()
	for _, e := range c.View.PodEvents(c.Gang) {
		o, orders := readOrder(e)
		if refuses := refusesToScale(e); !orders && !refuses || decided.Has(e.Name) {
			continue
		}
		if decided.Insert(e.Name); len(decided) == 1 {
			refused = !orders
		}
		if orders && c.View.Age(e.Last) <= scalingTakes && (len(o.groups) > 0 || o.claim != "") {
			all = append(all, o)
		}
	}
	return all, refused
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
	return e.Reason == "NotTriggerScaleUp" || e.Reason == "FailedScheduling" && strings.HasPrefix(e.By, "karpenter")
}

// nodeClaimed finds that Karpenter has ordered nodes for members. What they will have is not known.
func nodeClaimed(c *stage.Context, latest order, orders []order) *stage.Finding {
	claims := sets.New[string]()
	for _, o := range orders {
		if o.claim != "" {
			claims.Insert(o.claim)
		}
	}
	return stage.Found(answer.ScalingUp, "%s coming: %s ordered %s ago (%s)", isComing(len(claims)), latest.by, phrase.Age(c.View.Age(latest.at)), phrase.Names(sets.List(claims))).
		SinceTime(latest.at).Fact("coming", len(claims)).Detail("whether they are enough cannot be determined before they are there")
}

package stages

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/placement"
)

// scalingTakes is how long after its decision an autoscaler is still taken to be bringing nodes.
const scalingTakes = 20 * time.Minute

// passes looks for what is on its way already: pods that are leaving, nodes that are coming. It reports whether that alone
// makes the gang fit.
func (c *climb) passes() bool {
	leaving := func(_ *view.Holder, p *corev1.Pod) bool {
		return p.DeletionTimestamp != nil && !view.Stuck(p, c.w.Now)
	}
	if c.fitOn(c.without(leaving), nil).Fits() {
		c.add(*c.victims())
		return true
	}
	return c.scalingUp()
}

// victims: pods are being deleted, and the room that they leave is enough.
func (c *climb) victims() *Finding {
	var names, lines []string
	var last time.Time
	preempted := false
	ends := map[*view.Holder]time.Time{}
	for _, p := range c.inTheWay(func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil && !view.Stuck(p, c.w.Now) }) {
		h := c.w.HolderOf(p)
		ends[h] = latest(ends[h], p.DeletionTimestamp.Time)
		for _, cond := range p.Status.Conditions {
			preempted = preempted || cond.Type == corev1.DisruptionTarget && cond.Status == corev1.ConditionTrue
		}
	}
	for _, h := range c.others() {
		if end := ends[h]; !end.IsZero() {
			names = append(names, h.String())
			lines = append(lines, fmt.Sprintf("%s %s is terminating, at most %s left", h.Kind, h, phrase.Age(max(0, end.Sub(c.w.Now)))))
			last = latest(last, end)
		}
	}
	what := "is being deleted"
	if preempted {
		what = "is being preempted"
	}
	f := found(answer.StageOrder, answer.VictimsTerminating, answer.Waiting, answer.Nobody, "%s %s, and then it fits: at most %s left", phrase.Names(names), what, phrase.Age(max(0, last.Sub(c.w.Now)))).
		fact("victims", names).fact("until", last.UTC().Format(time.RFC3339))
	for _, line := range lines {
		f.detail("%s", line)
	}
	return f
}

// scaled is how the cluster autoscaler announces nodes: [{ng-gpu 1->3 (max: 8)}].
var scaled = regexp.MustCompile(`\{(\S+) (\d+)->(\d+) \(max: (\d+)\)\}`)

// scalingUp: the autoscaler has ordered nodes for the gang.
func (c *climb) scalingUp() bool {
	for _, e := range c.w.PodEvents(c.g) {
		if refusesToScale(e) {
			return false
		}
		if e.Reason == "Nominated" && c.w.Age(e.Last) <= scalingTakes {
			if claim := nominated.FindStringSubmatch(e.Message); claim != nil && claim[2] == "" {
				c.add(*c.nodeClaimed(e, claim[1]))
				return true
			}
		}
		if e.Reason != "TriggeredScaleUp" || c.w.Age(e.Last) > scalingTakes {
			continue
		}
		cluster := c.w.Cluster()
		coming, unknown := 0, ""
		for _, m := range scaled.FindAllStringSubmatch(e.Message, -1) {
			from, _ := strconv.Atoi(m[2]) // the expression matches digits only
			to, _ := strconv.Atoi(m[3])
			models := c.groupNodes(m[1])
			if len(models) == 0 {
				coming += max(0, to-from)
				if unknown = "no node of the group exists yet"; from > 0 {
					unknown = "no node carries the name of group " + m[1]
				}
				continue
			}
			missing := to - len(models) // some may have come already
			coming += max(0, missing)
			cluster = addLike(cluster, models[0], missing)
		}
		if unknown == "" && !c.fitOn(cluster, nil).Fits() {
			return false
		}
		f := found(answer.StageOrder, answer.ScalingUp, answer.Waiting, answer.Nobody, "%s coming: the autoscaler ordered %s %s ago (%s)", isComing(coming), phrase.Verb(coming, "it", "them"), phrase.Age(c.w.Age(e.Last)), e.Message).
			since(e.Last).fact("coming", coming)
		if unknown != "" {
			f.detail("whether %s enough cannot be told: %s", phrase.Verb(coming, "it is", "they are"), unknown)
		}
		c.add(*f)
		return true
	}
	return false
}

// refusesToScale recognises an autoscaler that will not help.
func refusesToScale(e view.Event) bool {
	return e.Reason == "NotTriggerScaleUp" || e.Reason == "FailedScheduling" && strings.HasPrefix(e.By, "karpenter")
}

// nominated is how Karpenter announces a node for a pod: one that it has ordered, or one that is there.
var nominated = regexp.MustCompile(`nodeclaim/([^\s,]+)(?:.*\bnode/([^\s,]+))?`)

// nodeClaimed: Karpenter has ordered a node for a member. What the node will have is not known.
func (c *climb) nodeClaimed(e view.Event, claim string) *Finding {
	claims := map[string]bool{claim: true}
	for _, other := range c.w.PodEvents(c.g) {
		if m := nominated.FindStringSubmatch(other.Message); other.Reason == "Nominated" && m != nil && m[2] == "" {
			claims[m[1]] = true
		}
	}
	return found(answer.StageOrder, answer.ScalingUp, answer.Waiting, answer.Nobody, "%s coming: %s ordered %s ago (%s)", isComing(len(claims)), e.By, phrase.Age(c.w.Age(e.Last)), phrase.Names(sortedKeys(claims))).
		since(e.Last).fact("coming", len(claims)).detail("whether they are enough cannot be told before they are there")
}

func isComing(nodes int) string {
	return phrase.Count(nodes, "node") + " " + phrase.Verb(nodes, "is", "are")
}

// addLike is the cluster with more empty nodes like one of its own.
func addLike(cluster *placement.Cluster, model *corev1.Node, count int) *placement.Cluster {
	var nodes []*corev1.Node
	for i := range max(0, count) {
		n := model.DeepCopy()
		n.Name = fmt.Sprintf("%s-coming-%d", model.Name, i+1)
		n.Labels[corev1.LabelHostname] = n.Name
		nodes = append(nodes, n)
	}
	return cluster.WithNodes(nodes...)
}

package ladder

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/fit"
)

// scalingTakes is how long after its decision an autoscaler is still taken to be bringing nodes.
const scalingTakes = 20 * time.Minute

// passes looks for what is on its way already: pods that are leaving, nodes that are coming. It reports whether that alone
// makes the gang fit.
func (c *climb) passes() bool {
	leaving := func(_ *world.Holder, p *corev1.Pod) bool {
		return p.DeletionTimestamp != nil && !world.Stuck(p, c.w.Now)
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
	for _, h := range c.others() {
		var end time.Time
		for _, p := range h.Pods {
			if p.DeletionTimestamp == nil || world.Stuck(p, c.w.Now) {
				continue
			}
			end = latest(end, p.DeletionTimestamp.Time)
			for _, cond := range p.Status.Conditions {
				preempted = preempted || cond.Type == corev1.DisruptionTarget && cond.Status == corev1.ConditionTrue
			}
		}
		if !end.IsZero() {
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
		if e.Reason == "NotTriggerScaleUp" {
			return false
		}
		if e.Reason != "TriggeredScaleUp" || c.w.Age(e.Last) > scalingTakes {
			continue
		}
		cluster := c.w.Cluster()
		coming, known := 0, true
		for _, m := range scaled.FindAllStringSubmatch(e.Message, -1) {
			to, _ := strconv.Atoi(m[3]) // the expression matches digits only
			models := c.groupNodes(m[1])
			missing := to - len(models)
			coming += max(0, missing)
			if len(models) == 0 {
				known = false
				continue
			}
			cluster = addLike(cluster, models[0], missing)
		}
		if known && !c.fitOn(cluster, nil).Fits() {
			return false
		}
		f := found(answer.StageOrder, answer.ScalingUp, answer.Waiting, answer.Nobody, "%s are coming: the autoscaler ordered them %s ago (%s)", phrase.Count(coming, "node"), phrase.Age(c.w.Age(e.Last)), e.Message).
			since(e.Last).fact("coming", coming)
		if !known {
			f.detail("whether they are enough cannot be told: no node of the group exists yet")
		}
		c.add(*f)
		return true
	}
	return false
}

// addLike is the cluster with more empty nodes like one of its own.
func addLike(cluster *fit.Cluster, model *corev1.Node, count int) *fit.Cluster {
	var nodes []*corev1.Node
	for i := range max(0, count) {
		n := model.DeepCopy()
		n.Name = fmt.Sprintf("%s-coming-%d", model.Name, i+1)
		n.Labels[corev1.LabelHostname] = n.Name
		nodes = append(nodes, n)
	}
	return cluster.WithNodes(nodes...)
}

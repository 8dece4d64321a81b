package placement

import (
	"fmt"
	"maps"
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
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/placement"
)

// scalingTakes is how long after its decision an autoscaler is still taken to be bringing nodes.
const scalingTakes = 20 * time.Minute

// passes looks for what is on its way already: pods that are leaving, nodes that are coming. It reports whether that alone
// makes the gang fit.
func passes(c *stage.Context, out *stage.Result) bool {
	if after := c.AfterDeletions(); after != c.View.Cluster() && c.Fit(after, nil).Fits() {
		out.Add(victims(c, "and then it fits"))
		return true
	}
	return scalingUp(c, out) || joining(c, out)
}

// joiningTakes is how long after its creation a node is still taken to be coming up.
const joiningTakes = 10 * time.Minute

// joining finds that nodes are not ready because they are new.
func joining(c *stage.Context, out *stage.Result) bool {
	var nodes []*corev1.Node
	ready := c.View.Cluster().MapNodes(func(n *corev1.Node) *corev1.Node {
		if c.View.Age(n.CreationTimestamp.Time) > joiningTakes || slices.ContainsFunc(n.Spec.Taints, placement.RemovalTaint) {
			return n
		}
		up := placement.Repaired(n)
		if up != n {
			nodes = append(nodes, n)
		}
		return up
	})
	if len(nodes) == 0 || !c.Fit(ready, nil).Fits() {
		return false
	}
	names := nodeNames(nodes)
	f := stage.Found(answer.ScalingUp, "%s joining the cluster, and then it fits", phrase.AreNames(names)).Fact("nodes", names).See("v1", "Node", nodes[0], ".status.conditions")
	for _, n := range nodes {
		f.Detail("%s was created %s ago: %s", n.Name, phrase.Age(c.View.Age(n.CreationTimestamp.Time)), unfit(c, n))
	}
	out.Add(f)
	return true
}

// victims finds that pods are being deleted, and what the room that they leave is for.
func victims(c *stage.Context, effect string) *stage.Finding {
	var names, lines []string
	var last time.Time
	preempted := false
	pods, _ := inTheWay(c, c.Causes(c.View.Cluster()), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil && !view.Stuck(p, c.View.Now) })
	going := sets.New(pods...)
	for _, h := range c.Others() {
		var end time.Time
		for _, p := range h.Pods {
			if !going.Has(p) {
				continue
			}
			end = view.Later(end, p.DeletionTimestamp.Time)
			preempted = preempted || gang.Disruption(p) != nil
		}
		if !end.IsZero() {
			names = append(names, c.Name(h))
			lines = append(lines, fmt.Sprintf("%s is terminating, at most %s left", c.Title(h), phrase.Age(max(0, end.Sub(c.View.Now)))))
			last = view.Later(last, end)
		}
	}
	what := "deleted"
	if preempted {
		what = "preempted"
	}
	f := stage.Found(answer.VictimsTerminating, "%s %s being %s, %s: at most %s left", phrase.Names(names), phrase.Verb(len(names), "is", "are"), what, effect, phrase.Age(max(0, last.Sub(c.View.Now)))).
		Fact("victims", names).Fact("until", last.UTC().Format(time.RFC3339))
	for _, line := range lines {
		f.Detail("%s", line)
	}
	return f
}

// scaleUp and nominates are the reasons of events by which the cluster autoscaler, and Karpenter, report that they have ordered nodes for a pod.
const scaleUp, nominates = "TriggeredScaleUp", "Nominated"

// scaled is how the cluster autoscaler announces nodes: [{ng-gpu 1->3 (max: 8)}].
var scaled = regexp.MustCompile(`\{(\S+) (\d+)->(\d+) \(max: (\d+)\)\}`)

// scalingUp finds that the autoscaler has ordered nodes for the gang.
func scalingUp(c *stage.Context, out *stage.Result) bool {
	for _, e := range c.View.PodEvents(c.Gang) {
		if refusesToScale(e) {
			return false
		}
		if e.Reason == nominates && c.View.Age(e.Last) <= scalingTakes {
			if claim := nominated.FindStringSubmatch(e.Message); claim != nil && claim[2] == "" {
				out.Add(nodeClaimed(c, e, claim[1]))
				return true
			}
		}
		if e.Reason != scaleUp || c.View.Age(e.Last) > scalingTakes {
			continue
		}
		cluster := c.View.Cluster()
		coming, unknown := 0, ""
		for _, m := range scaled.FindAllStringSubmatch(e.Message, -1) {
			from, _ := strconv.Atoi(m[2]) // the expression matches digits only
			to, _ := strconv.Atoi(m[3])
			models := groupNodes(c, m[1])
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
		if unknown == "" && !c.Fit(cluster, nil).Fits() {
			return false
		}
		f := stage.Found(answer.ScalingUp, "%s coming: the autoscaler ordered %s %s ago (%s)", isComing(coming), phrase.Verb(coming, "it", "them"), phrase.Age(c.View.Age(e.Last)), e.Message).
			SinceTime(e.Last).Fact("coming", coming)
		if unknown != "" {
			f.Detail("whether %s enough cannot be determined: %s", phrase.Verb(coming, "it is", "they are"), unknown)
		}
		out.Add(f)
		return true
	}
	return false
}

// ordered finds that the autoscaler has ordered nodes which bring what no node has yet: it does that for pods that the new nodes will take. What was
// found to be absent for the roles of these pods is a remark then; it reports whether nothing else is.
func ordered(c *stage.Context, out *stage.Result) bool {
	roles := sets.New[string]()
	for _, m := range c.Gang.Members {
		if m.Pod == nil {
			continue
		}
		for _, e := range c.View.Events("Pod", m.Pod.Namespace, m.Pod.Name) {
			if c.View.Age(e.Last) <= scalingTakes && (e.Reason == scaleUp || e.Reason == nominates) {
				roles.Insert(phrase.Role(m.Role))
			}
		}
	}
	comes := func(f stage.Finding) bool {
		role, _ := f.Facts["role"].(string)
		return nodesMayBring(f) && roles.Has(role)
	}
	if !slices.ContainsFunc(out.Findings, comes) || !scalingUp(c, out) {
		return false
	}
	coming := &out.Findings[len(out.Findings)-1]
	for _, f := range out.Findings {
		if comes(f) {
			coming.Detail("until then: %s", f.Message)
		}
	}
	out.Findings = slices.DeleteFunc(out.Findings, comes)
	return len(out.Findings) == 1
}

// provisioned makes what more nodes would bring a remark, while nodes are being provisioned for the gang as a whole: Kueue has requested them, and starts it when they are there.
func provisioned(c *stage.Context, out *stage.Result) {
	coming := func(f stage.Finding) bool {
		return f.Code == answer.KueueCheck && f.Verdict == answer.Waiting && f.Facts["controller"] == kueue.Provisioning
	}
	if !slices.ContainsFunc(c.Findings, coming) {
		return
	}
	out.Findings = slices.DeleteFunc(out.Findings, func(f stage.Finding) bool {
		if !nodesMayBring(f) && !shortOfNodes(f.Code) {
			return false
		}
		out.Note("until its nodes are provisioned: %s", f.Message)
		return true
	})
}

// shortOfNodes reports whether a reason is that the nodes that there are have too little room.
func shortOfNodes(code answer.Code) bool {
	switch code {
	case answer.TooBig, answer.NodesBusy, answer.Fragmented, answer.TopologyFragmented, answer.NodeNotReady, answer.NoDevicePlugin, answer.GPUUnhealthy, answer.StuckTerminating,
		answer.InsufficientCPU, answer.InsufficientMemory, answer.InsufficientStorage, answer.InsufficientPods:
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

// nodeClaimed finds that Karpenter has ordered a node for a member. What the node will have is not known.
func nodeClaimed(c *stage.Context, e view.Event, claim string) *stage.Finding {
	claims := map[string]bool{claim: true}
	for _, other := range c.View.PodEvents(c.Gang) {
		if m := nominated.FindStringSubmatch(other.Message); other.Reason == "Nominated" && m != nil && m[2] == "" {
			claims[m[1]] = true
		}
	}
	return stage.Found(answer.ScalingUp, "%s coming: %s ordered %s ago (%s)", isComing(len(claims)), e.By, phrase.Age(c.View.Age(e.Last)), phrase.Names(slices.Sorted(maps.Keys(claims)))).
		SinceTime(e.Last).Fact("coming", len(claims)).Detail("whether they are enough cannot be determined before they are there")
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

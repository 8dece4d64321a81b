package placement

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

// rules are the requirements of one pod on a node, parsed once.
type rules struct {
	pod            *corev1.Pod
	ignore         Constraints
	names          []corev1.ResourceName // the resources at the positions of requests
	shortage       []Constraint          // what is broken where one of them is short
	requests       vector
	absent         []Violation // resources that no node of the cluster has, by name
	selector       nodeaffinity.RequiredNodeAffinity
	affinity       nodeaffinity.RequiredNodeAffinity
	selectsDerived bool   // by labels that nodes do not have for the kubelet
	affinityText   string // what affinity requires, once a node has been without it
	unmodelled     []string
	checks         []check // the rules that look at more than the node object
	wide           bool    // one of them looks at more than the node and its pods
	undecided      bool    // the time ended before it was known whether some node has the devices
}

// Comparing is that tolerations may compare values, by the operators Lt and Gt. Only an API server that has it (TaintTolerationComparisonOperators) lets a pod have
// one of these, and its scheduler has it, too. A value that is no number matches nothing, which is logged to no one: users write it.
const Comparing = true

// check is a rule of its own; it returns the violations of one node.
type check func(n *node) []Violation

// rules parses what the pod requests. Constraints in ignore are not evaluated. A search for devices that takes longer than ctx leaves
// the rules undecided, and a node that it was about without a violation.
func (c *Cluster) rules(ctx context.Context, pod *corev1.Pod, ignore Constraints) *rules {
	r := &rules{pod: pod, ignore: ignore, names: c.names.list}
	r.selector = nodeaffinity.NewRequiredNodeAffinity(pod.Spec.NodeSelector, nil)
	r.affinity = nodeaffinity.NewRequiredNodeAffinity(nil, pod.Spec.Affinity)
	_, r.selectsDerived = networktopology.Selected(pod)
	charged := chargedTo(pod)
	r.requests = make(vector, len(c.names.list))
	var absent []corev1.ResourceName
	for name, amount := range charged.ScalarResources {
		if i, ok := c.names.index[name]; ok {
			r.requests[i] = amount
		} else if amount > 0 && !ignore.Has(Resource(name)) {
			absent = append(absent, name)
		}
	}
	slices.Sort(absent)
	for _, name := range absent {
		r.absent = append(r.absent, Violation{Constraint: Resource(name), Resource: name, Requested: charged.ScalarResources[name]})
	}
	r.requests[posPods], r.requests[posCPU], r.requests[posMemory], r.requests[posEphemeral] = 1, charged.MilliCPU, charged.Memory, charged.EphemeralStorage
	r.shortage = make([]Constraint, len(c.names.list))
	for i, name := range c.names.list {
		if r.shortage[i] = Resource(name); ignore.Has(r.shortage[i]) {
			r.requests[i] = 0
		}
	}
	r.checks = c.checks(ctx, r)
	r.unmodelled = c.unmodelled(pod, charged.ScalarResources)
	return r
}

// checks returns the rules that look at more than the node object and its amounts, and that members of the same gang can
// only make stricter.
func (c *Cluster) checks(ctx context.Context, r *rules) []check {
	devices := func(c *Cluster, pod *corev1.Pod) check { return deviceCheck(ctx, c, pod, &r.undecided) }
	wide := r.checksOf(c,
		rule{VolumeClaim, claimCheck}, rule{VolumeZone, volumeZoneCheck}, rule{VolumeNode, volumeNodeCheck}, rule{VolumeLimits, volumeLimitCheck},
		rule{PodAntiAffinity, antiAffinityCheck}, rule{DRADevices, devices},
	)
	r.wide = len(wide) > 0
	return append(wide, r.checksOf(c, rule{HostPort, hostPortCheck})...)
}

// interPodChecks returns the rules that members of the same gang can make stricter or laxer.
func (c *Cluster) interPodChecks(r *rules) []check {
	return r.checksOf(c, rule{PodAffinity, podAffinityCheck}, rule{TopologySpread, spreadCheck})
}

// rule makes a check for a pod on the nodes of a cluster, nil if the rule does not apply to the pod.
type rule struct {
	constraint Constraint
	make       func(*Cluster, *corev1.Pod) check
}

// checksOf makes the checks of the rules that are not ignored.
func (r *rules) checksOf(c *Cluster, list ...rule) []check {
	var out []check
	for _, l := range list {
		if r.ignore.Has(l.constraint) {
			continue
		}
		if check := l.make(c, r.pod); check != nil {
			out = append(out, check)
		}
	}
	return out
}

// violations evaluates every rule for a node.
func (r *rules) violations(n *node) []Violation {
	var out []Violation
	out = r.objectViolations(n.obj, out)
	for _, check := range r.checks {
		out = append(out, check(n)...)
	}
	return r.shortages(n, out)
}

// maxNamed is how many of the resources that no node has are named of each node: users may request any number of them, and they are the
// same on all. It is more than one, so that none of them seems to be the only one.
const maxNamed = 4

// shortages evaluates what the pod is charged against what is left of the node.
func (r *rules) shortages(n *node, out []Violation) []Violation {
	for i, requested := range r.requests {
		have := n.alloc.at(i) - n.used.at(i)
		if requested == 0 || requested <= have {
			continue
		}
		name := r.names[i]
		out = append(out, Violation{Constraint: r.shortage[i], Resource: name, Requested: requested, Available: have, Total: n.alloc.at(i)})
	}
	return append(out, r.absent[:min(len(r.absent), maxNamed)]...)
}

// admits reports whether nothing but amounts and other members of the gang keeps the pod off the node.
func (r *rules) admits(n *node) bool {
	if len(r.objectViolations(n.obj, nil)) > 0 {
		return false
	}
	for _, check := range r.checks {
		if len(check(n)) > 0 {
			return false
		}
	}
	return true
}

// objectViolations evaluates the rules that look only at the node object.
func (r *rules) objectViolations(n *corev1.Node, out []Violation) []Violation {
	add := func(c Constraint, detail string) {
		if !r.ignore.Has(c) {
			out = append(out, Violation{Constraint: c, Detail: detail})
		}
	}
	if name := r.pod.Spec.NodeName; name != "" && name != n.Name {
		add(NodeName, name)
	}
	own := n
	if r.selectsDerived {
		own = networktopology.Own(n)
	}
	if ok, _ := r.selector.Match(own); !ok {
		add(NodeSelector, r.selectorDetail(own))
	}
	if ok, _ := r.affinity.Match(own); !ok {
		add(NodeAffinity, r.affinityDetail())
	}
	if n.DeletionTimestamp != nil {
		add(Deleting, "")
	}
	if r.cordoned(n) {
		add(Cordon, "")
	}
	if reason := r.notReadyReason(n); reason != "" {
		add(NotReady, reason)
	}
	if taint, found := r.untolerated(n.Spec.Taints, func(t *corev1.Taint) bool { return !cordonTaint(*t) && !ProblemTaint(*t) }); found {
		add(Taint, taint.ToString())
	}
	return out
}

func (r *rules) selectorDetail(n *corev1.Node) string {
	for _, key := range slices.Sorted(maps.Keys(r.pod.Spec.NodeSelector)) {
		want := r.pod.Spec.NodeSelector[key]
		if have, ok := n.Labels[key]; !ok || have != want {
			return fmt.Sprintf("%s=%s", key, want)
		}
	}
	return ""
}

// maxExpressions is how much of an affinity its text has: tenants may write thousands of values.
const maxExpressions = 4

// affinityDetail reads like: zone=z1|z2 and tier!=spot.
func (r *rules) affinityDetail() string {
	if a := r.pod.Spec.Affinity; r.affinityText == "" && a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		var terms []string
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			var all []string
			for _, e := range slices.Concat(term.MatchExpressions, term.MatchFields) {
				e.Values = bounded(e.Values)
				all = append(all, Expression(e))
			}
			terms = append(terms, strings.Join(bounded(all), " and "))
		}
		r.affinityText = strings.Join(bounded(terms), " or ")
	}
	return r.affinityText
}

// bounded is the first of some texts, and how many more there are.
func bounded(all []string) []string {
	if len(all) <= maxExpressions {
		return all
	}
	return append(slices.Clone(all[:maxExpressions]), fmt.Sprintf("%d more", len(all)-maxExpressions))
}

// Expression is a requirement of a node affinity as text: zone=z1|z2.
func Expression(e corev1.NodeSelectorRequirement) string {
	values := strings.Join(e.Values, "|")
	switch e.Operator {
	case corev1.NodeSelectorOpNotIn:
		return e.Key + "!=" + values
	case corev1.NodeSelectorOpExists:
		return e.Key
	case corev1.NodeSelectorOpDoesNotExist:
		return "!" + e.Key
	case corev1.NodeSelectorOpGt:
		return e.Key + ">" + values
	case corev1.NodeSelectorOpLt:
		return e.Key + "<" + values
	default:
		return e.Key + "=" + values
	}
}

func (r *rules) cordoned(n *corev1.Node) bool {
	if n.Spec.Unschedulable && !r.tolerates(corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		return true
	}
	_, found := r.untolerated(n.Spec.Taints, func(t *corev1.Taint) bool { return cordonTaint(*t) })
	return found
}

// notReadyReason is why the node counts as not Ready; empty if it is. A Ready condition that is not True is held against the pod as the
// taint would be that Kubernetes sets for it within seconds.
func (r *rules) notReadyReason(n *corev1.Node) string {
	if t, found := r.untolerated(n.Spec.Taints, func(t *corev1.Taint) bool { return ProblemTaint(*t) }); found {
		return t.Key
	}
	down := NotReadyCondition(n)
	if down == nil {
		return ""
	}
	taint := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	if down.Status == corev1.ConditionUnknown {
		taint.Key = corev1.TaintNodeUnreachable
	}
	if r.tolerates(taint) {
		return ""
	}
	return "Ready=" + string(down.Status)
}

func (r *rules) tolerates(t corev1.Taint) bool {
	return corev1helpers.TolerationsTolerateTaint(logr.Discard(), r.pod.Spec.Tolerations, &t, Comparing)
}

func (r *rules) untolerated(taints []corev1.Taint, which func(*corev1.Taint) bool) (corev1.Taint, bool) {
	if len(taints) == 0 {
		return corev1.Taint{}, false
	}
	return corev1helpers.FindMatchingUntoleratedTaint(logr.Discard(), taints, r.pod.Spec.Tolerations, func(t *corev1.Taint) bool {
		return (t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute) && which(t)
	}, Comparing)
}

// avoids is how many taints of a node its pods rather avoid.
func (r *rules) avoids(n *corev1.Node) (count int) {
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule && !r.tolerates(t) {
			count++
		}
	}
	return count
}

// unmodelled names what a pod requests and this package does not evaluate.
func (c *Cluster) unmodelled(pod *corev1.Pod, charged map[corev1.ResourceName]int64) []string {
	var out []string
	for _, k := range c.claims(pod) {
		if k.class == nil || k.problem != "" {
			continue
		}
		if c.countsCapacity(k) && !c.publishesCapacity(k.class) {
			out = append(out, fmt.Sprintf("storage capacity of CSI driver %s for claim %s", k.class.Provisioner, k.pvc.Name))
		}
	}
	for _, class := range c.objects.DeviceClasses {
		for _, name := range []string{ptr.Deref(class.Spec.ExtendedResourceName, ""), "deviceclass.resource.kubernetes.io/" + class.Name} {
			resource := corev1.ResourceName(name)
			if charged[resource] > 0 && !c.countsAs(resource) {
				out = append(out, fmt.Sprintf("resource %s from DeviceClass %s", name, class.Name))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// countsAs reports whether nodes offer a resource to which a DeviceClass gives its name, and no device is of several nodes, overlaps with others, or is shared:
// of those there may be more than the nodes offer.
func (c *Cluster) countsAs(resource corev1.ResourceName) bool {
	if _, offered := c.names.index[resource]; !offered {
		return false
	}
	for s, device := range c.devices() {
		if s.Spec.NodeName == nil || !countable(device) {
			return false
		}
	}
	return true
}

package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/kubernetes/pkg/features"
)

// rules is what one pod asks of a node, parsed once.
type rules struct {
	pod        *corev1.Pod
	ignore     Constraints
	names      []corev1.ResourceName // what the positions of need are
	need       vector
	absent     []Violation // resources that no node of the cluster has
	selector   nodeaffinity.RequiredNodeAffinity
	affinity   nodeaffinity.RequiredNodeAffinity
	compare    bool // toleration operators Lt and Gt are on
	unmodelled []string
	checks     []check // the rules that look at more than the node object
}

// check is a rule of its own; it returns the violations of one node.
type check func(n *node) []Violation

// rules parses what the pod asks for. Constraints in ignore are not evaluated.
func (c *Cluster) rules(pod *corev1.Pod, ignore Constraints) *rules {
	r := &rules{pod: pod, ignore: ignore, names: c.names.list, compare: utilfeature.DefaultFeatureGate.Enabled(features.TaintTolerationComparisonOperators)}
	r.selector = nodeaffinity.NewRequiredNodeAffinity(pod.Spec.NodeSelector, nil)
	r.affinity = nodeaffinity.NewRequiredNodeAffinity(nil, pod.Spec.Affinity)
	charged := chargedTo(pod)
	r.need = make(vector, len(c.names.list))
	for name, amount := range charged.ScalarResources {
		if i, ok := c.names.index[name]; ok {
			r.need[i] = amount
		} else if amount > 0 && !ignore.Has(Resource(name)) {
			r.absent = append(r.absent, Violation{Constraint: Resource(name), Resource: name, Requested: amount})
		}
	}
	slices.SortFunc(r.absent, func(a, b Violation) int { return compareConstraints(a.Constraint, b.Constraint) })
	r.need[posPods], r.need[posCPU], r.need[posMemory], r.need[posEphemeral] = 1, charged.MilliCPU, charged.Memory, charged.EphemeralStorage
	for i, name := range c.names.list {
		if ignore.Has(Resource(name)) {
			r.need[i] = 0
		}
	}
	r.checks = c.checks(r)
	r.unmodelled = c.notModelled(pod)
	return r
}

// checks returns the rules that look at more than the node object and its amounts, and that members of the same gang can
// only make stricter.
func (c *Cluster) checks(r *rules) []check {
	return r.wanted(
		rule{VolumeClaim, c.usable}, rule{VolumeZone, c.zones}, rule{VolumeNode, c.reached}, rule{VolumeLimits, c.attachable},
		rule{HostPort, c.ports}, rule{PodAntiAffinity, c.apart}, rule{DRADevices, c.allocated},
	)
}

// social returns the rules that members of the same gang can make stricter or laxer.
func (c *Cluster) social(r *rules) []check {
	return r.wanted(rule{PodAffinity, c.together}, rule{TopologySpread, c.evenly})
}

// rule makes a check for a pod, nil if the rule has nothing to say about it.
type rule struct {
	word Constraint
	make func(*corev1.Pod) check
}

// wanted makes the checks of the rules that are not ignored.
func (r *rules) wanted(list ...rule) []check {
	var out []check
	for _, l := range list {
		if r.ignore.Has(l.word) {
			continue
		}
		if check := l.make(r.pod); check != nil {
			out = append(out, check)
		}
	}
	return out
}

// violations evaluates every rule for a node.
func (r *rules) violations(n *node) []Violation {
	var out []Violation
	out = r.object(n.obj, out)
	for _, check := range r.checks {
		out = append(out, check(n)...)
	}
	return r.amounts(n, out)
}

// amounts evaluates what the pod is charged against what is left of the node.
func (r *rules) amounts(n *node, out []Violation) []Violation {
	for i, need := range r.need {
		have := n.alloc.at(i) - n.used.at(i)
		if need == 0 || need <= have {
			continue
		}
		name := r.names[i]
		out = append(out, Violation{Constraint: Resource(name), Resource: name, Requested: need, Available: have, Total: n.alloc.at(i)})
	}
	return append(out, r.absent...)
}

// admits tells whether nothing but amounts and other members of the gang keeps the pod off the node.
func (r *rules) admits(n *node) bool {
	if len(r.object(n.obj, nil)) > 0 {
		return false
	}
	for _, check := range r.checks {
		if len(check(n)) > 0 {
			return false
		}
	}
	return true
}

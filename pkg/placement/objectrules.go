package placement

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	v1helper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

// object evaluates the rules that look only at the node object.
func (r *rules) object(n *corev1.Node, out []Violation) []Violation {
	add := func(c Constraint, detail string) {
		if !r.ignore.Has(c) {
			out = append(out, Violation{Constraint: c, Detail: detail})
		}
	}
	if name := r.pod.Spec.NodeName; name != "" && name != n.Name {
		add(NodeName, name)
	}
	if ok, _ := r.selector.Match(n); !ok {
		add(NodeSelector, r.selectorDetail(n))
	}
	if ok, _ := r.affinity.Match(n); !ok {
		add(NodeAffinity, "")
	}
	if n.DeletionTimestamp != nil {
		add(Deleting, "")
	}
	if r.cordoned(n) {
		add(Cordon, "")
	}
	if reason := r.problem(n); reason != "" {
		add(NotReady, reason)
	}
	if taint, found := r.untolerated(n.Spec.Taints, func(t *corev1.Taint) bool { return !cordonTaint(*t) && !problemTaint(*t) }); found {
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

func (r *rules) cordoned(n *corev1.Node) bool {
	if n.Spec.Unschedulable && !r.tolerates(corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		return true
	}
	_, found := r.untolerated(n.Spec.Taints, func(t *corev1.Taint) bool { return cordonTaint(*t) })
	return found
}

// problem says why the node counts as not Ready, if it does. A Ready condition that is not True is held against the pod as
// the taint would be that Kubernetes sets for it within seconds.
func (r *rules) problem(n *corev1.Node) string {
	if t, found := r.untolerated(n.Spec.Taints, func(t *corev1.Taint) bool { return problemTaint(*t) }); found {
		return t.Key
	}
	status := ready(n)
	taint := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	if status == corev1.ConditionUnknown {
		taint.Key = corev1.TaintNodeUnreachable
	}
	if status == corev1.ConditionTrue || r.tolerates(taint) {
		return ""
	}
	return "Ready=" + string(status)
}

func (r *rules) tolerates(t corev1.Taint) bool {
	return v1helper.TolerationsTolerateTaint(klog.Background(), r.pod.Spec.Tolerations, &t, r.compare)
}

func (r *rules) untolerated(taints []corev1.Taint, which func(*corev1.Taint) bool) (corev1.Taint, bool) {
	if len(taints) == 0 {
		return corev1.Taint{}, false
	}
	return v1helper.FindMatchingUntoleratedTaint(klog.Background(), taints, r.pod.Spec.Tolerations, func(t *corev1.Taint) bool {
		return (t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute) && which(t)
	}, r.compare)
}

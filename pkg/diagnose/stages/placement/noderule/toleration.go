package noderule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// TolerationHints adds tolerations that were probably meant for a taint that keeps the role off nodes: a slip in its key or
// value, or another effect.
func TolerationHints(c *stage.Context, f *stage.Finding, role placement.Role) *stage.Finding {
	for _, t := range taintsOf(c) {
		slip := Slip(c.Cluster().Nodes(), role.Pod.Spec.Tolerations, t.Taint)
		if slip < 0 {
			continue
		}
		was := role.Pod.Spec.Tolerations[slip]
		f.Detail("toleration %s does not match taint %s of %s: was that meant?", tolerationText(was), t.Taint.ToString(), t.node)
		f.Fix(otherToleration(c, role, was, t.Taint))
	}
	return f
}

// nodeTaint is a taint, and the first node that has it.
type nodeTaint struct {
	corev1.Taint
	node string
}

// taintsOf are the taints of the nodes, each once: in an outage many have the same.
func taintsOf(c *stage.Context) []nodeTaint {
	return view.Once(c.View, "taints of nodes", func() (all []nodeTaint) {
		seen := map[string]bool{}
		for _, n := range c.View.Cluster().Nodes() {
			for _, t := range n.Spec.Taints {
				if text := t.ToString(); !seen[text] {
					seen[text], all = true, append(all, nodeTaint{t, n.Name})
				}
			}
		}
		return all
	})
}

// otherToleration writes a toleration such that it matches a taint.
func otherToleration(c *stage.Context, role placement.Role, was corev1.Toleration, taint corev1.Taint) stage.Fix {
	to := was
	to.Key = taint.Key
	if to.Operator != corev1.TolerationOpExists {
		to.Value = taint.Value
	}
	if to.Effect != "" {
		to.Effect = taint.Effect
	}
	name, agrees := phrase.Role(role.Name), ""
	if was.Key == to.Key && was.Value != to.Value && suggest.Nearest(was.Value, []string{to.Value}) == "" {
		agrees = ", if the owner of the nodes agrees"
	}
	return patch.Job(c.Gang, answer.Relax, fmt.Sprintf("write toleration %s for %s%s", tolerationText(to), tolerationText(was), agrees), map[string]any{name + ".tolerations": taint.ToString()},
		patch.InRole(name, func(spec *corev1.PodSpec) {
			for i, t := range spec.Tolerations {
				if equality.Semantic.DeepEqual(t, was) {
					spec.Tolerations[i] = to
				}
			}
		}))
}

// maxBrief is how many nodes are noted on which members stay for a time only.
const maxBrief = 4

// Brief notes the nodes of a placement on which members stay for a time only: they tolerate a taint that evicts pods, for so long. Those of Kubernetes for the states of
// nodes are none of these, which such nodes have later.
func Brief(c *stage.Context, out *stage.Result, found placement.Result) {
	type staying struct {
		node, role string
		taint      corev1.Taint
	}
	noted := map[staying]bool{}
	for _, a := range found.Placement {
		i := slices.IndexFunc(c.Request.Roles, func(r placement.Role) bool { return r.Name == a.Role })
		node := c.Cluster().Node(a.Node)
		if i < 0 || node == nil {
			continue
		}
		for _, taint := range node.Spec.Taints {
			if taint.Effect != corev1.TaintEffectNoExecute || strings.HasPrefix(taint.Key, ofNodes) {
				continue
			}
			left, limited := tolerated(c.Request.Roles[i].Pod.Spec.Tolerations, taint)
			at := staying{a.Node, phrase.Member(a.Role), taint}
			at.taint.TimeAdded = nil // it is a pointer
			if !limited || noted[at] {
				continue
			}
			if len(noted) == maxBrief {
				return
			}
			noted[at] = true
			out.Note("%s has taint %s, which each %s there tolerates for %ds: then it is evicted", node.Name, taint.ToString(), at.role, left)
		}
	}
}

// tolerated is for how many seconds a taint is tolerated that evicts pods; limited is false where it is for good, or not at all. Of several tolerations that match, the first
// counts for Kubernetes.
func tolerated(tolerations []corev1.Toleration, taint corev1.Taint) (seconds int64, limited bool) {
	i := slices.IndexFunc(tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) })
	if i < 0 || tolerations[i].TolerationSeconds == nil {
		return 0, false
	}
	return max(0, *tolerations[i].TolerationSeconds), true
}

// Tolerated reports whether one of some tolerations matches a taint.
func Tolerated(tolerations []corev1.Toleration, taint corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) })
}

// tolerates is the rule of Kubernetes for one toleration and one taint.
func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	return t.ToleratesTaint(logr.Discard(), &taint, placement.Comparing)
}

func tolerationText(t corev1.Toleration) string {
	text := t.Key
	if t.Value != "" {
		text += comparison(t) + t.Value
	}
	if t.Effect != "" {
		text += ":" + string(t.Effect)
	}
	return text
}

// comparison is how the value of a toleration is to be: of a taint, it is more or less than that of the toleration.
func comparison(t corev1.Toleration) string {
	switch t.Operator {
	case corev1.TolerationOpGt:
		return ">"
	case corev1.TolerationOpLt:
		return "<"
	}
	return "="
}

// ofNodes begins the keys of the taints that Kubernetes gives to nodes, and of the tolerations that it gives to pods.
const ofNodes = "node.kubernetes.io/"

// Slip is the index of a toleration that was probably meant for a taint: it does not match that, nor any other taint of the
// nodes. It is -1 if there is none, or the taint keeps no pod off. Those of Kubernetes for the states of nodes, which every pod gets, are meant as they
// are, and so are those that compare values.
func Slip(nodes []*corev1.Node, tolerations []corev1.Toleration, taint corev1.Taint) int {
	if taint.Effect == corev1.TaintEffectPreferNoSchedule || Tolerated(tolerations, taint) {
		return -1
	}
	return slices.IndexFunc(tolerations, func(t corev1.Toleration) bool {
		if comparison(t) != "=" {
			return false
		}
		alike := t.Operator != corev1.TolerationOpExists && t.Value != taint.Value || t.Effect != "" && t.Effect != taint.Effect
		if t.Key != taint.Key {
			alike = suggest.Nearest(t.Key, []string{taint.Key}) != ""
		}
		return alike && !strings.HasPrefix(t.Key, ofNodes) && !slices.ContainsFunc(nodes, func(n *corev1.Node) bool {
			return slices.ContainsFunc(n.Spec.Taints, func(other corev1.Taint) bool { return tolerates(t, other) })
		})
	})
}

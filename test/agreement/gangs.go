package agreement

import (
	"fmt"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// Labels of members, for their rules to name each other.
const (
	gangLabel = "example.com/gang"
	roleLabel = "example.com/role"
)

// gang makes a gang of 1 to 12 members.
func (g *generator) gang(name string) Gang {
	out := Gang{Name: name, Form: pick(g, ByObject, ByObject, ByObject, ByLabels, ByLabels, ByJob, Alone), Hold: Gate}
	if out.Form == ByObject {
		out.Hold = pick(g, Gate, Object)
	}
	size := pick(g, g.between(1, 3), g.between(2, 6), g.between(4, 12))
	roles := pick(g, 1, 1, 1, 2, 2, 3)
	if g.o.NoTraps {
		roles = 1
	}
	if out.Form == Alone {
		size, roles = 1, 1
	}
	roles = min(roles, size)
	class := pick(g, "", "", highClass)
	for i := range roles {
		count := size - len(out.Pods)
		if i < roles-1 {
			count = g.between(1, count-(roles-1-i))
		}
		role := fmt.Sprintf("r%d", i)
		like, trap := g.member(name, role, size, roles, count)
		if i > 0 && g.once(4) { // the same request, and another role
			like = out.Pods[0].DeepCopy()
			like.Labels[roleLabel] = role
		}
		like.Spec.PriorityClassName = class
		out.Trap = out.Trap || trap || roles > 1
		for j := range count {
			p := like.DeepCopy()
			p.Name = fmt.Sprintf("%s-r%d-%d", name, i, j)
			if out.Form == ByJob {
				p.Name = fmt.Sprintf("%s-%s-%d", name, strings.ToLower(string(jobRoles[i])), j)
				p.Spec.Containers[0].Name = kubeflowv1.TFJobDefaultContainerName
			}
			out.Pods = append(out.Pods, p)
		}
	}
	g.minimum(&out)
	for _, p := range out.Pods {
		switch out.Form {
		case ByObject, ByJob:
			schedulerplugins.SetGroup(&p.ObjectMeta, name)
		case ByLabels:
			labels.SetGroup(&p.ObjectMeta, name, out.Min)
		case Alone:
		}
		if out.Hold == Gate {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gateName}}
		}
	}
	return out
}

// minimum is how many members must start; some gangs never can.
func (g *generator) minimum(out *Gang) {
	out.Min = int32(len(out.Pods))
	switch {
	case out.Form == Alone:
	case g.once(4):
		out.Min = int32(g.between(1, len(out.Pods)))
	case out.Form == ByJob: // what it lacks, the operator makes
	case g.once(20):
		out.Min += int32(g.between(1, 3))
		out.Hold = Never
	case g.once(40) && out.Form == ByObject:
		out.Hold = Never
	}
}

// member makes the pod that all members of a role are like.
func (g *generator) member(gang, role string, size, roles, count int) (p *corev1.Pod, trap bool) {
	p = g.pod(gang)
	p.Labels[gangLabel], p.Labels[roleLabel] = gang, role
	p.Spec.SchedulerName = schedulerName
	setRequests(p, g.amounts(pick(g, 1, 2, 3, 4, 8)+3*size/len(g.s.Nodes)))
	g.placeRules(p)
	g.extras(p)
	if g.once(pick(g, 2, 3)) {
		other := fmt.Sprintf("r%d", g.IntN(roles))
		for range g.between(1, 2) {
			trap = g.podAffinityRule(p, gang, other, count) || trap
		}
	}
	if len(g.s.Claims) > 0 && g.once(5) {
		claim := g.s.Claims[g.IntN(len(g.s.Claims))]
		mount(p, claim.Name)
		trap = trap || claim.Spec.VolumeName == "" && count > 1
	}
	if len(g.s.Templates) > 0 && g.once(5) {
		template := g.s.Templates[g.IntN(len(g.s.Templates))].Name
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "devices", ResourceClaimTemplateName: &template}}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "devices"}}
	}
	return p, trap
}

// someSelector selects a gang, one of its roles, or pods that are there. Without a gang it is the latter.
func (g *generator) someSelector(gang, role string) *metav1.LabelSelector {
	l := map[string]string{"app": pick(g, "x", "y")}
	if gang != "" && !g.once(4) {
		l = map[string]string{gangLabel: gang}
		if g.once(2) {
			l[roleLabel] = role
		}
	}
	return &metav1.LabelSelector{MatchLabels: l}
}

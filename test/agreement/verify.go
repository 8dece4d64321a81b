package agreement

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// verify finds out who is right about a gang that gangctl has a placement for and the scheduler has not: the gang goes, and pods
// like its members come, each to be placed by the scheduler on the node where gangctl has it.
func (c *fixture) verify(ctx context.Context, g *Gang, d *Decision) error {
	if err := c.withdraw(ctx, g); err != nil {
		return err
	}
	again := &Gang{Name: g.Name + " pinned"}
	for _, place := range d.Answer.Placement {
		member := memberOf(g, place.Member)
		if member == nil {
			return fmt.Errorf("the placement has %q, which gang %s has not", place.Member, g.Name)
		}
		again.Pods = append(again.Pods, pin(member, place.Node))
	}
	refused, err := c.placeInTurn(ctx, again.Pods)
	if err != nil {
		return err
	}
	d.Class, d.Why = Missed, "the scheduler accepts gangctl's placement member by member, and did not find it"
	if refused != "" {
		d.Class, d.Why = Wrong, "the scheduler refuses gangctl's placement: "+refused
	}
	return c.withdraw(ctx, again)
}

// placeInTurn creates one pod after the other and lets the scheduler place it. One that is refused may have to come after another, so
// it goes and is tried again. It returns the scheduler's message about those that never fit; empty if all do.
func (c *fixture) placeInTurn(ctx context.Context, left []*corev1.Pod) (refused string, err error) {
	for len(left) > 0 {
		var rest []*corev1.Pod
		for _, p := range left {
			w, err := c.placeOne(ctx, p)
			if err != nil {
				return "", err
			}
			if w.Bound == 0 {
				rest, refused = append(rest, p), fmt.Sprintf("%s: %s", p.Name, w)
			}
		}
		if len(rest) == len(left) {
			return refused, nil
		}
		left = rest
	}
	return "", nil
}

// placeOne creates a pod, and takes it away again if the scheduler finds no place for it.
func (c *fixture) placeOne(ctx context.Context, p *corev1.Pod) (Outcome, error) {
	if _, err := c.Client.Typed.CoreV1().Pods(c.namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return Outcome{}, fmt.Errorf("create pod %s: %w", p.Name, err)
	}
	one := &Gang{Name: p.Name, Min: 1, Pods: []*corev1.Pod{p}}
	if err := c.until(ctx, "pod "+p.Name+" is there", func(context.Context) (bool, error) { return of(c.seen(c.namespace), one) != nil, nil }); err != nil {
		return Outcome{}, err
	}
	if err := c.claimDevices(ctx, of(c.seen(c.namespace), one)); err != nil {
		return Outcome{}, err
	}
	w, err := c.finalOutcome(ctx, one)
	if err == nil && w.Bound == 0 {
		err = c.remove(ctx, p.Name)
	}
	return w, err
}

// withdraw takes a gang away.
func (c *fixture) withdraw(ctx context.Context, g *Gang) error {
	c.gone[g.Name] = true
	if g.Form == ByJob {
		if err := ignoreNotFound(c.Client.Dynamic.Resource(jobs).Namespace(c.namespace).Delete(ctx, g.Name, metav1.DeleteOptions{})); err != nil {
			return fmt.Errorf("delete TFJob %s: %w", g.Name, err)
		}
	}
	var names []string
	for _, p := range g.Pods {
		names = append(names, p.Name)
	}
	return c.remove(ctx, names...)
}

// memberOf is the pod of a member. Those of a job have the member's name at their end; the members of other gangs are numbered by
// gangctl in the order of their pods' names: member-0, member-1.
func memberOf(g *Gang, name string) *corev1.Pod {
	if i := slices.IndexFunc(g.Pods, func(p *corev1.Pod) bool { return p.Name == g.Name+"-"+name }); i >= 0 {
		return g.Pods[i]
	}
	sorted := slices.SortedFunc(slices.Values(g.Pods), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for i, p := range sorted {
		if name == fmt.Sprintf("member-%d", i) {
			return p
		}
	}
	return nil
}

// pin is a pod like a member, on its own, for one node only.
func pin(member *corev1.Pod, node string) *corev1.Pod {
	p := member.DeepCopy()
	p.Name += "-pinned"
	p.Spec.SchedulingGates = nil
	for _, key := range []string{schedulerplugins.PodGroupLabel, labels.NameLabel, labels.MinAvailableLabel} {
		delete(p.Labels, key)
	}
	a := affinityOf(p)
	if a.NodeAffinity == nil {
		a.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := &a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	anywhere := p.Spec.NodeSelector == nil && *required == nil
	if *required == nil {
		*required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	for i := range (*required).NodeSelectorTerms {
		term := &(*required).NodeSelectorTerms[i]
		term.MatchFields = append(term.MatchFields, corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}})
	}
	// Spread counts the nodes that a pod may go to, which the pin must not change. A pod that may go anywhere has a field for that.
	for i := range p.Spec.TopologySpreadConstraints {
		if anywhere {
			p.Spec.TopologySpreadConstraints[i].NodeAffinityPolicy = new(corev1.NodeInclusionPolicyIgnore)
		}
	}
	return p
}

package queue

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"

	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// demand is what is compared with a limit of a queue, of one resource.
type demand struct {
	name corev1.ResourceName
	// want is what is requested, own what the gang uses already.
	want, own int64
	// of is what is counted of another gang with its pods.
	of func(d gang.Declaration, pods []*corev1.Pod) int64
	// need is what the members request in all; gate is true where what minResources of the PodGroup state is compared instead, for its admission.
	need int64
	gate bool
}

// alone is what the gang takes of an empty queue.
func (d demand) alone() int64 {
	if d.gate {
		return d.want
	}
	return request.Sum(d.own, d.want)
}

// demands are what a queue compares of a gang. Volcano compares twice: minResources, when it admits a PodGroup, with what the others of the queue use or have
// reserved; and each pod, when it places it, with what others use. A PodGroup without minResources, or that leave a resource out, is admitted at once.
func demands(c *stage.Context, kind schema.GroupKind, name corev1.ResourceName, needs corev1.ResourceList) []demand {
	need, own := request.Amount(name, needs[name]), queueing.Held(c.Gang.ExistingPods(), name)
	place := demand{name: name, want: need - own, own: own, need: need, of: func(_ gang.Declaration, pods []*corev1.Pod) int64 { return queueing.Held(pods, name) }}
	if kind != volcano.QueueKind() {
		return []demand{place}
	}
	gate := demand{name: name, want: need, need: need, gate: true, of: func(d gang.Declaration, pods []*corev1.Pod) int64 { return countedOf(d, pods, name) }}
	switch d := c.Gang.Decl; {
	case d == nil: // its controller will state what the members request
		return []demand{gate, place}
	case queueing.Gated(c.Gang):
		gate.want = request.Amount(name, d.MinResources[name])
		gate.own = min(own, gate.want)
		if component.Ours(c.View, c.Gang.Scheduler) { // which compares nothing when it places pods
			return []demand{gate}
		}
		return []demand{gate, place}
	}
	return []demand{place}
}

// countedOf is what Volcano counts of another PodGroup when it admits one: what its pods use, but none of what is above its minResources, which it may have to
// give up; and what of these is reserved for it, once it is admitted.
func countedOf(d gang.Declaration, pods []*corev1.Pod, name corev1.ResourceName) int64 {
	used, least := queueing.Held(pods, name), request.Amount(name, d.MinResources[name])
	return request.Sum(min(used, least), reservedFor(d, pods, name, used))
}

// reservedFor is what is reserved for an admitted PodGroup in addition to what is used: the rest of its minResources, but for what its pods request that have
// scheduling gates. For one that runs it is, as long as it has its minimum.
func reservedFor(d gang.Declaration, pods []*corev1.Pod, name corev1.ResourceName, used int64) int64 {
	if d.Phase != volcano.PhaseInqueue && (d.Phase != volcano.PhaseRunning || bound(pods) < d.MinMember) {
		return 0
	}
	var gated int64
	for _, pod := range pods {
		if slices.ContainsFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name != volcano.QueueGate }) {
			gated = request.Sum(gated, request.OfResource(pod, name))
		}
	}
	return max(0, request.Amount(name, d.MinResources[name])-used-gated)
}

// bound is how many of some pods have nodes.
func bound(pods []*corev1.Pod) (n int32) {
	for _, pod := range pods {
		if placement.Holds(pod) {
			n++
		}
	}
	return n
}

// counted reports whether Volcano counts a resource: minResources and capabilities may have others, such as those of a ResourceQuota.
func counted(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage:
		return true
	}
	return v1helper.IsExtendedResourceName(name) || v1helper.IsHugePageResourceName(name) || v1helper.IsPrefixedNativeResource(name)
}

// needs is the part of a sentence that states an amount as what is needed.
func (d demand) needs(c *stage.Context, amount int64) string {
	if !d.stated() {
		return "the gang needs " + phrase.Quantity(d.name, amount)
	}
	return fmt.Sprintf("minResources of PodGroup %s are %s, of which its members need %s", c.Gang.Decl.Key.Name, phrase.Quantity(d.name, amount), phrase.Quantity(d.name, d.need))
}

// stated reports whether minResources state more than the members request.
func (d demand) stated() bool { return d.gate && d.want > d.need }

// explain adds what is particular about a demand, and what its user can do about it.
func (d demand) explain(c *stage.Context, f *stage.Finding) {
	group := c.Gang.Decl
	if d.gate && d.own > 0 {
		f.Detail("the scheduler admits the PodGroup again, and counts what its pods use in addition to its minResources")
	}
	if !d.stated() {
		return
	}
	f.Detail("the scheduler compares minResources with the queue before it looks at any pod").
		SeeGroup(*group, ".spec.minResources").
		Fix(patch.LowerMinResources(c.View, c.Gang, d.name, d.need))
}

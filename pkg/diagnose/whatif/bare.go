package whatif

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// remade is the cluster after the pods of a gang that no job owns were made again with another spec, or only the first of them. It is nil where that
// is not known: pods that nothing is known to make have no names, and one spec is not that of pods which are not alike.
func remade(s *snapshot.Snapshot, g *gang.Gang, edit func(*Spec)) *snapshot.Snapshot {
	if !alike(g.Bare) || slices.ContainsFunc(g.Bare, func(p *corev1.Pod) bool { return !slices.Contains(s.Pods, p) }) {
		return nil
	}
	spec := Revise(g, edit)
	role := spec.Roles[0]
	if int(role.Replicas) > len(g.Bare) && !scales(g) {
		return nil
	}
	var again []*corev1.Pod
	for _, was := range g.Bare[:min(int(role.Replicas), len(g.Bare))] {
		p := &corev1.Pod{TypeMeta: was.TypeMeta, ObjectMeta: *was.ObjectMeta.DeepCopy(), Spec: *role.Template.Spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodPending}}
		p.CreationTimestamp = againAt(s, was)
		overwrite(p.Labels, role.Template.Labels)
		overwrite(p.Annotations, role.Template.Annotations)
		again = append(again, p)
	}
	return editWorkload(editGroup(scale(Come(Gone(s, slices.Concat(g.Bare, view.New(s).Replaced(g))), again), g, role.Replicas), g, spec), g, spec)
}

// OfTemplate is the cluster after a StatefulSet has made some of its pods again, of the template that it has now. The claims of each are those that it had.
func OfTemplate(s *snapshot.Snapshot, set *appsv1.StatefulSet, pods []*corev1.Pod) *snapshot.Snapshot {
	w := view.New(s)
	var again []*corev1.Pod
	for _, was := range pods {
		p := w.OfTemplate(was.Namespace, set.Spec.Template)
		p.Name, p.UID, p.OwnerReferences, p.CreationTimestamp = was.Name, was.UID, was.OwnerReferences, againAt(s, was)
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels[appsv1.ControllerRevisionHashLabelKey] = set.Status.UpdateRevision
		p.Status.Phase = corev1.PodPending
		for _, v := range was.Spec.Volumes {
			if v.PersistentVolumeClaim != nil && !slices.ContainsFunc(p.Spec.Volumes, func(other corev1.Volume) bool { return other.Name == v.Name }) {
				p.Spec.Volumes = append(p.Spec.Volumes, v)
			}
		}
		again = append(again, p)
	}
	return Come(Gone(s, pods), again)
}

// scales reports whether it is known how many pods the maker of a gang makes, so that it can be assumed to make another number of them.
func scales(g *gang.Gang) bool { return g.Maker != nil && g.Maker.Replicas != nil }

// scale has the maker of a gang make so many pods.
func scale(s *snapshot.Snapshot, g *gang.Gang, replicas int32) *snapshot.Snapshot {
	if !scales(g) {
		return s
	}
	by := g.Maker.Controller
	if by.Kind.Kind == "StatefulSet" {
		return EditStatefulSet(s, g.Meta.Namespace, by.Name, func(set *appsv1.StatefulSet) { set.Spec.Replicas = &replicas })
	}
	n := s.Clone()
	for i, set := range n.ReplicaSets {
		if set.Namespace == g.Meta.Namespace && set.Name == by.Name {
			n.ReplicaSets[i] = set.DeepCopy()
			n.ReplicaSets[i].Spec.Replicas = &replicas
		}
	}
	return n
}

// EditStatefulSet is a snapshot in which a StatefulSet is another one.
func EditStatefulSet(s *snapshot.Snapshot, namespace, name string, edit func(*appsv1.StatefulSet)) *snapshot.Snapshot {
	n := s.Clone()
	for i, set := range n.StatefulSets {
		if set.Namespace == namespace && set.Name == name {
			n.StatefulSets[i] = set.DeepCopy()
			edit(n.StatefulSets[i])
		}
	}
	return n
}

// overwrite gives the entries that there are the values of others.
func overwrite(entries, with map[string]string) {
	for key := range entries {
		if value, ok := with[key]; ok {
			entries[key] = value
		}
	}
}

// alike reports whether a scheduler places pods in the same way; of none that is not known.
func alike(pods []*corev1.Pod) bool {
	return len(pods) > 0 && !slices.ContainsFunc(pods[1:], func(p *corev1.Pod) bool { return !equality.Semantic.DeepEqual(demands(p), demands(pods[0])) })
}

// demands are what a scheduler respects of a pod. What the API server adds under a name of its own, such as the volume of a token, is left out.
func demands(p *corev1.Pod) corev1.PodSpec {
	own := *p
	own.Spec.Overhead = request.Overhead(p)
	d := corev1.PodSpec{
		NodeSelector: p.Spec.NodeSelector, Affinity: p.Spec.Affinity, Tolerations: p.Spec.Tolerations, TopologySpreadConstraints: p.Spec.TopologySpreadConstraints,
		SchedulerName: p.Spec.SchedulerName, Priority: p.Spec.Priority, PreemptionPolicy: p.Spec.PreemptionPolicy, SchedulingGates: p.Spec.SchedulingGates,
		RuntimeClassName: p.Spec.RuntimeClassName, ResourceClaims: p.Spec.ResourceClaims, HostNetwork: p.Spec.HostNetwork,
		Resources: &corev1.ResourceRequirements{Requests: request.Of(&own)},
	}
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			d.Volumes = append(d.Volumes, v)
		}
	}
	for _, c := range p.Spec.Containers {
		d.Containers = append(d.Containers, corev1.Container{Name: c.Name, Ports: c.Ports, Resources: c.Resources})
	}
	return d
}

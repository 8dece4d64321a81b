package clustertest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
)

// groupVersions are those of the group objects, by dialect. A dialect without one is declared by its pods alone.
var groupVersions = map[gang.Dialect]string{
	gang.SchedulerPlugins: "scheduling.x-k8s.io/v1alpha1", gang.Volcano: "scheduling.volcano.sh/v1beta1", gang.KubeBatch: "scheduling.incubator.k8s.io/v1alpha1",
	gang.Koordinator: "scheduling.sigs.k8s.io/v1alpha1", gang.KAI: "scheduling.run.ai/v2alpha2", gang.Native: "scheduling.k8s.io/v1beta1",
}

// addToGroup makes a pod, or those of a template, members of the gang, in the gang's dialect.
func (g Gang) addToGroup(meta *metav1.ObjectMeta, spec *corev1.PodSpec, role string) {
	switch g.Dialect {
	case gang.SchedulerPlugins:
		meta.Labels["scheduling.x-k8s.io/pod-group"] = g.Name
	case gang.Volcano:
		meta.Annotations["scheduling.k8s.io/group-name"], meta.Annotations["volcano.sh/task-spec"] = g.Name, role
	case gang.KubeBatch:
		meta.Annotations["scheduling.k8s.io/group-name"] = g.Name
	case gang.Koordinator:
		meta.Labels["pod-group.scheduling.sigs.k8s.io"] = g.Name
	case gang.KAI:
		meta.Annotations["pod-group-name"] = g.Name
	case gang.Native:
		name := g.Name
		spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	case gang.Labels:
		meta.Labels["pod-group.scheduling.sigs.k8s.io/name"], meta.Labels["pod-group.scheduling.sigs.k8s.io/min-available"] = g.Name, fmt.Sprint(g.Min)
	case gang.YuniKorn:
		meta.Labels["yunikorn.apache.org/app-id"], meta.Labels["queue"] = g.Name, g.Queue
		meta.Annotations["yunikorn.apache.org/task-group-name"] = role
		meta.Annotations["yunikorn.apache.org/task-groups"] = fmt.Sprintf(`[{"name":"worker","minMember":%d}]`, g.Min)
	case gang.Kueue:
		meta.Labels["kueue.x-k8s.io/pod-group-name"], meta.Labels["kueue.x-k8s.io/queue-name"] = g.Name, g.Queue
		meta.Annotations["kueue.x-k8s.io/pod-group-total-count"] = fmt.Sprint(g.Min)
	default: // a budget selects by the owner of the pods
	}
}

// addGroup adds the object that declares the gang, in a dialect that has one.
func (c *Cluster) addGroup(g Gang) {
	yes := true
	owner := []metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: g.Kind, Name: g.Name, UID: g.uid(), Controller: &yes}}
	switch g.Kind {
	case "Job":
		owner[0].APIVersion = "batch/v1"
	case jobset.Kind:
		owner[0].APIVersion = jobset.Group + "/" + jobset.Version
	case ray.JobKind, ray.ClusterKind:
		owner[0].APIVersion = ray.Group + "/" + ray.Version
	case VolcanoJob:
		owner[0].APIVersion, owner[0].Kind = volcanoJobVersion, "Job"
	case trainjob.Kind:
		owner[0].APIVersion = trainjob.Group + "/" + trainjob.Version
	}
	if g.Dialect == gang.PDB {
		least := intstr.FromInt(g.Min)
		c.put(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name, OwnerReferences: owner}, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least}})
		return
	}
	version := groupVersions[g.Dialect]
	if version == "" {
		return
	}
	group := map[string]any{
		"apiVersion": version, "kind": "PodGroup",
		"metadata": map[string]any{"name": g.Name, "namespace": g.Namespace, "uid": string(uid("PodGroup", g.Namespace, g.Name)), "creationTimestamp": stamp(g.Age)},
		"spec":     map[string]any{"minMember": int64(g.Min), "minResources": g.total()},
	}
	if g.Queue != "" {
		group["spec"].(map[string]any)["queue"] = g.Queue
	}
	switch g.Dialect {
	case gang.Volcano:
		group["status"] = map[string]any{"phase": "Inqueue"}
		if g.Missing == g.Workers {
			group["status"] = map[string]any{"phase": "Pending"}
		}
	case gang.Native:
		group["spec"] = map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(g.Min)}}}
	default: // as above
	}
	if g.Group != nil {
		g.Group(group)
	}
	u := &unstructured.Unstructured{Object: group}
	u.SetOwnerReferences(owner)
	c.put(u)
}

// total is what the first members request together, as many as the minimum.
func (g Gang) total() map[string]any {
	sum, left := corev1.ResourceList{}, g.Min
	for _, r := range g.roles() {
		for range min(left, r.Replicas) {
			left--
			for name, q := range r.resources() {
				was := sum[name]
				was.Add(q)
				sum[name] = was
			}
		}
	}
	out := map[string]any{}
	for name, q := range sum {
		out[string(name)] = q.String()
	}
	return out
}

package clustertest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Queue adds a queue of Volcano.
func (c *Cluster) Queue(name, state string, capability map[string]any) *unstructured.Unstructured {
	spec := map[string]any{"weight": int64(1)}
	if capability != nil {
		spec["capability"] = capability
	}
	return c.Object(map[string]any{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": map[string]any{"name": name},
		"spec": spec, "status": map[string]any{"state": state}})
}

// Apart is a required anti-affinity among the pods of a job, by node.
func Apart(job string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"training.kubeflow.org/job-name": job}}}}}}
}

// Together is a required affinity among the pods of a job, by a label of nodes.
func Together(job, key string) *corev1.Affinity {
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"training.kubeflow.org/job-name": job}}}}}}
}

// Set sets a field of an object without a type; objects on the way are made.
func Set(value any, path ...string) func(map[string]any) {
	return func(obj map[string]any) {
		for _, key := range path[:len(path)-1] {
			next, ok := obj[key].(map[string]any)
			if !ok {
				next = map[string]any{}
				obj[key] = next
			}
			obj = next
		}
		obj[path[len(path)-1]] = value
	}
}

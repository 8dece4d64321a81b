package kubetest

import (
	"encoding/json"
	"testing"

	"fmt"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Created is when every object of this package was created.
var Created = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

// Job is a TFJob of workers with two GPUs each, whose uid is NAMESPACE-NAME, declared as one gang.
func Job(namespace, name string, workers int32) *kubeflowv1.TFJob {
	return &kubeflowv1.TFJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: "kubeflow.org/v1", Kind: "TFJob"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid(namespace, name), CreationTimestamp: Created},
		Spec: kubeflowv1.TFJobSpec{TFReplicaSpecs: map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{"Worker": {
			Replicas: &workers,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"scheduling.x-k8s.io/pod-group": name}},
				Spec: corev1.PodSpec{SchedulerName: "gang-scheduler", Containers: []corev1.Container{{Name: "tensorflow",
					Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}}}}},
			},
		}}},
	}
}

// Pod is the pod of a worker of the job. Without a node it is pending for this reason; with one it runs.
func Pod(namespace, job string, index int, node, reason string) *corev1.Pod {
	controller := true
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-worker-%d", job, index), CreationTimestamp: Created,
			Labels: map[string]string{kubeflowv1.JobNameLabel: job, kubeflowv1.ReplicaTypeLabel: "worker", kubeflowv1.ReplicaIndexLabel: fmt.Sprint(index)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Name: job, UID: uid(namespace, job),
				Controller: &controller}}},
	}
	if node == "" {
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: reason}}}
		return pod
	}
	pod.Spec.NodeName = node
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.0.0.%d", index+1)}
	return pod
}

// RayJobs is where RayJobs are served.
func RayJobs() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayjobs"}
}

// RayJob is a RayJob of a head and a worker, which was made into a RayCluster; an empty name is none yet.
func RayJob(namespace, name, cluster string) *unstructured.Unstructured {
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "ray"}}}}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "ray.io/v1", "kind": "RayJob", "spec": map[string]any{"rayClusterSpec": map[string]any{
		"headGroupSpec":    map[string]any{"template": template},
		"workerGroupSpecs": []any{map[string]any{"groupName": "worker", "replicas": int64(1), "template": template}}}}}}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetUID(uid(namespace, name))
	if cluster != "" {
		u.Object["status"] = map[string]any{"jobDeploymentStatus": "Initializing", "rayClusterName": cluster}
	}
	return u
}

// RayPod is a pod of a RayCluster that runs: its head, or of its group of workers.
func RayPod(namespace, cluster, role string) *corev1.Pod {
	controller := true
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster + "-" + role, UID: uid(namespace, cluster+"-"+role), CreationTimestamp: Created,
			Labels:          map[string]string{"ray.io/cluster": cluster, "ray.io/node-type": role, "ray.io/group": role},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: cluster, UID: uid(namespace, cluster), Controller: &controller}}},
		Spec:   corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "ray"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// JobList is what a LIST of TFJobs answers; next is the token of the next page, if any.
func JobList(next string, jobs ...*kubeflowv1.TFJob) *kubeflowv1.TFJobList {
	list := &kubeflowv1.TFJobList{TypeMeta: metav1.TypeMeta{APIVersion: "kubeflow.org/v1", Kind: "TFJobList"}}
	list.ResourceVersion, list.Continue = "7", next
	list.Items = []kubeflowv1.TFJob{}
	for _, job := range jobs {
		list.Items = append(list.Items, *job)
	}
	return list
}

// PodList is what a LIST of pods answers.
func PodList(pods ...*corev1.Pod) *corev1.PodList {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{}}
	list.ResourceVersion = "7"
	for _, pod := range pods {
		list.Items = append(list.Items, *pod)
	}
	return list
}

func uid(namespace, name string) types.UID { return types.UID(namespace + "-" + name) }

// Stored is an object as the API server has it, status included.
func Stored(t *testing.T, object runtime.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// Unstructured is an object given as a value, as it comes out of JSON.
func Unstructured(object map[string]any) *unstructured.Unstructured {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		panic(err)
	}
	return u
}

package summary

import (
	"testing"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
)

// makeJob builds a job with one PS and workers of two GPUs each.
func makeJob(workers int32, options ...func(*kubeflowv1.TFJob)) *kubeflowv1.TFJob {
	one := int32(1)
	gpu := corev1.PodSpec{SchedulerName: "gang-scheduler", Containers: []corev1.Container{{Name: "tensorflow", Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}}}}}
	job := &kubeflowv1.TFJob{ObjectMeta: metav1.ObjectMeta{Name: "llama", Namespace: "research", UID: "uid-1"}}
	job.Spec.TFReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{
		"worker": {Replicas: &workers, Template: corev1.PodTemplateSpec{Spec: gpu}},
		"PS":     {Replicas: &one, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{SchedulerName: "gang-scheduler"}}},
	}
	for _, o := range options {
		o(job)
	}
	return job
}

func withCondition(t kubeflowv1.JobConditionType, status corev1.ConditionStatus, message string) func(*kubeflowv1.TFJob) {
	return func(job *kubeflowv1.TFJob) {
		job.Status.Conditions = append(job.Status.Conditions, kubeflowv1.JobCondition{Type: t, Status: status, Message: message})
	}
}

func withMin(n int32) func(*kubeflowv1.TFJob) {
	return func(job *kubeflowv1.TFJob) {
		job.Spec.RunPolicy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{MinAvailable: &n}
	}
}

func withTemplateLabels(pairs map[string]string) func(*kubeflowv1.TFJob) {
	return func(job *kubeflowv1.TFJob) {
		for _, spec := range job.Spec.TFReplicaSpecs {
			spec.Template.Labels = pairs
		}
	}
}

func suspended(job *kubeflowv1.TFJob) {
	yes := true
	job.Spec.RunPolicy.Suspend = &yes
}

// makePod builds the pod of a member: llama-ROLE-INDEX, owned by the job.
func makePod(role, index string, options ...func(*corev1.Pod)) *corev1.Pod {
	controller := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "llama-" + role + "-" + index, Namespace: "research",
		Labels: map[string]string{kubeflowv1.ReplicaTypeLabel: role, kubeflowv1.ReplicaIndexLabel: index},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Name: "llama", UID: "uid-1",
			Controller: &controller}},
	}}
	pod.Spec.SchedulerName = "gang-scheduler"
	pod.Status.Phase = corev1.PodPending
	for _, o := range options {
		o(pod)
	}
	return pod
}

func unschedulable(message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, Message: message})
	}
}

func bound(pod *corev1.Pod) { pod.Spec.NodeName = "node-1" }

func running(pod *corev1.Pod) {
	bound(pod)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
}

func succeeded(pod *corev1.Pod) {
	bound(pod)
	pod.Status.Phase = corev1.PodSucceeded
}

func failed(code int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		bound(pod)
		pod.Status.Phase = corev1.PodFailed
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "tensorflow",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}}
	}
}

func waiting(reason, message string, restarts int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		bound(pod)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "tensorflow", RestartCount: restarts,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
}

func terminating(pod *corev1.Pod) {
	now := metav1.Now()
	pod.DeletionTimestamp = &now
}

// unreported has the node controller take back that a pod that runs is ready.
func unreported(pod *corev1.Pod) {
	running(pod)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
}

// unready has a container of a pod that runs not be ready.
func unready(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}, {Type: corev1.ContainersReady, Status: corev1.ConditionFalse}}
}

func gatedReadiness(pod *corev1.Pod) {
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/registered"}}
}

func evicted(pod *corev1.Pod) {
	bound(pod)
	pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory"}
}

func ofOther(pod *corev1.Pod) { pod.OwnerReferences[0].UID = "uid-0" }

func oldLabels(pod *corev1.Pod) {
	pod.Labels = map[string]string{"replica-type": pod.Labels[kubeflowv1.ReplicaTypeLabel], "replica-index": pod.Labels[kubeflowv1.ReplicaIndexLabel]}
}

func noLabels(pod *corev1.Pod) { pod.Labels = nil }

// of summarizes a job as the cluster would have it.
func of(t *testing.T, job *kubeflowv1.TFJob, pods []*corev1.Pod) Summary {
	t.Helper()
	return Of(read(t, job), pods, time.Time{})
}

// read reads a job as the API server serves it.
func read(t *testing.T, job *kubeflowv1.TFJob) *gang.Job {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kubeflowv1.GroupVersion.WithKind("TFJob"))
	read, err := tfjob.Reader().Job(u)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

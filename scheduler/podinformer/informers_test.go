package podinformer

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/scheduler/bounds"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

const namespace = "research"

// What a node is chosen by stays: amounts, ports, images, restarts, and options of mounts.
func TestTrim(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	required := corev1.Container{
		Name: "main", Image: "example.com/train", RestartPolicy: &always, Ports: []corev1.ContainerPort{{HostPort: 80}},
		Resources:          corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
		RestartPolicyRules: []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}},
		VolumeMounts:       []corev1.VolumeMount{{Name: "data", MountPath: "/data", BindMountOptions: []string{"noexec"}}},
	}
	whole := *required.DeepCopy()
	whole.Command, whole.Args, whole.WorkingDir = []string{"python"}, []string{"train.py"}, "/work"
	whole.Env, whole.EnvFrom = []corev1.EnvVar{{Name: "TOKEN", Value: "secret"}}, []corev1.EnvFromSource{{Prefix: "X"}}
	whole.LivenessProbe, whole.Lifecycle, whole.SecurityContext = &corev1.Probe{}, &corev1.Lifecycle{}, &corev1.SecurityContext{}
	whole.VolumeMounts = append(whole.VolumeMounts, corev1.VolumeMount{Name: "kube-api-access-x7k2p", MountPath: "/var/run"})
	obj, err := trim(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{whole}, InitContainers: []corev1.Container{whole}, NodeName: "n"}})
	if err != nil {
		t.Fatal(err)
	}
	want := corev1.PodSpec{Containers: []corev1.Container{required}, InitContainers: []corev1.Container{required}, NodeName: "n"}
	if got := obj.(*corev1.Pod).Spec; !reflect.DeepEqual(got, want) {
		t.Errorf("kept %+v, want %+v", got, want)
	}
}

func TestTrimEnded(t *testing.T) {
	yes, name := true, "native"
	now := metav1.Now()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "a", UID: "u", DeletionTimestamp: &now, CreationTimestamp: now,
			OwnerReferences: []metav1.OwnerReference{{UID: types.UID("job"), Controller: &yes}},
			Annotations:     map[string]string{"pod-group-name": "g", "kubectl.kubernetes.io/last-applied-configuration": "large"},
		},
		Spec:   corev1.PodSpec{SchedulerName: "gang-scheduler", Containers: []corev1.Container{{Name: "main"}}, SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &name}},
		Status: corev1.PodStatus{Phase: corev1.PodSucceeded, Message: "long"},
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Image: "train", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: now, Message: "long"}}},
	}
	labels.SetGroup(&pod.ObjectMeta, "llama", 2)
	obj, err := trimEnded(pod)
	if err != nil {
		t.Fatal(err)
	}
	kept := obj.(*corev1.Pod)
	if len(kept.Spec.Containers) != 0 || kept.Status.Message != "" || len(kept.Annotations) != 1 {
		t.Errorf("kept %+v: more than its gang needs", kept)
	}
	if got, ok := labels.NameOf(kept); !ok || got != "llama" || metav1.GetControllerOf(kept) == nil || kept.Annotations["pod-group-name"] != "g" ||
		kept.Spec.SchedulingGroup == nil || kept.DeletionTimestamp == nil || kept.Status.Phase != corev1.PodSucceeded || kept.Spec.SchedulerName != "gang-scheduler" || !gang.EndOf(kept).Equal(now.Time) {
		t.Errorf("kept %+v: less than its gang needs", kept)
	}
}

// A Job keeps its ended pods while it is suspended, and would wait for them
// indefinitely. The Training Operator deletes them, too.
func TestWhichPodsAJobWaitsFor(t *testing.T) {
	yes := true
	pod := func(apiVersion, kind string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: kind, Name: "j", UID: "uid", Controller: &yes},
		}}}
	}
	for _, c := range []struct {
		name      string
		pod       *corev1.Pod
		ended     bool
		waits     bool
		elsewhere bool // the pod is another job's
		foreign   bool // it is in another namespace
	}{
		{"a Job, for one that is there", pod("batch/v1", "Job"), false, true, false, false},
		{"a Job, for one that has ended", pod("batch/v1", "Job"), true, false, false, false},
		{"a TFJob, for one that is there", pod("kubeflow.org/v1", "TFJob"), false, true, false, false},
		{"a TFJob, for one that has ended", pod("kubeflow.org/v1", "TFJob"), true, true, false, false},
		{"a TFJob, for another's", pod("kubeflow.org/v1", "TFJob"), false, false, true, false},
		{"a TFJob, for one that another user's pod names", pod("kubeflow.org/v1", "TFJob"), false, false, false, true},
	} {
		pods, err := New(fake.NewClientset(), nil)
		if err != nil {
			t.Fatal(err)
		}
		job, ok := suspend.Of(c.pod)
		if !ok {
			t.Fatalf("%s: no job", c.name)
		}
		if c.elsewhere {
			job.UID = "other"
		}
		if c.foreign {
			c.pod.Namespace = "another"
		}
		store := pods.Live.GetStore()
		if c.ended {
			store = pods.Ended.GetStore()
		}
		if err := store.Add(c.pod); err != nil {
			t.Fatal(err)
		}
		if got := pods.OwnedBy(job); got != c.waits {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// What a pod requires is bounded before anything else reads it.
func TestTrimBounds(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{}}, Tolerations: make([]corev1.Toleration, 10_000)}}
	if _, err := trim(pod); err != nil {
		t.Fatal(err)
	}
	if _, marked := pod.Spec.Containers[0].Resources.Requests[bounds.TooManyRequirements]; !marked || pod.Spec.Tolerations != nil {
		t.Errorf("%d tolerations are read, marked %t", len(pod.Spec.Tolerations), marked)
	}
}

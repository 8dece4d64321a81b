package logs

import (
	"context"
	"strings"
	"testing"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
)

// followed is a `logs llama -f` of a job of one worker on fake clients, whose logs read "fake logs".
type followed struct {
	t           *testing.T
	typed       *fake.Clientset
	dyn         *dynamicfake.FakeDynamicClient
	out, errOut *kubetest.Screen
	stop        context.CancelFunc
	ended       chan *failure.Error
}

func startFollow(t *testing.T, pod *corev1.Pod) *followed {
	t.Helper()
	return startFollowOf(t, object(t, kubetest.Job("research", "llama", 1)), pod)
}

func startFollowOf(t *testing.T, job *unstructured.Unstructured, pods ...runtime.Object) *followed {
	t.Helper()
	f := &followed{t: t, typed: fake.NewClientset(pods...), out: &kubetest.Screen{}, errOut: &kubetest.Screen{}, ended: make(chan *failure.Error, 1),
		dyn: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{tfjob.GVR(): "TFJobList", kubetest.RayJobs(): "RayJobList"}, job)}
	kubetest.SelectWatched(&f.typed.Fake, f.typed.Tracker())
	io, _, _, _ := iostreams.Test(clock.RealClock{})
	io.SetOut(f.out)
	io.ErrOut = f.errOut
	client := &kube.Client{Typed: f.typed, Dynamic: f.dyn}
	cmd := NewCommand(&cmdutil.Factory{IO: io, Client: func() (*kube.Client, error) { return client, nil }, Namespace: func() (string, error) { return "research", nil }}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	f.stop = cancel
	go func() { f.ended <- failure.From(commandtest.Execute(ctx, cmd, "llama", "-f")) }()
	return f
}

func object(t *testing.T, job *kubeflowv1.TFJob) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// succeed ends the job well.
func (f *followed) succeed() {
	f.t.Helper()
	kubetest.AwaitWatch(f.t, &f.dyn.Fake, "tfjobs")
	job := kubetest.Job("research", "llama", 1)
	job.Status.Conditions = []kubeflowv1.JobCondition{{Type: kubeflowv1.JobSucceeded, Status: corev1.ConditionTrue}}
	if _, err := f.dyn.Resource(tfjob.GVR()).Namespace("research").Update(f.t.Context(), object(f.t, job), metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *followed) end() *failure.Error {
	f.t.Helper()
	select {
	case failed := <-f.ended:
		return failed
	case <-time.After(20 * time.Second):
		f.t.Fatalf("it does not end\n%s%s", f.out, f.errOut)
		return nil
	}
}

// over is a worker that has ended.
func over(code int32) *corev1.Pod {
	p := worker(0, corev1.ContainerState{Terminated: ended(code, "Error", time.Minute)}, nil)
	p.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		p.Status.Phase = corev1.PodFailed
	}
	return p
}

// It ends with the job, when all is read.
func TestFollowEndsWithItsJob(t *testing.T) {
	f := startFollow(t, over(3))
	f.succeed()
	failed := f.end()
	if failed != nil || f.out.String() != "[worker-0] fake logs\n" {
		t.Errorf("got %+v, %q", failed, f.out)
	}
	for _, note := range []string{"[worker-0] exited with code 3\n", "llama has ended: Succeeded\n"} {
		if strings.Count(f.errOut.String(), note) != 1 {
			t.Errorf("no %q, or more than one, in %q", note, f.errOut)
		}
	}
}

// A RayJob that KubeRay tries again is followed to the pods of its next RayCluster.
func TestFollowARayJob(t *testing.T) {
	f := startFollowOf(t, kubetest.RayJob("research", "llama", "llama-x7k2p"), failing(kubetest.RayPod("research", "llama-x7k2p", "head")), failing(kubetest.RayPod("research", "other-k2f9c", "head")))
	kubetest.AwaitWatch(t, &f.dyn.Fake, "rayjobs")
	kubetest.AwaitWatch(t, &f.typed.Fake, "pods")
	if _, err := f.dyn.Resource(kubetest.RayJobs()).Namespace("research").Update(t.Context(), kubetest.RayJob("research", "llama", "llama-b4r9z"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.typed.CoreV1().Pods("research").Create(t.Context(), failing(kubetest.RayPod("research", "llama-b4r9z", "head")), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the logs of both heads", func() bool { return f.out.String() == "[head-0] fake logs\n[head-0] fake logs\n" })
	f.stop()
	if failed := f.end(); failed == nil || failed.Code != failure.CodeInterrupted {
		t.Errorf("got %+v", failed)
	}
}

// failing is a pod whose container has ended with an error.
func failing(pod *corev1.Pod) *corev1.Pod {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{Terminated: ended(1, "Error", time.Minute)}}}
	pod.Status.Phase = corev1.PodFailed
	return pod
}

// A member that runs on when its job is over does not keep it indefinitely.
func TestFollowLeavesServersAlone(t *testing.T) {
	f := startFollow(t, worker(0, running(), nil))
	f.succeed()
	if failed := f.end(); failed != nil || !strings.Contains(f.errOut.String(), "llama has ended: Succeeded\n") {
		t.Errorf("got %+v, %q", failed, f.errOut)
	}
}

func TestFollowEndsWhenTheJobIsDeleted(t *testing.T) {
	f := startFollow(t, over(0))
	poll.Until(t, "the logs", func() bool { return f.out.String() != "" })
	kubetest.AwaitWatch(t, &f.dyn.Fake, "tfjobs")
	if err := f.dyn.Resource(tfjob.GVR()).Namespace("research").Delete(t.Context(), "llama", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if failed := f.end(); failed != nil || !strings.HasSuffix(f.errOut.String(), "llama has ended: deleted\n") {
		t.Errorf("got %+v, %q", failed, f.errOut)
	}
}

func TestFollowInterrupted(t *testing.T) {
	f := startFollow(t, worker(0, running(), nil))
	f.stop()
	if failed := f.end(); failed == nil || failed.Code != failure.CodeInterrupted {
		t.Errorf("got %+v", failed)
	}
}

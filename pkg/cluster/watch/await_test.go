package watch

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
	"github.com/gangctl/gangctl/pkg/gang/summary"
	"github.com/gangctl/gangctl/pkg/submit/render"
	"github.com/gangctl/gangctl/templates"
)

// fakes are the clients of a test.
type fakes struct {
	typed *fake.Clientset
	dyn   *dynamicfake.FakeDynamicClient
}

func (f fakes) client() *kube.Client { return &kube.Client{Typed: f.typed, Dynamic: f.dyn} }

// cluster is a job of two workers on fake clients, and the means to move it on.
type cluster struct {
	fakes
	t   *testing.T
	job *kubeflowv1.TFJob
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	objects, err := render.TFJob().Render(templates.TF(), render.Spec{Name: "llama", Namespace: "research", Gang: render.GangSpec{Dialect: gang.None},
		Roles: []render.Role{{Name: "Worker", Replicas: 2, Image: "i"}}})
	if err != nil {
		t.Fatal(err)
	}
	u := objects.Job
	u.SetUID("uid-1")
	job, err := tfjob.Decode(u)
	if err != nil {
		t.Fatal(err)
	}
	typed := fake.NewClientset()
	kubetest.SelectWatched(&typed.Fake, typed.Tracker())
	dyn := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{tfjob.GVR(): "TFJobList"}, u)
	return &cluster{fakes: fakes{typed, dyn}, t: t, job: job}
}

// pod creates or changes the pod of a worker.
func (c *cluster) pod(index, node string, phase corev1.PodPhase, message string) {
	c.t.Helper()
	controller := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "llama-worker-" + index, Namespace: "research",
		Labels:          map[string]string{kubeflowv1.JobNameLabel: "llama", kubeflowv1.ReplicaTypeLabel: "worker", kubeflowv1.ReplicaIndexLabel: index},
		OwnerReferences: []metav1.OwnerReference{{Kind: "TFJob", Name: "llama", UID: "uid-1", Controller: &controller}}}}
	pod.Spec.NodeName = node
	pod.Status.Phase = phase
	if message != "" {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: message}}
	}
	pods := c.typed.CoreV1().Pods("research")
	_, err := pods.Update(c.t.Context(), pod, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = pods.Create(c.t.Context(), pod, metav1.CreateOptions{})
	}
	if err != nil {
		c.t.Error(err)
	}
}

// condition adds a condition to the job.
func (c *cluster) condition(kind kubeflowv1.JobConditionType, message string) {
	c.t.Helper()
	c.job.Status.Conditions = append(c.job.Status.Conditions, kubeflowv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Message: message})
	u := mustUnstructured(c.t, c.job)
	if _, err := c.dyn.Resource(tfjob.GVR()).Namespace("research").Update(c.t.Context(), u, metav1.UpdateOptions{}); err != nil {
		c.t.Error(err)
	}
}

// waitFor runs the waiter; each time it reports a new line of progress, the next step is taken.
func waitFor(ctx context.Context, c *cluster, w *Waiter, steps ...func()) (string, error) {
	return waitForJob(ctx, c.t, c.fakes, mustUnstructured(c.t, c.job), w, steps...)
}

func waitForJob(ctx context.Context, t *testing.T, f fakes, u *unstructured.Unstructured, w *Waiter, steps ...func()) (string, error) {
	t.Helper()
	job, err := jobs.Read(u)
	if err != nil {
		t.Fatal(err)
	}
	watched := func() {
		kubetest.AwaitWatch(t, &f.dyn.Fake, job.Resource().Resource)
		kubetest.AwaitWatch(t, &f.typed.Fake, "pods")
	}
	io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	stderr := &stepper{before: watched, steps: steps}
	io.ErrOut = stderr
	w.IO, w.Client = io, f.client()
	err = w.Wait(ctx, job)
	return stderr.text.String(), err
}

// stepper is a writer that takes a step at each write. The waiter writes from one goroutine.
type stepper struct {
	text   bytes.Buffer
	before func() // before each step
	steps  []func()
}

func (s *stepper) Write(p []byte) (int, error) {
	if len(s.steps) > 0 {
		step := s.steps[0]
		s.steps = s.steps[1:]
		s.before()
		step()
	}
	return s.text.Write(p)
}

func TestWaitReached(t *testing.T) {
	for _, tt := range []struct {
		target Target
		last   string
	}{
		{Scheduled, "llama: Starting, 2/2 scheduled, 0/2 running"},
		{Running, "llama: Running, 2/2 scheduled, 2/2 running"},
		{Done, "llama: Succeeded"},
	} {
		t.Run(string(tt.target), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			c := newCluster(t)
			stderr, err := waitFor(ctx, c, &Waiter{Target: tt.target},
				func() { c.pod("0", "n1", corev1.PodPending, "") },
				func() { c.pod("1", "n2", corev1.PodPending, "") },
				func() { c.pod("0", "n1", corev1.PodRunning, "") },
				func() { c.pod("1", "n2", corev1.PodRunning, "") },
				func() { c.condition(kubeflowv1.JobSucceeded, "") },
			)
			lines := strings.Split(strings.TrimSpace(stderr), "\n")
			if err != nil || lines[len(lines)-1] != tt.last {
				t.Errorf("got %v\n%s", err, stderr)
			}
		})
	}
}

// A RayJob is stored before its RayCluster has a name, which its pods carry, and gets another one where KubeRay tries again.
func TestWaitForARayJob(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	u := kubetest.RayJob("research", "llama", "")
	typed, dyn := fake.NewClientset(kubetest.RayPod("research", "other-k2f9c", "head")), dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{kubetest.RayJobs(): "RayJobList"}, u)
	kubetest.SelectWatched(&typed.Fake, typed.Tracker())
	makes := func(cluster string) {
		if _, err := dyn.Resource(kubetest.RayJobs()).Namespace("research").Update(ctx, kubetest.RayJob("research", "llama", cluster), metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}
	runs := func(cluster, role string) {
		if _, err := typed.CoreV1().Pods("research").Create(ctx, kubetest.RayPod("research", cluster, role), metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	}
	stderr, err := waitForJob(ctx, t, fakes{typed, dyn}, u, &Waiter{Target: Running},
		func() { makes("llama-x7k2p"); runs("llama-x7k2p", "head") },
		func() { makes("llama-b4r9z") },
		func() { runs("llama-b4r9z", "head") },
		func() { runs("llama-b4r9z", "worker") },
	)
	want := `llama: Pending, 0/2 scheduled, 0/2 running
llama: Degraded, 1/2 scheduled, 1/2 running
llama: Pending, 0/2 scheduled, 0/2 running
llama: Degraded, 1/2 scheduled, 1/2 running
llama: Running, 2/2 scheduled, 2/2 running
`
	if err != nil || stderr != want {
		t.Errorf("got %v\n%s", err, stderr)
	}
}

func TestWaitEndsOtherwise(t *testing.T) {
	const short = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu"
	pending := func(c *cluster) func() {
		return func() { c.pod("0", "", corev1.PodPending, short) }
	}
	tests := []struct {
		name          string
		timeout       time.Duration
		before        func(*cluster)
		steps         func(*cluster, context.CancelFunc) []func()
		code          failure.Code
		message, hint string
	}{
		{"timeout", time.Second, nil, func(c *cluster, _ context.CancelFunc) []func() { return []func(){pending(c)} }, failure.CodeTimedOut,
			"TFJob research/llama: not every member runs after 1s: Pending, 0/2 scheduled, 0/2 running: " + short,
			"BLOCKED  llama: no room\nthe job is left as it is; look at it with `gangctl get tfjob/llama -n research`"},
		{"failed", 0, nil, func(c *cluster, _ context.CancelFunc) []func() {
			return []func(){func() { c.condition(kubeflowv1.JobFailed, "1 Worker replica(s) failed.") }}
		}, failure.CodeJobFailed, "TFJob research/llama failed: 1 Worker replica(s) failed.", "gangctl get tfjob/llama"},
		{"deleted", 0, nil, func(c *cluster, _ context.CancelFunc) []func() {
			return []func(){func() {
				if err := c.dyn.Resource(tfjob.GVR()).Namespace("research").Delete(t.Context(), "llama", metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			}}
		}, failure.CodeJobFailed, "TFJob research/llama was deleted while waiting for it", ""},
		{"interrupted", time.Minute, nil, func(_ *cluster, cancel context.CancelFunc) []func() { return []func(){cancel} }, failure.CodeInterrupted,
			"interrupted; TFJob research/llama keeps going: Pending, 0/2 scheduled, 0/2 running: no pods yet", "gangctl delete tfjob/llama -n research"},
		{"no right to watch pods", 0, func(c *cluster) {
			refuse := func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", nil)
			}
			c.typed.PrependReactor("list", "pods", refuse)
		}, func(*cluster, context.CancelFunc) []func() { return nil }, failure.CodeError,
			"watch pods in namespace research: pods is forbidden: <nil>", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // a busy machine does not use up the timeout
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				c := newCluster(t)
				if tt.before != nil {
					tt.before(c)
				}
				why := func(context.Context, *gang.Job) (string, error) { return "BLOCKED  llama: no room", nil }
				stderr, err := waitFor(ctx, c, &Waiter{Target: Running, Timeout: tt.timeout, Why: why}, tt.steps(c, cancel)...)
				got := failure.From(err)
				if got == nil || got.Code != tt.code || got.Message != tt.message || !strings.Contains(got.Hint, tt.hint) {
					t.Errorf("got %+v\n%s", got, stderr)
				}
			})
		})
	}
}

// Who interrupts before the server has answered hears how far the job was when it was found.
func TestInterruptedBeforeTheFirstAnswer(t *testing.T) {
	c := newCluster(t)
	c.pod("0", "n1", corev1.PodRunning, "")
	found, err := c.typed.CoreV1().Pods("research").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = waitFor(ctx, c, &Waiter{Target: Running, Known: []*corev1.Pod{&found.Items[0]}})
	if want := "interrupted; TFJob research/llama keeps going: Degraded, 1/2 scheduled, 1/2 running"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// To wait for a failure is to want it: only a job that succeeds disappoints.
func TestWaitForFailure(t *testing.T) {
	for _, tt := range []struct {
		kind    kubeflowv1.JobConditionType
		message string
	}{{kubeflowv1.JobFailed, ""}, {kubeflowv1.JobSucceeded, "TFJob research/llama has succeeded, and fails no more"}} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		c := newCluster(t)
		_, err := waitFor(ctx, c, &Waiter{Target: Failed}, func() { c.condition(tt.kind, "") })
		got := failure.From(err)
		if (tt.message == "") != (got == nil) || got != nil && (got.Message != tt.message || got.Code != failure.CodeError) {
			t.Errorf("%s: got %+v", tt.kind, got)
		}
	}
}

// What cannot be found out does not hide that the time is over, and a job that runs needs no such line.
func TestWhyIsGivenForJobsThatWait(t *testing.T) {
	w := &Waiter{Why: func(ctx context.Context, _ *gang.Job) (string, error) {
		if _, limited := ctx.Deadline(); !limited {
			t.Error("it may take indefinitely")
		}
		return "", apierrors.NewForbidden(corev1.Resource("nodes"), "", nil)
	}}
	if got := w.why(t.Context(), nil, summary.Summary{State: gang.Pending}); got != "why it waits cannot be determined: nodes is forbidden: <nil>\n" {
		t.Errorf("refused: %q", got)
	}
	for _, state := range []gang.State{gang.Running, gang.Succeeded, gang.Failed} {
		if got := w.why(t.Context(), nil, summary.Summary{State: state}); got != "" {
			t.Errorf("%s: %q", state, got)
		}
	}
}

// mustUnstructured converts an object as it is, status included.
func mustUnstructured(t *testing.T, obj runtime.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/internal/sandboxtest"
)

// eventually bounds every wait; it is long for machines that are busy.
const eventually = time.Minute

// TestCluster shares one sandbox: what pods, nodes and TFJobs do on it.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := sandboxtest.Start(t, sandboxtest.Options{Args: []string{"--scheduler=default", "--nodes=3", "--run-for=1s"}})
	t.Run("pods", func(t *testing.T) { testPods(t, client(t, c)) })
	t.Run("tfjob", func(t *testing.T) { testTFJob(t, c) })
	t.Run("tfjob is validated", func(t *testing.T) { testValidation(t, c) })
	t.Run("nodes", func(t *testing.T) { testNodes(t, c) })
	t.Run("failing node", func(t *testing.T) { testFail(t, c) })
	t.Run("node mistakes", func(t *testing.T) {
		wantError(t, c, 1, []string{"error: fail node nope: not found", "hint: see which nodes there are: kubectl get nodes"}, "node", "fail", "nope")
		wantError(t, c, 2, []string{"needs at least one name"}, "node", "cordon")
		wantError(t, c, 2, []string{`--taint "x:Sometimes"`}, "node", "add", "--taint=x:Sometimes")
		wantError(t, c, 2, []string{`--label "x"`}, "node", "add", "--label=x")
		wantError(t, c, 2, []string{"cannot all be called"}, "node", "add", "a", "--count=2")
		wantError(t, c, 1, []string{"node node-1", "already exists"}, "node", "add", "node-1")
	})
}

func testPods(t *testing.T, cs kubernetes.Interface) {
	tests := []struct {
		name        string
		policy      corev1.RestartPolicy
		annotations map[string]string
		labels      map[string]string
		want        func(*corev1.Pod) error
	}{
		{name: "succeeds", want: ended(corev1.PodSucceeded, 0)},
		{name: "fails", annotations: map[string]string{"exit-code": "137"}, want: ended(corev1.PodFailed, 137)},
		{name: "endless", annotations: map[string]string{"run-for": "0"}, want: endless},
		{name: "parameter-server", labels: map[string]string{"training.kubeflow.org/replica-type": "ps"}, want: endless},
		{name: "restarted", policy: corev1.RestartPolicyOnFailure, annotations: map[string]string{"exit-code": "1"}, want: func(p *corev1.Pod) error {
			if p.Status.Phase != corev1.PodRunning || p.Status.ContainerStatuses[0].RestartCount < 2 || p.Status.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode != 1 {
				return fmt.Errorf("%+v", p.Status)
			}
			return nil
		}},
		{name: "misspelt", annotations: map[string]string{"run-for": "soon"}, want: func(p *corev1.Pod) error {
			if len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].State.Waiting == nil || !strings.Contains(p.Status.ContainerStatuses[0].State.Waiting.Message, `"soon"`) {
				return fmt.Errorf("%+v", p.Status)
			}
			return nil
		}},
	}
	for _, tt := range tests {
		p := pod(tt.name, tt.labels)
		if tt.policy != "" {
			p.Spec.RestartPolicy = tt.policy
		}
		for key, value := range tt.annotations {
			p.Annotations["sandbox.gangctl.dev/"+key] = value
		}
		if _, err := cs.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { waitPod(t, cs, tt.name, tt.want) })
	}
	log, err := cs.CoreV1().Pods("default").GetLogs("fails", &corev1.PodLogOptions{Container: "sidecar"}).DoRaw(t.Context())
	if err != nil || !strings.HasPrefix(string(log), "simulated by gangctl-sandbox") || !strings.HasSuffix(string(log), "exits with code 137\n") {
		t.Errorf("log: %v\n%s", err, log)
	}
	if _, err := cs.CoreV1().Pods("default").GetLogs("misspelt", &corev1.PodLogOptions{Container: "sidecar"}).DoRaw(t.Context()); err == nil {
		t.Error("a pod that does not start has a log")
	}
	for _, tt := range tests {
		if err := cs.CoreV1().Pods("default").Delete(t.Context(), tt.name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
	sandboxtest.Eventually(t, eventually, func() error {
		list, err := cs.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d deleted pods are still there", len(list.Items))
		}
		return err
	})
}

func testNodes(t *testing.T, c *sandboxtest.Cluster) {
	cs := client(t, c)
	run(t, c, "node", "add", "big", "--gpus=8", "--cpu=64", "--label=pool=gpu", "--taint=dedicated=x:NoSchedule")
	run(t, c, "node", "add", "--count=2")
	run(t, c, "node", "cordon", "node-4", "node-5")
	nodes := map[string]*corev1.Node{}
	for _, name := range []string{"big", "node-4", "node-5"} {
		n, err := cs.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		nodes[name] = n
	}
	big := nodes["big"]
	gpus := big.Status.Allocatable["nvidia.com/gpu"]
	if gpus.Value() != 8 || big.Status.Allocatable.Cpu().Value() != 64 || big.Status.Allocatable.Memory().String() != "16Gi" || big.Labels["pool"] != "gpu" {
		t.Errorf("big: %v %v", big.Status.Allocatable, big.Labels)
	}
	if !slices.ContainsFunc(big.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "dedicated" }) {
		t.Errorf("big: %v", big.Spec.Taints)
	}
	if !nodes["node-4"].Spec.Unschedulable {
		t.Error("node-4 takes pods")
	}
	run(t, c, "node", "uncordon", "node-4")
	if n, err := cs.CoreV1().Nodes().Get(t.Context(), "node-4", metav1.GetOptions{}); err != nil || n.Spec.Unschedulable {
		t.Errorf("node-4 takes no pods: %v", err)
	}
	run(t, c, "node", "remove", "big", "node-4", "node-5")
	list, err := cs.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 3 {
		t.Errorf("%d nodes, %v", len(list.Items), err)
	}
}

// A pod on a failed node neither ends nor goes; both happen once it recovers.
func testFail(t *testing.T, c *sandboxtest.Cluster) {
	cs := client(t, c)
	for _, name := range []string{"frozen", "deleted"} {
		p := pod(name, nil)
		p.Spec.NodeName = "node-1"
		p.Annotations["sandbox.gangctl.dev/run-for"] = "12s" // shorter than the grace period, and longer than it takes to fail the node
		if _, err := cs.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		waitPod(t, cs, name, inPhase(corev1.PodRunning))
	}
	run(t, c, "node", "fail", "node-1")
	if err := cs.CoreV1().Pods("default").Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitNode(t, cs, corev1.ConditionFalse, corev1.TaintNodeNotReady)
	// The grace period passes: the controller has not heard of it for too long.
	waitNode(t, cs, corev1.ConditionUnknown, corev1.TaintNodeUnreachable)
	for _, name := range []string{"frozen", "deleted"} {
		p, err := cs.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || p.Status.Phase != corev1.PodRunning {
			t.Errorf("pod %s on a dead node: %v, %v", name, p.Status.Phase, err)
		}
	}
	run(t, c, "node", "recover", "node-1")
	waitNode(t, cs, corev1.ConditionTrue, "")
	waitPod(t, cs, "frozen", ended(corev1.PodSucceeded, 0))
	sandboxtest.Eventually(t, eventually, func() error {
		if _, err := cs.CoreV1().Pods("default").Get(t.Context(), "deleted", metav1.GetOptions{}); err == nil {
			return fmt.Errorf("the deleted pod is still there")
		}
		return nil
	})
}

const tfjob = `
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist}
spec:
  runPolicy: {cleanPodPolicy: Running}
  tfReplicaSpecs:
    PS:
      replicas: 1
      template: {spec: {containers: [{name: tensorflow, image: tf}]}}
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: tensorflow, image: tf, resources: {limits: {nvidia.com/gpu: 1}}}]}}
`

func testTFJob(t *testing.T, c *sandboxtest.Cluster) {
	jobs := tfjobs(t, c)
	if _, err := jobs.Create(t.Context(), parse(t, tfjob), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	events := map[string]bool{}
	sandboxtest.Eventually(t, eventually, func() error {
		list, err := client(t, c).CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=TFJob"})
		if err != nil {
			return err
		}
		for _, e := range list.Items {
			events[e.Message] = true
		}
		for _, pod := range []string{"mnist-ps-0", "mnist-worker-0", "mnist-worker-1"} {
			if !events["Created pod: "+pod] {
				return fmt.Errorf("the operator did not create %s: %v", pod, events)
			}
		}
		return nil
	})
	sandboxtest.Eventually(t, eventually, func() error {
		job, err := jobs.Get(t.Context(), "mnist", metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Succeeded" && c["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("the TFJob has not succeeded: %v", conditions)
	})
	if err := jobs.Delete(t.Context(), "mnist", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, eventually, func() error {
		list, err := client(t, c).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "training.kubeflow.org/job-name=mnist"})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d pods outlive their TFJob", len(list.Items))
		}
		return err
	})
}

func testValidation(t *testing.T, c *sandboxtest.Cluster) {
	bad := parse(t, strings.ReplaceAll(tfjob, "name: tensorflow", "name: other"))
	_, err := tfjobs(t, c).Create(t.Context(), bad, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "must have at least one container with name tensorflow") {
		t.Errorf("got %v", err)
	}
}

func tfjobs(t *testing.T, c *sandboxtest.Cluster) dynamic.ResourceInterface {
	t.Helper()
	d, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	return d.Resource(schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}).Namespace("default")
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func pod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			RestartPolicy:  corev1.RestartPolicyNever,
			InitContainers: []corev1.Container{{Name: "init", Image: "i"}},
			Containers:     []corev1.Container{{Name: "tensorflow", Image: "i"}, {Name: "sidecar", Image: "i"}},
		},
	}
}

func waitPod(t *testing.T, cs kubernetes.Interface, name string, want func(*corev1.Pod) error) {
	t.Helper()
	sandboxtest.Eventually(t, eventually, func() error {
		p, err := cs.CoreV1().Pods("default").Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return want(p)
	})
}

func ended(phase corev1.PodPhase, code int32) func(*corev1.Pod) error {
	return func(p *corev1.Pod) error {
		if p.Status.Phase != phase {
			return fmt.Errorf("pod %s is %s", p.Name, p.Status.Phase)
		}
		for _, s := range p.Status.ContainerStatuses {
			if s.State.Terminated == nil || s.State.Terminated.ExitCode != code {
				return fmt.Errorf("container %s: %+v", s.Name, s.State)
			}
		}
		return nil
	}
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) error {
	return func(p *corev1.Pod) error {
		if p.Status.Phase != phase {
			return fmt.Errorf("pod %s is %s", p.Name, p.Status.Phase)
		}
		return nil
	}
}

// endless is a pod that runs on after three times the usual time.
func endless(p *corev1.Pod) error {
	if p.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("pod %s is %s", p.Name, p.Status.Phase)
	}
	if age := time.Since(p.CreationTimestamp.Time); age < 4*time.Second {
		return fmt.Errorf("pod %s runs for %s only", p.Name, age)
	}
	return nil
}

func waitNode(t *testing.T, cs kubernetes.Interface, ready corev1.ConditionStatus, taint string) {
	t.Helper()
	sandboxtest.Eventually(t, eventually, func() error {
		n, err := cs.CoreV1().Nodes().Get(context.Background(), "node-1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		is := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady && c.Status == ready })
		tainted := taint == "" && len(n.Spec.Taints) == 0 || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint })
		if !is || !tainted {
			return fmt.Errorf("node-1: want ready %s, taint %q; is %+v %v", ready, taint, n.Status.Conditions, n.Spec.Taints)
		}
		return nil
	})
}

func run(t *testing.T, c *sandboxtest.Cluster, command string, args ...string) {
	t.Helper()
	if _, stderr, err := c.Run(command, args...); err != nil {
		t.Fatalf("%s %v: %v\n%s", command, args, err, stderr)
	}
}

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gangctl/gangctl/internal/sandboxtest"
)

// A component that was killed is no reason to lose anything: `up` starts the
// sandbox again, and it schedules.
func TestUpAfterComponentEnds(t *testing.T) {
	t.Parallel()
	c := sandboxtest.Start(t, sandboxtest.Options{Args: []string{"--nodes=1", "--operator=false", "--run-for=0"}})
	cs := client(t, c)
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := cs.CoreV1().ConfigMaps("default").Create(t.Context(), kept, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubeconfig := chooseNamespace(t, c, "a")

	killComponent(t, c, "gang-scheduler")
	again := "hint: start it again, objects are kept: gangctl-sandbox up --data-dir " + c.DataDir
	sandboxtest.Eventually(t, eventually, func() error {
		out, stderr, err := c.Run("status")
		if err == nil || !strings.Contains(out, "degraded") || !strings.Contains(stderr, "[gang-scheduler]") || !strings.Contains(stderr, again) {
			return fmt.Errorf("status: %w\n%s%s", err, out, stderr)
		}
		return nil
	})
	_, stderr, err := c.Run("up")
	if err != nil || !strings.Contains(stderr, "starting again: gang-scheduler had ended") || !strings.Contains(stderr, "ready after") {
		t.Fatalf("up: %v\n%s", err, stderr)
	}
	if out, stderr, err := c.Run("status"); err != nil || !strings.Contains(out, "gang-scheduler") {
		t.Errorf("status: %v\n%s%s", err, out, stderr)
	}
	if _, err := cs.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("objects are lost: %v", err)
	}
	if read(t, c.Kubeconfig) != kubeconfig {
		t.Error("the namespace that was chosen in the kubeconfig is lost")
	}
	p := pod("scheduled", nil)
	p.Spec.SchedulerName = "gang-scheduler"
	if _, err := cs.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitPod(t, cs, p.Name, func(p *corev1.Pod) error {
		if p.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("%s: %+v", p.Status.Phase, p.Status.Conditions)
		}
		return nil
	})
}

// What a sandbox was made with holds until something else is typed.
func TestUpKeepsSettings(t *testing.T) {
	t.Parallel()
	c := sandboxtest.Start(t, sandboxtest.Options{Args: bare("--nodes=2", "--gpus=2")})
	if _, stderr, err := c.Run("up"); err != nil || !strings.Contains(stderr, "runs already") {
		t.Errorf("up of a sandbox that runs: %v\n%s", err, stderr)
	}
	for _, tt := range []struct {
		args []string
		gpus int64
	}{{nil, 2}, {[]string{"--gpus=3"}, 3}, {nil, 3}} {
		kill(t, c)
		if _, stderr, err := c.Run("up", tt.args...); err != nil {
			t.Fatalf("up %v: %v\n%s", tt.args, err, stderr)
		}
		nodes, err := client(t, c).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(nodes.Items) != 2 {
			t.Fatalf("up %v: %d nodes, %v", tt.args, len(nodes.Items), err)
		}
		for _, n := range nodes.Items {
			if have := n.Status.Allocatable["nvidia.com/gpu"]; have.Value() != tt.gpus {
				t.Errorf("up %v: %s has %d GPUs, want %d", tt.args, n.Name, have.Value(), tt.gpus)
			}
		}
		var out string
		sandboxtest.Eventually(t, eventually, func() error { // on a busy machine a component may be slow to report that it runs
			var stderr string
			if out, stderr, err = c.Run("status"); err != nil {
				return fmt.Errorf("status: %w\n%s%s", err, out, stderr)
			}
			return nil
		})
		if strings.Contains(out, "scheduler") || strings.Contains(out, "operator") {
			t.Errorf("up %v starts what was left out:\n%s", tt.args, out)
		}
	}
}

// chooseNamespace does what `kubectl config set-context --current --namespace`
// does, and returns the file that comes of it.
func chooseNamespace(t *testing.T, c *sandboxtest.Cluster, namespace string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	if err := clientcmd.WriteToFile(*config, c.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	return read(t, c.Kubeconfig)
}

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gangctl/gangctl/internal/sandboxtest"
)

// Nodes from a file, a kubeconfig elsewhere, the bundled scheduler, and an
// operator that makes PodGroups for it.
func TestGangFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodes, kubeconfig := filepath.Join(dir, "nodes.yaml"), filepath.Join(dir, "kubeconfig")
	write(t, nodes, `
apiVersion: v1
kind: Node
metadata: {name: gpu-a}
status: {capacity: {cpu: "8", memory: 32Gi, nvidia.com/gpu: "4"}}
`)
	c := sandboxtest.Start(t, sandboxtest.Options{Kubeconfig: kubeconfig, Args: []string{
		"--node-file", nodes, "--run-for=0", "--operator-gang-scheduler=gang-scheduler",
	}})
	if _, err := tfjobs(t, c).Create(t.Context(), parse(t, tfjob), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	groups := d.Resource(schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}).Namespace("default")
	sandboxtest.Eventually(t, eventually, func() error {
		group, err := groups.Get(t.Context(), "mnist", metav1.GetOptions{})
		if err != nil {
			return err
		}
		members, _, _ := unstructured.NestedInt64(group.Object, "spec", "minMember")
		running, _, _ := unstructured.NestedInt64(group.Object, "status", "running")
		if members != 3 || running != 3 {
			return fmt.Errorf("%d of %d members run", running, members)
		}
		return nil
	})
	pods, err := client(t, c).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if p.Spec.NodeName != "gpu-a" || p.Spec.SchedulerName != "gang-scheduler" {
			t.Errorf("pod %s: node %q, scheduler %q", p.Name, p.Spec.NodeName, p.Spec.SchedulerName)
		}
	}
	if _, stderr, err := c.Run("down"); err != nil {
		t.Fatalf("down: %v\n%s", err, stderr)
	}
	if _, err := os.Stat(kubeconfig); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig of a cluster that is gone stays: %v", err)
	}
}

package top

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

// odd is a cluster in which what is held is easily counted wrong, one case a node: unhealthy GPUs of which some are used, pods that
// are being deleted, slices of a GPU, another vendor's, init containers that request more than the rest, sidecars that add up.
func odd() *clustertest.Cluster {
	c := clustertest.New()
	device(c.Node("amd", 0), "amd.com/gpu", 8, 0)
	c.Node("init", 8)
	device(c.Node("mig", 0), "nvidia.com/mig-1g.5gb", 7, 0)
	c.Node("sidecar", 8)
	c.Node("terminating", 8)
	device(c.Node("unhealthy", 0), "nvidia.com/gpu", 8, 4)
	one := func(name, node string, kind corev1.ResourceName, n int64, change func(*corev1.Pod)) {
		c.Add(clustertest.Gang{Name: name, Workers: 1, Nodes: []string{node}, Pod: func(_ int, p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[kind] = *resource.NewQuantity(n, resource.DecimalSI)
			if change != nil {
				change(p)
			}
		}})
	}
	first := func(n string, always bool) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			i := corev1.Container{Name: "first", Resources: corev1.ResourceRequirements{Requests: clustertest.List("nvidia.com/gpu", n)}}
			if restart := corev1.ContainerRestartPolicyAlways; always {
				i.RestartPolicy = &restart
			}
			p.Spec.InitContainers = []corev1.Container{i}
		}
	}
	leaves := func(p *corev1.Pod) {
		at := clustertest.Ago(-20 * time.Second)
		p.DeletionTimestamp = &at
	}
	one("rocm", "amd", "amd.com/gpu", 3, nil)
	one("prepares", "init", "nvidia.com/gpu", 2, first("6", false))
	one("sliced", "mig", "nvidia.com/mig-1g.5gb", 2, nil)
	one("proxied", "sidecar", "nvidia.com/gpu", 2, first("1", true))
	one("leaves", "terminating", "nvidia.com/gpu", 4, leaves)
	one("leaves-too", "terminating", "nvidia.com/gpu", 1, leaves)
	one("stays", "terminating", "nvidia.com/gpu", 2, nil)
	one("breaks", "unhealthy", "nvidia.com/gpu", 5, nil)
	return c
}

func TestGoldenOdd(t *testing.T) {
	cluster := kubetest.Serve(t, odd().Done())
	for _, what := range []string{"node", "node -o wide", "job"} {
		for _, width := range []int{0, 80, 120, 200} {
			name := fmt.Sprintf("odd_%s_%d", strings.ReplaceAll(strings.ReplaceAll(what, " ", "_"), "-", ""), width)
			stdout, stderr, failed := run(t, cluster.Client, width, strings.Fields(what)...)
			if failed != nil || stderr != "" {
				t.Fatalf("got %v, %q", failed, stderr)
			}
			frame(t, name, stdout, width)
		}
	}
}

// The two views of the command agree: the sum over nodes is the sum over jobs and others.
func TestViewsAgree(t *testing.T) {
	for name, c := range map[string]*clustertest.Cluster{"odd": odd(), "shop": shop()} {
		cluster := kubetest.Serve(t, c.Done())
		var nodes usage.Nodes
		var jobs usage.Jobs
		for args, into := range map[string]any{"node -o json": &nodes, "job -A -o json": &jobs} {
			stdout, _, failed := run(t, cluster.Client, 0, strings.Fields(args)...)
			if failed != nil {
				t.Fatalf("%s: %v", args, failed)
			}
			if err := json.Unmarshal([]byte(stdout), into); err != nil {
				t.Fatal(err)
			}
		}
		sums := map[corev1.ResourceName]int64{}
		for _, n := range nodes.Nodes {
			for _, d := range n.Devices {
				sums[d.Kind] += d.Used
			}
		}
		var held usage.Held
		for _, j := range jobs.Jobs {
			held.Add(j.Held)
		}
		for _, o := range jobs.Others {
			held.Add(o.Held)
		}
		for kind, n := range sums {
			if n == 0 || held.Devices[kind] != n {
				t.Errorf("%s: %s: nodes use %d, jobs and others hold %d", name, kind, n, held.Devices[kind])
			}
		}
		if len(sums) != len(held.Devices) {
			t.Errorf("%s: got %v and %v", name, sums, held.Devices)
		}
	}
}

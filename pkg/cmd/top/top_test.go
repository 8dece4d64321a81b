package top

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/golden"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// run runs the command line in namespace team; width 0 is a pipe.
func run(t *testing.T, client func() (*kube.Client, error), width int, args ...string) (stdout, stderr string, failed *failure.Error) {
	t.Helper()
	f, streams := commandtest.Factory("team", clustertest.Now, width, client)
	cmd := NewCommand(f, nil)
	cmd.PersistentFlags().StringP("namespace", "n", "", "")
	return commandtest.Run(t.Context(), cmd, streams, args...)
}

// device gives a node other devices, of which some are unhealthy.
func device(n *corev1.Node, kind corev1.ResourceName, total, unhealthy int64) {
	n.Status.Capacity[kind] = *resource.NewQuantity(total, resource.DecimalSI)
	n.Status.Allocatable[kind] = *resource.NewQuantity(total-unhealthy, resource.DecimalSI)
}

// shop is a cluster with something of everything.
func shop() *clustertest.Cluster {
	c := clustertest.New()
	for i := range 5 {
		c.Node(fmt.Sprintf("gpu-%d", i+1), 8)
	}
	c.Node("cpu-1", 0)
	device(c.Node("mig-1", 0), "nvidia.com/mig-1g.5gb", 7, 0)
	device(c.S.Nodes[2], "nvidia.com/gpu", 8, 1)
	c.S.Nodes[3].Spec.Unschedulable = true
	c.S.Nodes[4].Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
	c.Add(clustertest.Gang{Name: "llama", Workers: 4, GPUs: 4, Nodes: []string{"gpu-1", "gpu-1", "gpu-2", "gpu-2"}})
	c.Add(clustertest.Gang{Name: "mistral", Workers: 3, GPUs: 2, Nodes: []string{"gpu-3", "gpu-3"}, Age: time.Hour})
	c.Add(clustertest.Gang{Name: "waits", Workers: 2, GPUs: 8, Age: 20 * time.Minute})
	c.Runs("bert", 1, "gpu-4").Serves("api", 1, "gpu-3")
	slice := clustertest.Gang{Name: "small", Workers: 3, Nodes: []string{"mig-1", "mig-1", "mig-1"}, Spec: func(s *corev1.PodSpec) {
		s.Containers[0].Resources.Requests["nvidia.com/mig-1g.5gb"] = resource.MustParse("1")
	}}
	c.Add(slice)
	c.ServesWith("hungry", 0, "70", "gpu-3")
	for _, p := range c.S.Pods {
		if p.Name == "llama-worker-3" {
			at := clustertest.Ago(-20 * time.Second)
			p.DeletionTimestamp = &at
		}
	}
	return c
}

// Frames of a screen of 80, 120 and 200 columns, and of a pipe.
func TestGolden(t *testing.T) {
	cluster := kubetest.Serve(t, shop().Done())
	for _, what := range []string{"node", "job -A", "node -o wide", "job -o wide -A", "job", "node --no-headers"} {
		for _, width := range []int{0, 80, 120, 200} {
			name := fmt.Sprintf("%s_%d", strings.ReplaceAll(strings.ReplaceAll(what, " ", "_"), "-", ""), width)
			t.Run(name, func(t *testing.T) {
				stdout, stderr, failed := run(t, cluster.Client, width, strings.Fields(what)...)
				if failed != nil || stderr != "" {
					t.Fatalf("got %v, %q", failed, stderr)
				}
				frame(t, name, stdout, width)
			})
		}
	}
}

func TestGoldenQueues(t *testing.T) {
	c := clustertest.New().Nodes(2, 8)
	c.Queue("research", "Open", map[string]any{"nvidia.com/gpu": "16", "cpu": "64"})
	c.ClusterQueue("kueue", "all", clustertest.Quota{Flavor: "a100", Resource: "nvidia.com/gpu", Nominal: "8"})
	c.Add(clustertest.Gang{Name: "a", Workers: 2, GPUs: 4, Volcano: "research", Nodes: []string{"n1", "n2"}})
	c.Add(clustertest.Gang{Name: "b", Workers: 2, GPUs: 8, Volcano: "research"})
	c.Add(clustertest.Gang{Name: "c", Workers: 1, GPUs: 2, Nodes: []string{"n1"}})
	file := filepath.Join(t.TempDir(), "seen.yaml")
	if err := c.Done().Save(file); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"queue"}, {"queue", "-o", "wide"}} {
		for _, width := range []int{0, 80, 120, 200} {
			name := fmt.Sprintf("%s_%d", strings.ReplaceAll(strings.Join(args, "_"), "-", ""), width)
			stdout, stderr, failed := run(t, nil, width, append(args, "--from", file)...)
			if failed != nil || stderr != "" {
				t.Fatalf("got %v, %q", failed, stderr)
			}
			frame(t, name, stdout, width)
		}
	}
}

// frame compares a frame, no line of which may be wider than the screen.
func frame(t *testing.T, name, got string, width int) {
	t.Helper()
	for line := range strings.SplitSeq(got, "\n") {
		if n := len([]rune(line)); width > 0 && n > width {
			t.Errorf("%s: a line of %d columns: %s", name, n, line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("%s: blanks at the end of %q", name, line)
		}
	}
	golden.Compare(t, filepath.Join("testdata", name+".golden"), got)
}

func TestValidate(t *testing.T) {
	for args, want := range map[string]string{
		"":                             "top needs node, job or queue",
		"pods":                         `top "pods": must be one of node, job, queue`,
		"node n1":                      `top node takes no arguments, got "n1"`,
		"node -n team":                 "--namespace has no effect: nodes have none",
		"job -A -n team":               "--all-namespaces and --namespace cannot be used together",
		"node -w --from x":             "--watch needs a cluster: a saved file does not change",
		"node -w -o json":              "--watch shows tables, not -o json",
		"node --interval 2s":           "--interval has no effect without --watch",
		"node -w --interval 1ms":       "--interval 1ms: must be 1s or more",
		"node -o name":                 `--output "name": must be one of json, yaml, wide, jsonpath=, jsonpath-as-json=, go-template=`,
		"node -o json --no-headers":    "--no-headers has no effect with -o json",
		"queue --from /does/not/exist": "open /does/not/exist: no such file or directory",
	} {
		stdout, _, failed := run(t, nil, 0, strings.Fields(args)...)
		if failed == nil || !strings.Contains(failed.Message, want) || stdout != "" || failed.Code != failure.CodeUsage && !strings.Contains(args, "exist") {
			t.Errorf("%s: got %+v, %q", args, failed, stdout)
		}
	}
	called := false
	cmd := NewCommand(&cmdutil.Factory{IO: &iostreams.IOStreams{}}, func(_ context.Context, o *Options) error {
		called = o.What == Job && o.AllNamespaces && o.Watch && o.Interval == 2*time.Second
		return nil
	})
	cmd.SetArgs([]string{"job", "-Aw", "--interval", "2s"})
	if err := cmd.Execute(); err != nil || !called {
		t.Errorf("got %v", err)
	}
}

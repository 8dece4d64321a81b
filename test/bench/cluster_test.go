package bench

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/sandboxtest"
)

// cluster returns the kubeconfig of an API server that holds a large cluster.
func cluster(b *testing.B) string {
	kept := os.Getenv("GANGCTL_BENCH_CLUSTER")
	if kept != "" {
		path := filepath.Join(kept, "kubeconfig")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	o := sandboxtest.Options{DataDir: kept, Args: []string{"--nodes=0", "--scheduler=none", "--operator=false"}}
	// A sandbox is small by default, and would collect garbage all the time.
	b.Setenv("GOMEMLIMIT", "off")
	b.Setenv("GOGC", "100")
	var c *sandboxtest.Cluster
	if kept == "" {
		c = sandboxtest.Start(b, o)
	} else {
		c = keep(b, o)
	}
	silence(b, c)
	start := time.Now()
	l := newLoader(b, c.Kubeconfig)
	n := l.fill(b, pods(b))
	b.Logf("%d objects in %s", n, time.Since(start).Round(time.Second))
	return c.Kubeconfig
}

// keep starts a sandbox that outlives the benchmark.
func keep(b *testing.B, o sandboxtest.Options) *sandboxtest.Cluster {
	c := &sandboxtest.Cluster{Binary: sandboxtest.Binary(b), DataDir: o.DataDir}
	if _, stderr, err := c.Run("up", o.Args...); err != nil {
		b.Fatalf("sandbox up: %v\n%s", err, stderr)
	}
	c.Kubeconfig = filepath.Join(c.DataDir, "kubeconfig")
	return c
}

// silence ends what would act on nodes and pods: there are no kubelets here.
func silence(b *testing.B, c *sandboxtest.Cluster) {
	acting := func() map[string]int {
		running := c.Components(b)
		maps.DeleteFunc(running, func(name string, _ int) bool { return name != "controller-manager" && name != "nodes" })
		return running
	}
	for name, pid := range acting() {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			b.Fatalf("end %s: %v", name, err)
		}
	}
	sandboxtest.Eventually(b, time.Minute, func() error {
		for name := range acting() {
			return errRuns(name)
		}
		return nil
	})
}

// errRuns says that a component has not ended yet.
type errRuns string

func (e errRuns) Error() string { return string(e) + " still runs" }

// fill creates everything, and returns how many objects that are.
func (l *loader) fill(b *testing.B, pods int) int {
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Minute)
	defer cancel()
	p := plan(pods, metav1.Now())
	for _, step := range []func(context.Context, *planned) error{l.namespaces, l.nodes, l.services, l.jobs, l.pods} {
		if err := step(ctx, p); err != nil {
			b.Fatal(err)
		}
	}
	return l.created()
}

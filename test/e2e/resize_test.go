package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/sandbox/crd"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
	"github.com/gangctl/gangctl/test/faultproxy"
)

// TestResize makes gangs that are too large for the cluster fit, of every kind, on the operator's own controllers and those of Kubernetes.
func TestResize(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "--nodes=2", "--cpu=16", "--gpus=8", "--run-for=0", "--serve=volcano")
	applier := &sandboxmanifest.Applier{Client: c.dynamic}
	must(t, applier.Apply(t.Context(), crd.VolcanoPodGroups()))
	must(t, applier.WaitEstablished(t.Context(), crd.VolcanoPodGroups()))
	for _, kind := range []string{"tf", "pytorch", "mpi", "job"} {
		for _, dialect := range []string{"scheduler-plugins", "volcano", "labels"} {
			t.Run(kind+", "+dialect, func(t *testing.T) { c.resizes(t, kind, dialect) })
		}
	}
	t.Run("a Job whose pods are fixed is made again", c.recreates)
	t.Run("a Job that runs in part", c.runsInPart)
	t.Run("killed after every write that makes a Job again", c.completesRecreation)
	t.Run("two runs at a time", c.resizedTwice)
}

// wide submits a gang of four members with all GPUs of a node each, where there are two nodes, and waits until its pods are there.
func (c *cluster) wide(t *testing.T, kind, name string, more ...string) {
	t.Helper()
	c.submit(t, append(append([]string{kind, name, "--image", "x", "--workers", "4", "--gpus", "8", "--cpu", "1"}, more...), "--", "true")...)
	eventually(t, "its pods are there", func(ctx context.Context) bool {
		pods, err := c.client.CoreV1().Pods(space).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) >= 4
	})
}

// starts expects a job to run with two members that train, and deletes it.
func (c *cluster) starts(t *testing.T, name string) {
	t.Helper()
	if _, stderr, code := gangctlAt(t, c.Kubeconfig, "wait", name, "--for", "running", "--timeout", "60s"); code != 0 {
		t.Errorf("it does not run: %s", stderr)
	}
	stdout, _, _ := gangctlAt(t, c.Kubeconfig, "get", name, "-o", "yaml")
	if strings.Contains(stdout, "gangctl.dev/resize") {
		t.Errorf("it keeps the change:\n%s", stdout)
	}
	gangctlAt(t, c.Kubeconfig, "delete", name)
}

func (c *cluster) resizes(t *testing.T, kind, dialect string) {
	name := "sized-" + kind + "-" + dialect
	c.wide(t, kind, name, "--dialect", dialect)
	if stdout, stderr, code := gangctlAt(t, c.Kubeconfig, "resize", name, "--workers", "3"); code != 1 || stdout != "" || !strings.Contains(stderr, "it would not start now") {
		t.Errorf("what does not fit: exit code %d, %q", code, stderr)
	}
	if stdout, _, code := gangctlAt(t, c.Kubeconfig, "resize", name, "--workers", "2", "--dry-run=fit"); code != 0 || !strings.HasPrefix(stdout, "FITS_NOW") {
		t.Errorf("--dry-run=fit: exit code %d", code)
	}
	if stdout, _, code := gangctlAt(t, c.Kubeconfig, "resize", name, "--workers", "2"); code != 0 || !strings.HasSuffix(stdout, "/"+name+" resized\n") {
		t.Errorf("exit code %d, %q", code, stdout)
	}
	c.starts(t, name)
}

func (c *cluster) recreates(t *testing.T) {
	c.wide(t, "job", "fixed", "--framework", "torch")
	if _, stderr, code := gangctlAt(t, c.Kubeconfig, "resize", "fixed", "--workers", "2"); code != 1 || !strings.Contains(stderr, "with --recreate") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	if stdout, _, code := gangctlAt(t, c.Kubeconfig, "resize", "fixed", "--workers", "2", "--recreate"); code != 0 || stdout != "job.batch/fixed recreated\n" {
		t.Errorf("exit code %d, %q", code, stdout)
	}
	job, err := c.client.BatchV1().Jobs(space).Get(t.Context(), "fixed", metav1.GetOptions{})
	must(t, err)
	for _, e := range job.Spec.Template.Spec.Containers[0].Env {
		if (e.Name == "WORLD_SIZE" || e.Name == "PET_NNODES") && e.Value != "2" {
			t.Errorf("%s is %s", e.Name, e.Value)
		}
	}
	if service, err := c.client.CoreV1().Services(space).Get(t.Context(), "fixed", metav1.GetOptions{}); err != nil || service.OwnerReferences[0].UID != job.UID {
		t.Errorf("its Service: %v", err)
	}
	c.starts(t, "fixed")
}

// through returns a command line that runs against the cluster through a proxy.
func (c *cluster) through(t *testing.T) (*faultproxy.Proxy, func(args ...string) *exec.Cmd) {
	t.Helper()
	proxy, err := faultproxy.Start(c.Config)
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Close()) })
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, proxy.WriteKubeconfig(c.Kubeconfig, kubeconfig))
	return proxy, func(args ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), programs.gangctl, append([]string{"--kubeconfig", kubeconfig}, args...)...)
	}
}

// storing selects requests that change what is stored.
func storing(r *http.Request) bool { return faultproxy.Writes(r) && !r.URL.Query().Has("dryRun") }

// runsInPart: of three members two have room, which are enough. The group alone says so, and every command shows it.
func (c *cluster) runsInPart(t *testing.T) {
	c.submit(t, "job", "part", "--image", "x", "--workers", "3", "--gpus", "8", "--cpu", "1", "--min-available", "2", "--", "true")
	eventually(t, "two members run", func(context.Context) bool {
		stdout, _, _ := gangctlAt(t, c.Kubeconfig, "get", "part")
		return strings.Contains(stdout, "Ready:     2/3\n")
	})
	stdout, stderr, _ := gangctlAt(t, c.Kubeconfig, "get", "part")
	matches(t, stdout, `^State: +Running$`)
	matches(t, stdout, `^Gang: +2 of 3 members start together`)
	if stderr != "" {
		t.Errorf("get: %s", stderr)
	}
	stdout, _, _ = gangctlAt(t, c.Kubeconfig, "list", "-o", "wide")
	matches(t, stdout, `^part +Job +Running +2/3 .* 2/3 `)
	stdout, _, _ = gangctlAt(t, c.Kubeconfig, "describe", "part")
	matches(t, stdout, `^State: +Running$`, `^Gang: +2 of 3 members start together`)
	gangctlAt(t, c.Kubeconfig, "delete", "part")
}

// completesRecreation kills the program as soon as the API server has stored one of its writes. Run again, it comes to the same end.
func (c *cluster) completesRecreation(t *testing.T) {
	for n := range 5 {
		name := fmt.Sprintf("killed-%d", n)
		c.wide(t, "job", name, "--framework", "torch")
		in := cell{cluster: c, t: t, space: space}
		if !in.killedAfter(n+1, "resize", name, "--workers", "2", "--recreate") {
			t.Errorf("%s: it was not killed", name)
		}
		if stdout, stderr, code := gangctlAt(t, c.Kubeconfig, "resize", name, "--workers", "2", "--recreate", "--yes"); code != 0 {
			t.Errorf("%s, run again: exit code %d, %s%s", name, code, stdout, stderr)
		}
		c.starts(t, name)
	}
}

// resizedTwice holds a run before each of its writes while another one runs: one of them does what it reports, and the other is refused.
func (c *cluster) resizedTwice(t *testing.T) {
	for write := 1; write <= 3; write++ {
		for i, second := range [][]string{{"--workers", "1"}, {"--abort", "--yes"}} {
			name := fmt.Sprintf("twice-%d-%d", write, i)
			in := cell{cluster: c, t: t, kind: "tf", space: space}
			c.wide(t, "tf", name, "--dialect", "scheduler-plugins")
			proxy, command := c.through(t)
			seen, taken := 0, false
			var reported string
			proxy.Inject(1, func(r *http.Request) bool {
				if storing(r) {
					seen++
				}
				return seen == write
			}, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
				stdout, stderr, code := gangctlAt(t, c.Kubeconfig, append([]string{"resize", name}, second...)...)
				taken, reported = code == 0, stdout+stderr
				forward.ServeHTTP(w, r)
			})
			out, err := command("resize", name, "--workers", "2").CombinedOutput()
			if (err == nil) == taken || !strings.Contains(string(out)+reported, "another ") && !strings.Contains(reported, "no change of it has begun") {
				t.Errorf("%s: %v\n%s\nand the other: %s", name, err, out, reported)
			}
			workers, _, err := unstructured.NestedInt64(in.stored(name).Object, "spec", "tfReplicaSpecs", "Worker", "replicas")
			must(t, err)
			group, err := c.dynamic.Resource(podGroups("scheduling.x-k8s.io", "v1alpha1")).Namespace(space).Get(t.Context(), name, metav1.GetOptions{})
			must(t, err)
			if least, _, err := unstructured.NestedInt64(group.Object, "spec", "minMember"); err != nil || least != workers {
				t.Errorf("%s: %d workers, of which %d must start together: %v", name, workers, least, err)
			}
			if workers < 4 {
				c.starts(t, name)
			} else {
				gangctlAt(t, c.Kubeconfig, "delete", name)
			}
			in.noPods()
		}
	}
}

// killing forwards a request, and then kills a program before it gets the response.
func killing(forward http.Handler, cmd *exec.Cmd) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forward.ServeHTTP(w, r)
		_ = cmd.Process.Kill() // it may have ended by itself, which the test sees
	})
}

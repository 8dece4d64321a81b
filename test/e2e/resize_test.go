package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	for i, kind := range []string{"tf", "pytorch", "mpi", "job"} {
		for j, dialect := range []string{"scheduler-plugins", "volcano", "labels"} {
			if !long() && i%3 != j {
				continue
			}
			t.Run("advice, "+kind+", "+dialect, func(t *testing.T) { c.appliesAdvice(t, kind, dialect) })
		}
	}
	t.Run("a Job whose pods are fixed is made again", c.recreates)
	t.Run("killed after every write", c.completesResize)
	t.Run("another client changes the job", c.refusesResize)
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

// stuck are gangs that have no place on two nodes with 8 GPUs each, and the kinds of advice of which one line each starts them.
var stuck = map[string]struct {
	flags []string
	kinds []string
}{
	"too-big":   {[]string{"--workers", "4", "--gpus", "8"}, []string{"trim", "fewer"}},
	"in-pieces": {[]string{"--workers", "3", "--gpus", "5"}, []string{"reshape", "trim", "fewer"}},
	"elsewhere": {[]string{"--workers", "2", "--gpus", "8", "--node-selector", "pool=none"}, []string{"relax"}},
}

// advised submits a gang that is stuck, and returns the advice that is one line of resize.
func (c *cluster) advised(t *testing.T, kind, name, dialect string, flags []string) []resizing {
	t.Helper()
	c.submit(t, slices.Concat([]string{kind, name, "--image", "x", "--cpu", "1", "--dialect", dialect}, flags, []string{"--", "true"})...)
	var advice []resizing
	eventually(t, "the scheduler has tried it, and there is advice", func(context.Context) bool {
		stdout, _, _ := gangctlAt(t, c.Kubeconfig, "why-pending", name, "-o", "json")
		var a struct {
			Scheduler struct{ Message string }
			Unblock   []resizing
		}
		must(t, json.Unmarshal([]byte(stdout), &a))
		advice = slices.DeleteFunc(a.Unblock, func(x resizing) bool { return x.Resize == "" || !x.Verified })
		return a.Scheduler.Message != "" && len(advice) > 0
	})
	return advice
}

// resizing is a piece of advice in JSON.
type resizing struct {
	Number       int
	Kind, Resize string
	Verified     bool
}

// appliesAdvice does every piece of advice that is one line, each to a job of its own.
func (c *cluster) appliesAdvice(t *testing.T, kind, dialect string) {
	for reason, gang := range stuck {
		name := kind + "-" + reason
		advice := c.advised(t, kind, name, dialect, gang.flags)
		for _, want := range gang.kinds {
			single := kind == "job" && want == "reshape" // how many pods a Job has is how many parts its work has
			if !single && !slices.ContainsFunc(advice, func(x resizing) bool { return x.Kind == want }) {
				t.Errorf("%s: no advice to %s as a line of resize: %+v", reason, want, advice)
			}
		}
		for i, x := range advice {
			if i > 0 {
				if again := c.advised(t, kind, name, dialect, gang.flags); !slices.Contains(again, x) {
					t.Errorf("%s: the advice was %+v, and then %+v", reason, advice, again)
				}
			}
			stdout, stderr, code := gangctlAt(t, c.Kubeconfig, "why-pending", name, "--apply", x.Resize, "--yes")
			if code != 0 || !strings.HasSuffix(stdout, "/"+name+" resized\n") {
				t.Errorf("%s: exit code %d, %q, %s", x.Resize, code, stdout, stderr)
			}
			c.starts(t, name)
			eventually(t, "it is gone", func(ctx context.Context) bool {
				pods, err := c.client.CoreV1().Pods(space).List(ctx, metav1.ListOptions{})
				return err == nil && len(pods.Items) == 0
			})
		}
	}
	name := "unnumbered"
	c.wide(t, kind, name, "--dialect", dialect)
	if _, stderr, code := gangctlAt(t, c.Kubeconfig, "why-pending", name, "--apply", "99"); code != 1 || !strings.Contains(stderr, "--apply 99") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	gangctlAt(t, c.Kubeconfig, "delete", name)
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

// completesResize kills the program as soon as the API server has stored one of its writes. Run again, it comes to the same end.
func (c *cluster) completesResize(t *testing.T) {
	for _, tt := range []struct {
		kind, flags string
		writes      int
	}{{"tf", "", 3}, {"job", "--recreate", 5}} {
		for n := range tt.writes {
			name := fmt.Sprintf("killed-%s-%d", tt.kind, n)
			more := []string{}
			if tt.kind == "job" {
				more = []string{"--framework", "torch"}
			}
			c.wide(t, tt.kind, name, more...)
			proxy, command := c.through(t)
			line := append([]string{"resize", name, "--workers", "2"}, strings.Fields(tt.flags)...)
			cmd := command(line...)
			seen := 0
			proxy.Inject(1, func(r *http.Request) bool {
				if !storing(r) {
					return false
				}
				seen++
				return seen == n+1
			}, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
				faultproxy.Lose()(w, r, killing(forward, cmd))
			})
			if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.Exited() {
				t.Errorf("%s: it was not killed: %v\n%s", name, err, out)
			}
			again := line
			if tt.kind == "job" {
				again = append(again, "--yes")
			}
			if stdout, stderr, code := gangctlAt(t, c.Kubeconfig, again...); code != 0 {
				t.Errorf("%s, run again: exit code %d, %s%s", name, code, stdout, stderr)
			}
			c.starts(t, name)
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

// refusesResize has another client change the job after it was read: nothing is written over that.
func (c *cluster) refusesResize(t *testing.T) {
	c.wide(t, "tf", "shared")
	proxy, command := c.through(t)
	proxy.Inject(1, storing, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		_, err := c.dynamic.Resource(tfjobs).Namespace(space).Patch(r.Context(), "shared", types.MergePatchType, []byte(`{"spec":{"runPolicy":{"backoffLimit":7}}}`), metav1.PatchOptions{})
		if err != nil {
			t.Error(err)
		}
		forward.ServeHTTP(w, r)
	})
	out, err := command("resize", "shared", "--workers", "2").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another client has changed it meanwhile") || !strings.Contains(string(out), "backoffLimit: 7") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, _, code := gangctlAt(t, c.Kubeconfig, "resize", "shared", "--workers", "2"); code != 0 {
		t.Errorf("on top of that: exit code %d", code)
	}
	c.starts(t, "shared")
}

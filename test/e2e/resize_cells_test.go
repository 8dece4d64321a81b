package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/sandbox/crd"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
	"github.com/gangctl/gangctl/test/faultproxy"
)

// TestResizeEverywhere follows advice, is killed after every write, and meets another client, for jobs of every kind whose gangs are declared in
// every way. The cells of that table share one cluster, and run at a time: each has a namespace, and two nodes that others do not use. Of the
// kinds of advice each cell follows one, such that every kind of job and every dialect meets all of them; with GANGCTL_LONG it follows all.
func TestResizeEverywhere(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "--nodes=0", "--cpu=16", "--gpus=8", "--run-for=0", "--native-gangs", "--serve=volcano")
	applier := &sandboxmanifest.Applier{Client: c.dynamic}
	must(t, applier.Apply(t.Context(), crd.VolcanoPodGroups()))
	must(t, applier.WaitEstablished(t.Context(), crd.VolcanoPodGroups()))
	for i, kind := range []string{"tf", "pytorch", "mpi", "job"} {
		for j, dialect := range []string{"scheduler-plugins", "native", "volcano", "labels"} {
			t.Run(kind+", "+dialect, func(t *testing.T) {
				t.Parallel()
				cell := c.newCell(t, kind, dialect)
				for n, s := range stuck() {
					if long() || n == (i+j)%len(stuck()) {
						t.Run("advice to "+s.advice, func(t *testing.T) { cell.in(t).follows(s) })
					}
				}
				if long() || i == j {
					t.Run("killed after every write", func(t *testing.T) { cell.in(t).completes() })
					t.Run("another client changes the job", func(t *testing.T) { cell.in(t).refuses() })
				}
			})
		}
	}
}

// cell is where jobs of one kind run whose gangs are declared in one way.
type cell struct {
	*cluster
	t             *testing.T
	kind, dialect string
	// space is its namespace, and the label cell of its nodes.
	space string
}

// newCell makes the namespace and the nodes of a cell.
func (c *cluster) newCell(t *testing.T, kind, dialect string) cell {
	t.Helper()
	name := kind + "-" + dialect
	_, err := c.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
	for i := range 2 {
		if _, stderr, err := c.Run("node", "add", fmt.Sprintf("%s-%d", name, i), "--label", "cell="+name, "--label", "pool=gpu"); err != nil {
			t.Fatalf("node add: %v\n%s", err, stderr)
		}
	}
	return cell{c, t, kind, dialect, name}
}

// in is the cell in another test.
func (c cell) in(t *testing.T) cell {
	c.t = t
	return c
}

// gangctl types a command in the namespace of the cell.
func (c cell) gangctl(args ...string) (stdout, stderr string, code int) {
	c.t.Helper()
	return gangctlAt(c.t, c.Kubeconfig, append([]string{"-n", c.space}, args...)...)
}

// submits makes a job for the nodes of the cell.
func (c cell) submits(name string, flags ...string) {
	c.t.Helper()
	line := []string{"submit", c.kind, name, "--image", "x", "--cpu", "1", "--dialect", c.dialect, "--scheduler", "gang-scheduler", "--node-selector", "cell=" + c.space}
	if _, stderr, code := c.gangctl(slices.Concat(line, flags, []string{"--", "true"})...); code != 0 {
		c.t.Fatalf("exit code %d: %s", code, stderr)
	}
}

// pods waits until the job that the cell has has so many pods, at least.
func (c cell) pods(least int) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("%d pods are there", least), func(ctx context.Context) bool {
		pods, err := c.client.CoreV1().Pods(c.space).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) >= least
	})
}

// runs expects a job to run without a change that is half done, and deletes it.
func (c cell) runs(name string) {
	c.t.Helper()
	if _, stderr, code := c.gangctl("wait", name, "--for", "running", "--timeout", "60s"); code != 0 {
		c.t.Errorf("%s does not run: %s", name, stderr)
	}
	if stdout, _, _ := c.gangctl("get", name, "-o", "yaml"); strings.Contains(stdout, "gangctl.dev/resize") {
		c.t.Errorf("%s keeps the change:\n%s", name, stdout)
	}
	c.removes(name)
}

// removes deletes a job, and waits for its pods to be gone.
func (c cell) removes(name string) {
	c.t.Helper()
	if _, stderr, code := c.gangctl("delete", name); code != 0 {
		c.t.Errorf("delete %s: %s", name, stderr)
	}
	c.noPods()
}

// noPods waits for the pods of the cell to be gone.
func (c cell) noPods() {
	c.t.Helper()
	eventually(c.t, "its pods are gone", func(ctx context.Context) bool {
		pods, err := c.client.CoreV1().Pods(c.space).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0
	})
}

// stuckGang is a gang that has no place on two nodes with 8 GPUs each, and the kind of an action that starts it.
type stuckGang struct {
	advice string
	flags  []string
}

func stuck() []stuckGang {
	return []stuckGang{
		{"trim", []string{"--workers", "4", "--gpus", "8"}},
		{"fewer", []string{"--workers", "4", "--gpus", "8"}},
		{"reshape", []string{"--workers", "3", "--gpus", "5"}},
		{"relax", []string{"--workers", "2", "--gpus", "8", "--node-selector", "pool=none"}},
	}
}

// follows does what is advised, by its number: the gang starts.
func (c cell) follows(s stuckGang) {
	advice := s.advice
	if c.kind == "job" && advice == "reshape" {
		advice = "fewer" // how many pods a Job has is how many parts its work has
	}
	c.submits(s.advice, s.flags...)
	var stdout, stderr string
	var code int
	eventually(c.t, "the advice to "+advice+" is a line of resize, and done", func(context.Context) bool {
		number := c.advised(s.advice, advice)
		if number == 0 {
			return false
		}
		stdout, stderr, code = c.gangctl("why-pending", s.advice, "--apply", fmt.Sprint(number), "--yes")
		return !strings.HasPrefix(stderr, fmt.Sprintf("error: --apply %d: the answer for ", number)) // the scheduler has published another answer since, with less advice
	})
	if code != 0 || !strings.HasSuffix(stdout, "/"+s.advice+" resized\n") {
		c.t.Errorf("exit code %d, %q, %s", code, stdout, stderr)
	}
	c.runs(s.advice)
	if _, stderr, code := c.gangctl("why-pending", s.advice, "--apply", "1", "--yes"); code != 1 || !strings.HasPrefix(stderr, "error: ") {
		c.t.Errorf("of a job that is gone: exit code %d, %s", code, stderr)
	}
}

// advised is the number of the advice of a kind to a job that is a line of resize; 0 without.
func (c cell) advised(name, kind string) (number int) {
	c.t.Helper()
	stdout, _, _ := c.gangctl("why-pending", name, "-o", "json")
	var a struct {
		Scheduler struct{ Message string }
		Unblock   []struct {
			Number       int
			Kind, Resize string
			Verified     bool
		}
	}
	must(c.t, json.Unmarshal([]byte(stdout), &a))
	for _, x := range a.Unblock {
		if a.Scheduler.Message != "" && x.Kind == kind && x.Resize != "" && x.Verified {
			number = x.Number
		}
	}
	return number
}

// completes kills the program as soon as the API server has stored one of its writes, each in turn, until there are no more of them. Run again it
// comes to the same end; every other time the change is taken back instead, and the job is what it was.
func (c cell) completes() {
	for n := 0; ; n++ {
		name := fmt.Sprintf("killed-%d", n)
		c.submits(name, "--workers", "4", "--gpus", "8")
		c.pods(4)
		before := c.stored(name)
		if !c.killedAfter(n+1, "resize", name, "--workers", "2") {
			c.runs(name)
			if n < 2 {
				c.t.Errorf("it made %d writes: it has to suspend the job, and to change it", n)
			}
			return
		}
		if n%2 == 0 {
			if stdout, stderr, code := c.gangctl("resize", name, "--workers", "2", "--yes"); code != 0 {
				c.t.Errorf("run again after %d writes: exit code %d, %s%s", n+1, code, stdout, stderr)
			}
			c.runs(name)
			continue
		}
		c.takesBack(name, n+1, before)
	}
}

// takesBack expects a change that was interrupted after some writes to be undone, unless it was complete.
func (c cell) takesBack(name string, writes int, before *unstructured.Unstructured) {
	c.t.Helper()
	half := c.stored(name).GetAnnotations()["gangctl.dev/resize"] != ""
	stdout, stderr, code := c.gangctl("resize", name, "--abort", "--yes")
	switch {
	case half && code != 0:
		c.t.Errorf("taken back after %d writes: exit code %d, %s%s", writes, code, stdout, stderr)
	case !half && code == 0:
		c.t.Errorf("after %d writes all was done, and was taken back: %s", writes, stdout)
	case half:
		if now := c.stored(name); fmt.Sprint(now.Object["spec"]) != fmt.Sprint(before.Object["spec"]) || now.GetAnnotations()["gangctl.dev/resize"] != "" {
			c.t.Errorf("taken back after %d writes, it was\n%v\nand is\n%v", writes, before.Object["spec"], now.Object)
		}
		c.pods(4)
		c.removes(name)
		return
	}
	c.runs(name)
}

// killedAfter runs a command that is killed when the API server has stored so many of its writes; false if it ended by itself, well.
func (c cell) killedAfter(writes int, args ...string) bool {
	c.t.Helper()
	proxy, command := c.through(c.t)
	cmd := command(append([]string{"-n", c.space}, args...)...)
	seen := 0
	proxy.Inject(1, func(r *http.Request) bool {
		if !storing(r) {
			return false
		}
		seen++
		return seen == writes
	}, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		faultproxy.Lose()(w, r, killing(forward, cmd))
	})
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.Exited() {
		c.t.Errorf("%v: %v\n%s", args, err, out)
	}
	return !cmd.ProcessState.Exited()
}

// resource is the kind of job as the API has it.
func (c cell) resource() schema.GroupVersionResource {
	return submittedKinds()[slices.IndexFunc(submittedKinds(), func(k submitted) bool { return k.subcommand == c.kind })].resource
}

// stored is a job of the cell.
func (c cell) stored(name string) *unstructured.Unstructured {
	c.t.Helper()
	job, err := c.dynamic.Resource(c.resource()).Namespace(c.space).Get(c.t.Context(), name, metav1.GetOptions{})
	must(c.t, err)
	return job
}

// refuses has another client change the job after it was read: nothing is written over that.
func (c cell) refuses() {
	const name = "shared"
	c.submits(name, "--workers", "4", "--gpus", "8")
	c.pods(4)
	change := `{"spec":{"runPolicy":{"backoffLimit":7}}}`
	if c.kind == "job" {
		change = `{"spec":{"backoffLimit":7}}`
	}
	proxy, command := c.through(c.t)
	proxy.Inject(1, storing, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if _, err := c.dynamic.Resource(c.resource()).Namespace(c.space).Patch(r.Context(), name, types.MergePatchType, []byte(change), metav1.PatchOptions{}); err != nil {
			c.t.Error(err)
		}
		forward.ServeHTTP(w, r)
	})
	out, err := command("-n", c.space, "resize", name, "--workers", "2").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another client has changed it meanwhile") || !strings.Contains(string(out), "backoffLimit: 7") {
		c.t.Errorf("%v\n%s", err, out)
	}
	if _, stderr, code := c.gangctl("resize", name, "--workers", "2"); code != 0 {
		c.t.Errorf("on top of that: exit code %d, %s", code, stderr)
	}
	c.runs(name)
}

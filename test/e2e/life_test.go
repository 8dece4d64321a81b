package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/gangctl/gangctl/internal/prompttest"
	"github.com/gangctl/gangctl/sandbox/demo"
	"github.com/gangctl/gangctl/test/faultproxy"
)

// TestLife is the life of jobs, from the dry run to their end.
func TestLife(t *testing.T) {
	t.Parallel()
	stage := newStage(t, gangScheduler("scheduler-plugins"))
	must(t, stage.AddNodes(t.Context(), 2, 8))
	client, err := dynamic.NewForConfig(stage.Config())
	must(t, err)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *demo.Stage, dynamic.Interface)
	}{
		{"a submission is few requests", fewRequests},
		{"suspend and resume keep the gang whole", suspendAndResume},
		{"describe knows when, and whether it was changed", describes},
		{"resubmit repeats the command, and the jobs of others", resubmits},
		{"delete tries every name", deletesEach},
		{"Ctrl-C says what keeps running", interrupted},
		{"follow shows what members print, to the end", follows},
		{"fit predicts the start", fitPredictsStart},
		{"the wizard makes a job", wizard},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, stage, client) })
	}
}

// gone waits until nothing of the jobs is left, so that the next test has the nodes for itself.
func gone(t *testing.T, stage *demo.Stage, names ...string) {
	t.Helper()
	if _, stderr, code := gangctl(t, stage, append([]string{"delete"}, names...)...); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func fitPredictsStart(t *testing.T, stage *demo.Stage, _ dynamic.Interface) {
	eventually(t, "the scheduler is seen", func(context.Context) bool {
		_, _, code := gangctl(t, stage, "fit", "--workers", "2", "--gpus", "8")
		return code == 0
	})
	for workers, want := range map[string]int{"2": 0, "3": 6} {
		stdout, _, code := gangctl(t, stage, "fit", "--workers", workers, "--gpus", "8")
		if code != want || (want == 0) != strings.HasPrefix(stdout, "FITS_NOW") {
			t.Errorf("%s workers: exit code %d\n%s", workers, code, stdout)
		}
	}
	stdout, _, code := gangctl(t, stage, "fit", "--what-fits", "-o", "json")
	var table struct {
		Sizes []struct{ GPUs, Workers int }
	}
	if err := json.Unmarshal([]byte(stdout), &table); err != nil || code != 0 {
		t.Fatalf("%v, exit code %d", err, code)
	}
	got := map[int]int{}
	for _, s := range table.Sizes {
		got[s.GPUs] = s.Workers
	}
	if got[8] != 2 || got[4] != 4 || got[2] != 8 || got[1] != 16 {
		t.Errorf("got %v", got)
	}
	// What is predicted to fit starts.
	must(t, stage.Submit(t.Context(), "largest", "--workers", "8", "--gpus", "2", "--wait", "--timeout", "60s"))
	gone(t, stage, "largest")
}

// maxRequests is how many requests a submission may be.
const maxRequests = 8

func fewRequests(t *testing.T, stage *demo.Stage, _ dynamic.Interface) {
	proxy, err := faultproxy.Start(stage.Config())
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Close()) })
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, proxy.WriteKubeconfig(stage.Kubeconfig(), kubeconfig))
	if _, _, code := gangctlAt(t, kubeconfig, "submit", "tf", "counted", "--image", "x", "--workers", "2", "--gpus", "1", "--", "true"); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	requests := proxy.Requests()
	if len(requests) == 0 || len(requests) > maxRequests {
		t.Errorf("%d requests: %v", len(requests), requests)
	}
	t.Logf("%d requests: %v", len(requests), requests)
	gone(t, stage, "counted")
}

func suspendAndResume(t *testing.T, stage *demo.Stage, _ dynamic.Interface) {
	must(t, stage.Submit(t.Context(), "pause", "--workers", "4", "--gpus", "4", "--wait"))
	if stdout, _, code := gangctl(t, stage, "suspend", "pause"); code != 0 || stdout != "tfjob.kubeflow.org/pause suspended\n" {
		t.Errorf("exit code %d, %q", code, stdout)
	}
	eventually(t, "the pods are gone", func(ctx context.Context) bool {
		pods, err := stage.Client().CoreV1().Pods(demo.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "training.kubeflow.org/job-name=pause"})
		return err == nil && len(pods.Items) == 0
	})
	if stdout, _, code := gangctl(t, stage, "resume", "pause"); code != 0 || stdout != "tfjob.kubeflow.org/pause resumed\n" {
		t.Errorf("exit code %d, %q", code, stdout)
	}
	if _, stderr, code := gangctl(t, stage, "wait", "pause", "--for", "running", "--timeout", "60s"); code != 0 || !strings.Contains(stderr, "4/4 running") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	gone(t, stage, "pause")
}

func describes(t *testing.T, stage *demo.Stage, client dynamic.Interface) {
	must(t, stage.Submit(t.Context(), "told", "--workers", "2", "--gpus", "1", "--wait"))
	type described struct {
		Timeline []struct {
			Step string
			At   *time.Time
		}
		Command string
		Changed *bool
		Pods    []struct{ State string }
		Events  []struct{ Object string }
	}
	look := func() (d described) {
		stdout, _, code := gangctl(t, stage, "describe", "told", "-o", "json")
		if err := json.Unmarshal([]byte(stdout), &d); err != nil || code != 0 {
			t.Fatalf("%v, exit code %d", err, code)
		}
		return d
	}
	d := look()
	if len(d.Timeline) != 5 || len(d.Pods) != 2 || len(d.Events) == 0 || !strings.HasPrefix(d.Command, "gangctl submit tf told") || d.Changed == nil || *d.Changed {
		t.Fatalf("got %+v", d)
	}
	for i, step := range d.Timeline[:4] {
		if step.At == nil || i > 0 && step.At.Before(*d.Timeline[i-1].At) {
			t.Errorf("%s is at %v", step.Step, step.At)
		}
	}
	_, err := client.Resource(tfjobs).Namespace(demo.Namespace).Patch(t.Context(), "told", types.MergePatchType, []byte(`{"spec":{"runPolicy":{"backoffLimit":7}}}`), metav1.PatchOptions{})
	must(t, err)
	if d := look(); d.Changed == nil || !*d.Changed {
		t.Error("it was changed, and describe does not know")
	}
	gone(t, stage, "told")
}

func resubmits(t *testing.T, stage *demo.Stage, client dynamic.Interface) {
	args := []string{"python", "a b", "$HOME", `"q"`, "--name"}
	if _, _, code := gangctl(t, stage, append([]string{"submit", "tf", "again", "--image", "x", "--workers", "2", "--gpus", "1", "--wait", "--"}, args...)...); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if _, stderr, code := gangctl(t, stage, "resubmit", "again"); code != 1 || !strings.Contains(stderr, "--name again-2") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if _, _, code := gangctl(t, stage, "resubmit", "again", "--name", "again-2", "--wait"); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	// Another user's: without the command line it is the object that is repeated, as a gang of its own.
	_, err := client.Resource(tfjobs).Namespace(demo.Namespace).Patch(t.Context(), "again", types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`), metav1.PatchOptions{})
	must(t, err)
	if _, _, code := gangctl(t, stage, "resubmit", "again", "--name", "again-3", "--set", "spec.tfReplicaSpecs.Worker.template.spec.containers[0].image=y", "--wait"); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for name, image := range map[string]string{"again-2": "x", "again-3": "y"} {
		pods, err := stage.Client().CoreV1().Pods(demo.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "training.kubeflow.org/job-name=" + name})
		must(t, err)
		if len(pods.Items) != 2 {
			t.Errorf("%s has %d pods", name, len(pods.Items))
		}
		for _, pod := range pods.Items {
			if c := pod.Spec.Containers[0]; !slices.Equal(c.Command, args) || c.Image != image || pod.Labels["scheduling.x-k8s.io/pod-group"] != name {
				t.Errorf("%s runs %q of %s in the gang %s", pod.Name, c.Command, c.Image, pod.Labels["scheduling.x-k8s.io/pod-group"])
			}
		}
	}
	gone(t, stage, "again", "again-2", "again-3")
}

func deletesEach(t *testing.T, stage *demo.Stage, client dynamic.Interface) {
	for _, name := range []string{"b", "c"} {
		must(t, stage.Submit(t.Context(), name, "--workers", "1"))
	}
	stdout, stderr, code := gangctl(t, stage, "delete", "a", "b", "c")
	if code != 1 || stdout != "tfjob.kubeflow.org/b deleted\ntfjob.kubeflow.org/c deleted\n" || !strings.Contains(stderr, "error: get job "+demo.Namespace+"/a: not found\n") {
		t.Errorf("exit code %d, %q, %s", code, stdout, stderr)
	}
	for _, name := range []string{"b", "c"} {
		if _, err := client.Resource(tfjobs).Namespace(demo.Namespace).Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// interrupted stops a submission that waits for a gang that has no room, and the job stays.
func interrupted(t *testing.T, stage *demo.Stage, client dynamic.Interface) {
	cmd := exec.CommandContext(t.Context(), programs.gangctl, "--kubeconfig", stage.Kubeconfig(), "submit", "tf", "big", "--image", "x", "--workers", "9", "--gpus", "8", "--wait")
	errOut, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	var output []string
	for lines := bufio.NewScanner(errOut); lines.Scan(); {
		output = append(output, lines.Text())
		if strings.HasPrefix(lines.Text(), "big: Pending") {
			must(t, cmd.Process.Signal(syscall.SIGINT))
		}
	}
	_ = cmd.Wait() // the exit code shows it
	text := strings.Join(output, "\n")
	if cmd.ProcessState.ExitCode() != 130 || !strings.Contains(text, "error: interrupted; TFJob "+demo.Namespace+"/big keeps going: Pending") || !strings.Contains(text, "gangctl --kubeconfig "+stage.Kubeconfig()+" delete tfjob/big -n "+demo.Namespace) {
		t.Errorf("exit code %d\n%s", cmd.ProcessState.ExitCode(), text)
	}
	_, err = client.Resource(tfjobs).Namespace(demo.Namespace).Get(t.Context(), "big", metav1.GetOptions{})
	must(t, err)
	gone(t, stage, "big")
}

// wizard answers the prompts of `gangctl submit tf` on a terminal.
func wizard(t *testing.T, stage *demo.Stage, _ dynamic.Interface) {
	person, program := prompttest.OpenPTY(t)
	screen := prompttest.Play(person,
		prompttest.Reply{Prompt: "Name of the job:", Answer: "asked\r"},
		prompttest.Reply{Prompt: "Start from a template:", Answer: "\r"},
		prompttest.Reply{Prompt: "Number of workers:", Answer: "\r"},
		prompttest.Reply{Prompt: "Number of parameter servers:", Answer: "\r"},
		prompttest.Reply{Prompt: "GPUs of each worker:", Answer: "\r"},
		prompttest.Reply{Prompt: "Container image:", Answer: "x\r"},
		prompttest.Reply{Prompt: "Command (empty", Answer: "true\r"},
		prompttest.Reply{Prompt: "What now?", Answer: "\r"})
	cmd := exec.CommandContext(t.Context(), programs.gangctl, "--kubeconfig", stage.Kubeconfig(), "submit", "tf")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, screen())
	}
	for _, want := range []string{"Would start now: 16 x 1, or 8 x 2, or 4 x 4, or 2 x 8 (workers x GPUs)", "kind: TFJob", "gangctl --kubeconfig", "--image=x -- true", "asked created"} {
		eventually(t, want+" is on the screen", func(context.Context) bool { return strings.Contains(screen(), want) })
	}
	if _, _, code := gangctl(t, stage, "wait", "asked", "--timeout", "60s"); code != 0 {
		t.Errorf("exit code %d", code)
	}
	gone(t, stage, "asked")
}

// follows sees what members print until the job ends, and how it ended in the exit code.
func follows(t *testing.T, stage *demo.Stage, _ dynamic.Interface) {
	for _, tt := range []struct {
		name  string
		flags []string
		code  int
	}{
		{"ends", nil, 0},
		{"fails", []string{"--annotation", "sandbox.gangctl.dev/exit-code=1", "--restart-policy", "Never"}, 9},
	} {
		args := append([]string{"submit", "tf", tt.name, "--image", "tf-benchmarks", "--workers", "2", "--gpus", "1", "--follow", "--annotation", "sandbox.gangctl.dev/run-for=3s"}, tt.flags...)
		stdout, stderr, code := gangctl(t, stage, append(args, "--", "true")...)
		if code != tt.code || !strings.Contains(stdout, "[worker-0] ") || !strings.Contains(stdout, "[worker-1] ") {
			t.Errorf("%s: exit code %d, want %d\n%s%s", tt.name, code, tt.code, stdout, stderr)
		}
		gone(t, stage, tt.name)
	}
}

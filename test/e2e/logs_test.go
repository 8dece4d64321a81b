package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/gangctl/gangctl/internal/sandboxtest"
	"github.com/gangctl/gangctl/sandbox/kubelet"
	"github.com/gangctl/gangctl/sandbox/kubelet/podlog"
)

const (
	logWorkers = 63
	logSteps   = 150
	// A worker is restarted when it has run for so long, and by then the API server is back.
	logRunFor = 30 * time.Second
	// The evaluator is killed, and replaced by the operator, whenever it has run for so long.
	evaluatorRunFor = 8 * time.Second
	evaluator       = "numbers-evaluator-0"
	// restarted is the worker that fails once, and is restarted in its place.
	restarted = "numbers-worker-9"
)

// numbered are the steps that a log line of each pod was printed for, by the uid of the pod: the times of these lines.
type numbered struct {
	mu    sync.Mutex
	steps map[string]map[int][]string
	pods  map[string]string
	lines int
}

// read takes the lines of `logs -o json`.
func (n *numbered) read(t *testing.T, out *bufio.Scanner) {
	for out.Scan() {
		var l struct{ UID, Pod, Line, Time string }
		if err := json.Unmarshal(out.Bytes(), &l); err != nil {
			t.Errorf("%q: %v", out.Text(), err)
			continue
		}
		n.mu.Lock()
		n.lines++
		number, _, _ := strings.Cut(l.Line, "\t")
		if step, err := strconv.Atoi(number); err == nil {
			if n.steps[l.UID] == nil {
				n.steps[l.UID] = map[int][]string{}
			}
			n.steps[l.UID][step/10] = append(n.steps[l.UID][step/10], l.Time)
			n.pods[l.UID] = l.Pod
		}
		n.mu.Unlock()
	}
}

// seen are the pods of a name, or all, that have printed something.
func (n *numbered) seen(pod string) (uids []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for uid, name := range n.pods {
		if pod == "" || name == pod {
			uids = append(uids, uid)
		}
	}
	return uids
}

// A gang of 64 is followed while a member is replaced, another restarted in its place, and the API server goes away and comes
// back. No line is lost, none comes twice.
func TestLogsFollow(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	up := []string{"--nodes=1", "--scheduler=default", "--cpu=64", "--port=" + port}
	// A cluster of its own: its API server is killed and started again.
	cluster := sandboxtest.Start(t, sandboxtest.Options{Args: up})
	client, err := kubernetes.NewForConfig(cluster.Config)
	must(t, err)
	dyn, err := dynamic.NewForConfig(cluster.Config)
	must(t, err)
	ctx := t.Context()
	jobs := dyn.Resource(tfjobs).Namespace("default")
	_, err = jobs.Create(ctx, numberedJob(), metav1.CreateOptions{})
	must(t, err)

	follow := exec.CommandContext(ctx, programs.gangctl, "--kubeconfig", cluster.Kubeconfig, "logs", "numbers", "-f", "-o", "json", "--max-streams", "64")
	out, err := follow.StdoutPipe()
	must(t, err)
	var notes bytes.Buffer
	follow.Stderr = &notes
	must(t, follow.Start())
	n := &numbered{steps: map[string]map[int][]string{}, pods: map[string]string{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.read(t, bufio.NewScanner(out))
	}()
	t.Cleanup(func() {
		if job, err := jobs.Get(context.Background(), "numbers", metav1.GetOptions{}); t.Failed() && err == nil {
			t.Logf("the job: %v", job.Object["status"])
		}
	})
	exits := func(pod, code string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, kubelet.ExitCodeAnnotation, code)
		eventually(t, pod+" has its exit code", func(ctx context.Context) bool {
			_, err := client.CoreV1().Pods("default").Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{})
			return err == nil
		})
	}
	exits(restarted, "1")
	eventually(t, "all members print", func(context.Context) bool { return len(n.seen("")) >= logWorkers+1 })
	eventually(t, "the evaluator is replaced", func(context.Context) bool { return len(n.seen(evaluator)) >= 2 })
	restartAPIServer(t, cluster, up)
	eventually(t, "a worker is restarted", func(ctx context.Context) bool { return restarts(ctx, client, restarted) > 0 })
	exits(restarted, "0")
	select {
	case <-ended:
	case <-time.After(3 * time.Minute):
		_ = follow.Process.Kill()
		t.Errorf("logs -f does not end with its job")
	}
	if err := follow.Wait(); err != nil {
		t.Errorf("logs -f: %v\n%s", err, &notes)
	}
	t.Logf("%d lines of %d pods\n%s", n.lines, len(n.steps), &notes)
	// While the API server is away the second run may end before it is told to succeed, and a third one comes.
	checkSteps(t, n, restarts(ctx, client, restarted)+1)
}

// restartAPIServer kills it, and starts it again: who is connected to it is cut off, and cannot reach it for a while.
func restartAPIServer(t *testing.T, cluster *sandboxtest.Cluster, up []string) {
	t.Helper()
	status, stderr, err := cluster.Run("status")
	if err != nil {
		t.Fatalf("status: %v\n%s", err, stderr)
	}
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "apiserver" {
			pid, err := strconv.Atoi(fields[1])
			must(t, err)
			must(t, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	eventually(t, "the API server is gone", func(context.Context) bool {
		_, _, err := cluster.Run("status")
		return err != nil
	})
	if _, stderr, err := cluster.Run("up", up...); err != nil {
		t.Fatalf("up: %v\n%s", err, stderr)
	}
}

// checkSteps: each worker printed every step once, the one that was restarted as often as it ran. Of an evaluator that was killed the end may be
// gone with its pod, but nothing before.
func checkSteps(t *testing.T, n *numbered, runs int) {
	t.Helper()
	if runs < 2 {
		t.Errorf("%s ran %d times", restarted, runs)
	}
	if pods, evaluators := len(n.steps), len(n.seen(evaluator)); evaluators < 2 || pods != logWorkers+evaluators {
		t.Errorf("%d pods printed, %d of them evaluators", pods, evaluators)
	}
	for uid, steps := range n.steps {
		want, last := 1, logSteps
		switch n.pods[uid] {
		case restarted:
			want = runs
		case evaluator:
			last = len(steps)
		}
		var wrong []string
		for step := 1; step <= last; step++ {
			if len(steps[step]) != want {
				wrong = append(wrong, fmt.Sprintf("%d: %s", step, strings.Join(steps[step], " ")))
			}
		}
		if len(wrong) > 0 || len(steps) != last {
			t.Errorf("%s: want steps 1 to %d, each %d times: %d steps, wrong: %s", n.pods[uid], last, want, len(steps), strings.Join(wrong, ", "))
		}
	}
}

func restarts(ctx context.Context, client kubernetes.Interface, pod string) int {
	p, err := client.CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{})
	if err != nil || len(p.Status.ContainerStatuses) == 0 {
		return 0
	}
	return int(p.Status.ContainerStatuses[0].RestartCount)
}

// numberedJob prints numbered lines: its workers for a while, and an evaluator that is killed again and again.
func numberedJob() *unstructured.Unstructured {
	role := func(replicas int64, policy string, runFor time.Duration, code string) map[string]any {
		return map[string]any{"replicas": replicas, "restartPolicy": policy, "template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{podlog.LinesAnnotation: strconv.Itoa(logSteps), kubelet.RunForAnnotation: runFor.String(), kubelet.ExitCodeAnnotation: code}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "tensorflow", "image": "numbers"}}}}}
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": map[string]any{"name": "numbers", "namespace": "default"},
		"spec": map[string]any{"successPolicy": "AllWorkers", "runPolicy": map[string]any{"cleanPodPolicy": "None"},
			"tfReplicaSpecs": map[string]any{"Worker": role(logWorkers, "OnFailure", logRunFor, "0"), "Evaluator": role(1, "ExitCode", evaluatorRunFor, "137")}}}}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	return port
}

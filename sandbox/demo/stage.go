package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gangctl/gangctl/sandbox/kubelet"
	"github.com/gangctl/gangctl/sandbox/members"
)

// Namespace is where all jobs of the demo run.
const Namespace = "default"

// Stage is one sandbox on which acts are played by typing commands.
type Stage struct {
	Gangctl, Sandbox string
	DataDir          string
	// Log gets each command before it runs, and what it prints.
	Log       io.Writer
	Timeout   time.Duration
	Scheduler Scheduler

	config *rest.Config
	client kubernetes.Interface
}

// Up starts the sandbox, without nodes: each act brings its own.
func (s *Stage) Up(ctx context.Context) error {
	if err := s.RunSandbox(ctx, "up", "--nodes", "0", "--run-for", "0", "--scheduler", s.Scheduler.Name); err != nil {
		return err
	}
	return s.Connect()
}

// Connect makes the clients of a sandbox that is up.
func (s *Stage) Connect() error {
	var err error
	if s.config, err = clientcmd.BuildConfigFromFlags("", s.Kubeconfig()); err != nil {
		return fmt.Errorf("read the sandbox's kubeconfig: %w", err)
	}
	s.config.QPS = -1 // by default a client waits for itself at five requests a second, and whoever times a gang times that
	if s.client, err = kubernetes.NewForConfig(s.config); err != nil {
		return fmt.Errorf("connect to the sandbox: %w", err)
	}
	return nil
}

// Client returns a client of the stage's cluster, once it is up.
func (s *Stage) Client() kubernetes.Interface { return s.client }

// Config returns what clients of other kinds are made of, once it is up.
func (s *Stage) Config() *rest.Config { return rest.CopyConfig(s.config) }

// Down stops the sandbox and removes what it kept.
func (s *Stage) Down(ctx context.Context) error { return s.RunSandbox(ctx, "down") }

// AddNodes adds nodes of 4 cpu and 16Gi with the given number of GPUs each.
// They are named node-1, node-2, …; names that are free are used again.
func (s *Stage) AddNodes(ctx context.Context, count, gpus int) error {
	return s.RunSandbox(ctx, "node", "add", "--count", fmt.Sprint(count), "--cpu", "4", "--memory", "16Gi", "--gpus", fmt.Sprint(gpus))
}

// RemoveNodes removes nodes.
func (s *Stage) RemoveNodes(ctx context.Context, names ...string) error {
	return s.RunSandbox(ctx, append([]string{"node", "remove"}, names...)...)
}

// Submit submits a job to the stage's scheduler.
func (s *Stage) Submit(ctx context.Context, name string, flags ...string) error {
	args := append([]string{"submit", "tf", name, "--image", "tf-benchmarks"}, flags...)
	args = append(args, s.Scheduler.Submit...)
	return s.RunGangctl(ctx, append(args, "--", "python", "tf_cnn_benchmarks.py")...)
}

// Delete deletes jobs and waits until their pods are gone.
func (s *Stage) Delete(ctx context.Context, names ...string) error {
	return s.RunGangctl(ctx, append([]string{"delete"}, names...)...)
}

// Finish lets the workers of a job come to the end of their training, now; the
// rest is up to the operator.
func (s *Stage) Finish(ctx context.Context, job string) error {
	fmt.Fprintf(s.Log, "# the workers of %s have finished\n", job)
	pods := s.client.CoreV1().Pods(Namespace)
	workers, err := pods.List(ctx, metav1.ListOptions{LabelSelector: members.JobLabel + "=" + job + "," + members.RoleLabel + "=worker"})
	if err != nil {
		return fmt.Errorf("list the workers of %s: %w", job, err)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, kubelet.EndsAtAnnotation, time.Now().UTC().Format(time.RFC3339))
	for _, pod := range workers.Items {
		if _, err := pods.Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("end pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// Decided waits until the scheduler has decided about n pods.
func (s *Stage) Decided(ctx context.Context, n int) (members.List, error) {
	return s.WaitFor(ctx, func(seen members.List) bool { return seen.Decided(n) })
}

// WaitFor waits until the members meet a condition.
func (s *Stage) WaitFor(ctx context.Context, desired func(members.List) bool) (members.List, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	return members.WaitFor(ctx, s.client, Namespace, desired)
}

// Kubeconfig is the path of the file that gives access to the cluster.
func (s *Stage) Kubeconfig() string { return filepath.Join(s.DataDir, "kubeconfig") }

// RunSandbox types a gangctl-sandbox command for the stage's data directory.
func (s *Stage) RunSandbox(ctx context.Context, args ...string) error {
	return s.run(ctx, s.Sandbox, append(args, "--data-dir", s.DataDir)...)
}

// RunGangctl types a gangctl command against the stage's cluster.
func (s *Stage) RunGangctl(ctx context.Context, args ...string) error {
	// The kubeconfig is a flag, so that what is shown works when pasted; flags
	// after -- would belong to the job.
	return s.run(ctx, s.Gangctl, append([]string{"--kubeconfig", s.Kubeconfig()}, args...)...)
}

// run types a command: it shows it, runs it, and shows its output.
func (s *Stage) run(ctx context.Context, program string, args ...string) error {
	line := filepath.Base(program) + " " + strings.Join(args, " ")
	fmt.Fprintf(s.Log, "$ %s\n", line)
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	var output bytes.Buffer
	cmd.Stdout = io.MultiWriter(s.Log, &output)
	cmd.Stderr = cmd.Stdout
	// A program that is interrupted gets to undo what it began.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, lastLines(output.String(), 3))
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}

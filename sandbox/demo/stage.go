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

// StageConfig has the programs and the sandbox of a stage.
type StageConfig struct {
	// Gangctl and Sandbox are the paths of the two programs.
	Gangctl, Sandbox string
	// DataDir is where the sandbox keeps what it has.
	DataDir string
	// Log gets each command before it runs, and what it prints.
	Log io.Writer
	// Timeout bounds each command.
	Timeout   time.Duration
	Scheduler Scheduler
}

// Stage is one sandbox, which is up, on which acts are played by typing commands.
type Stage struct {
	StageConfig

	config *rest.Config
	client kubernetes.Interface
}

// Start starts a sandbox, without nodes: each act brings its own.
func Start(ctx context.Context, c StageConfig) (*Stage, error) {
	if err := c.RunSandbox(ctx, "up", "--nodes", "0", "--run-for", "0", "--scheduler", c.Scheduler.Name); err != nil {
		return nil, err
	}
	return Connect(c)
}

// Connect returns the stage of a sandbox that is up already.
func Connect(c StageConfig) (*Stage, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the sandbox's kubeconfig: %w", err)
	}
	config.QPS = -1 // by default a client waits for itself at five requests a second, and whoever times a gang times that
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the sandbox: %w", err)
	}
	return &Stage{StageConfig: c, config: config, client: client}, nil
}

// Client returns a client of the stage's cluster.
func (s *Stage) Client() kubernetes.Interface { return s.client }

// Config returns what clients of other kinds are made of.
func (s *Stage) Config() *rest.Config { return rest.CopyConfig(s.config) }

// Down stops the sandbox, as far as it is up, and removes what it kept.
func (c StageConfig) Down(ctx context.Context) error { return c.RunSandbox(ctx, "down") }

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
func (c StageConfig) Kubeconfig() string { return filepath.Join(c.DataDir, "kubeconfig") }

// RunSandbox types a gangctl-sandbox command for the stage's data directory.
func (c StageConfig) RunSandbox(ctx context.Context, args ...string) error {
	return c.run(ctx, c.Sandbox, append(args, "--data-dir", c.DataDir)...)
}

// RunGangctl types a gangctl command against the stage's cluster.
func (c StageConfig) RunGangctl(ctx context.Context, args ...string) error {
	// The kubeconfig is a flag, so that what is shown works when pasted; flags
	// after -- would belong to the job.
	return c.run(ctx, c.Gangctl, append([]string{"--kubeconfig", c.Kubeconfig()}, args...)...)
}

// run types a command: it shows it, runs it, and shows its output.
func (c StageConfig) run(ctx context.Context, program string, args ...string) error {
	line := filepath.Base(program) + " " + strings.Join(args, " ")
	fmt.Fprintf(c.Log, "$ %s\n", line)
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	var output bytes.Buffer
	cmd.Stdout = io.MultiWriter(c.Log, &output)
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

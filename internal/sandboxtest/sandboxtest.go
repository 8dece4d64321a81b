// Package sandboxtest gives tests a cluster: a sandbox that ends with the test.
package sandboxtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// BinaryEnv names the environment variable with a ready-built gangctl-sandbox.
// Without it the program is built once for each test binary.
const BinaryEnv = "GANGCTL_SANDBOX_BIN"

// ServerEnv names the environment variable with a kube-apiserver of another version of Kubernetes, which all sandboxes run then. Tests of what
// that version lacks fail on it.
const ServerEnv = "GANGCTL_API_SERVER"

// Options are how a test wants its cluster; the zero value is `up` as it is.
type Options struct {
	// Args are further flags of `gangctl-sandbox up`, such as "--gpus=8".
	Args []string
	// Env is the environment of all components, "NAME=value", alongside the test's own.
	Env []string
	// DataDir is a directory of the test's own choice; a fresh one if empty.
	DataDir string
	// Kubeconfig is where to write it; in the data dir if empty.
	Kubeconfig string
}

// Cluster is a running sandbox.
type Cluster struct {
	// Binary is the program, for `node add` and the like.
	Binary string
	// DataDir holds the sandbox; Kubeconfig is the path of the administrator's.
	DataDir, Kubeconfig string
	// Config is the administrator's client configuration, without throttling.
	Config *rest.Config
	env    []string
}

// Start starts a sandbox and waits until it is ready. When the test ends it is
// taken down; if the test failed, the last lines of each component are logged.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	c := &Cluster{Binary: Binary(t), DataDir: o.DataDir, env: o.Env}
	if c.DataDir == "" {
		c.DataDir = filepath.Join(t.TempDir(), "sandbox")
	}
	t.Cleanup(func() {
		if t.Failed() {
			c.DumpLogs(t)
		}
		if _, stderr, err := c.Run("down"); err != nil {
			t.Errorf("sandbox down: %v\n%s", err, stderr)
		}
	})
	args := o.Args
	if program := os.Getenv(ServerEnv); program != "" {
		args = append([]string{"--api-server", program}, args...)
	}
	if o.Kubeconfig != "" {
		args = append([]string{"--kubeconfig", o.Kubeconfig}, args...)
	}
	if _, stderr, err := c.Run("up", args...); err != nil {
		t.Fatalf("sandbox up: %v\n%s", err, stderr)
	}
	if c.Kubeconfig = o.Kubeconfig; c.Kubeconfig == "" {
		c.Kubeconfig = filepath.Join(c.DataDir, "kubeconfig")
	}
	c.load(t)
	return c
}

// load reads the kubeconfig that `up` wrote.
func (c *Cluster) load(t testing.TB) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatalf("sandbox kubeconfig: %v", err)
	}
	config.QPS = -1
	c.Config = config
}

// Run runs gangctl-sandbox on this cluster's data dir, for example
// Run("node", "add", "--gpus=8"), and returns what it printed.
func (c *Cluster) Run(command string, args ...string) (stdout, stderr string, err error) {
	cmd, _ := c.Command(command, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	return out.String(), errOut.String(), err
}

// Command prepares gangctl-sandbox on this cluster's data dir, for a test that
// wants to do something while it runs; what it prints is collected.
func (c *Cluster) Command(command string, args ...string) (*exec.Cmd, *Output) {
	cmd := exec.Command(c.Binary, append([]string{command}, append(args, "--data-dir", c.DataDir)...)...)
	cmd.Env = append(os.Environ(), c.env...)
	out := &Output{}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

// Components returns the ids of the processes that run, by the name of their component.
func (c *Cluster) Components(t testing.TB) map[string]int {
	t.Helper()
	var state struct {
		Components []struct {
			Name, Exit string
			PID        int
		}
	}
	data, err := os.ReadFile(filepath.Join(c.DataDir, "state.json"))
	if err == nil {
		err = json.Unmarshal(data, &state)
	}
	if err != nil {
		t.Fatalf("sandbox state: %v", err)
	}
	running := map[string]int{}
	for _, component := range state.Components {
		if component.Exit == "" {
			running[component.Name] = component.PID
		}
	}
	return running
}

// logLines and logWidth bound what DumpLogs prints of each component, in lines and bytes.
const logLines, logWidth = 30, 300

// DumpLogs prints the last lines of every component. They go to standard error at once, before the test's own messages: a log of hundreds
// of lines after those would hide them.
func (c *Cluster) DumpLogs(t testing.TB) {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(c.DataDir, "log", "*.log"))
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		fmt.Fprintf(os.Stderr, "%s: %s:\n", t.Name(), filepath.Base(path))
		for _, line := range lines[max(0, len(lines)-logLines):] {
			fmt.Fprintf(os.Stderr, "    %.*s\n", logWidth, line)
		}
	}
}

// Eventually polls a condition until it returns nil, or fails the test with its
// last complaint.
func Eventually(t testing.TB, within time.Duration, condition func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %v", within, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Consistently polls a condition and fails the test if it is ever not nil.
func Consistently(t testing.TB, during time.Duration, condition func() error) {
	t.Helper()
	for deadline := time.Now().Add(during); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err := condition(); err != nil {
			t.Fatal(fmt.Errorf("not for all of %s: %w", during, err))
		}
	}
}

// Output collects what a command prints; it may be read while it runs.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns what was printed so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

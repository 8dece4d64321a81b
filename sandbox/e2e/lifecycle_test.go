package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gangctl/gangctl/internal/sandboxtest"
	"github.com/gangctl/gangctl/sandbox/datadir"
)

func client(t *testing.T, c *sandboxtest.Cluster) kubernetes.Interface {
	t.Helper()
	cs, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	c := sandboxtest.Start(t, sandboxtest.Options{Args: bare()})
	cs := client(t, c)
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := cs.CoreV1().ConfigMaps("default").Create(t.Context(), kept, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubeconfig := read(t, c.Kubeconfig)
	if info, err := os.Stat(c.Kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: mode %v, %v", info.Mode(), err)
	}

	stdout, stderr, err := c.Run("up", bare()...)
	if err != nil || !strings.Contains(stderr, "runs already") {
		t.Errorf("up of the same again: %v\n%s", err, stderr)
	}
	if last := lastLine(stdout); last != "export KUBECONFIG="+c.Kubeconfig {
		t.Errorf("last line is %q", last)
	}
	wantError(t, c, 1, []string{"--nodes 7 (running: 1)", "hint: end it first: gangctl-sandbox down --data-dir " + c.DataDir}, "up", bare("--nodes=7")...)
	if out, stderr, err := c.Run("status"); err != nil || !strings.Contains(out, "apiserver") {
		t.Errorf("status: %v\n%s%s", err, out, stderr)
	}

	kill(t, c)
	sandboxtest.Eventually(t, eventually, func() error { return gone(t, c) })
	wantError(t, c, 1, []string{"does not run", "hint: start it again: gangctl-sandbox up"}, "status")
	if _, stderr, err := c.Run("up", bare()...); err != nil {
		t.Fatalf("up after the supervisor was killed: %v\n%s", err, stderr)
	}
	if read(t, c.Kubeconfig) != kubeconfig {
		t.Error("the kubeconfig changed")
	}
	if _, err := cs.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("objects are lost: %v", err)
	}

	// Killed and started again at once: the leftovers must not be in the way.
	kill(t, c)
	if _, stderr, err := c.Run("up", bare()...); err != nil {
		t.Fatalf("up right after the supervisor was killed: %v\n%s", err, stderr)
	}

	if _, stderr, err := c.Run("down"); err != nil {
		t.Fatalf("down: %v\n%s", err, stderr)
	}
	if err := gone(t, c); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(c.DataDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data dir is still there: %v", err)
	}
	if _, stderr, err := c.Run("down"); err != nil || !strings.Contains(stderr, "there is no sandbox in "+c.DataDir) {
		t.Errorf("down of nothing: %v\n%s", err, stderr)
	}
}

// A component that ends while the sandbox runs is reported, and nothing hides it.
func TestComponentEnds(t *testing.T) {
	t.Parallel()
	c := sandboxtest.Start(t, sandboxtest.Options{Args: bare()})
	killComponent(t, c, "controller-manager")
	sandboxtest.Eventually(t, eventually, func() error {
		out, stderr, err := c.Run("status")
		if err == nil || !strings.Contains(out, "ended: signal: killed") || !strings.Contains(stderr, "[controller-manager]") {
			return fmt.Errorf("status: %w\n%s%s", err, out, stderr)
		}
		return nil
	})
}

func TestTwoSideBySide(t *testing.T) {
	t.Parallel()
	a := sandboxtest.Start(t, sandboxtest.Options{Args: bare()})
	b := sandboxtest.Start(t, sandboxtest.Options{Args: bare("--nodes=2")})
	for c, want := range map[*sandboxtest.Cluster]int{a: 1, b: 2} {
		nodes, err := client(t, c).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(nodes.Items) != want {
			t.Errorf("%s: %d nodes, %v", c.DataDir, len(nodes.Items), err)
		}
	}
	if _, stderr, err := a.Run("down"); err != nil {
		t.Fatalf("down: %v\n%s", err, stderr)
	}
	if _, err := client(t, b).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the other one went down as well: %v", err)
	}
}

// Ctrl-C while it starts leaves nothing behind; so does one on a foreground sandbox.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	c := &sandboxtest.Cluster{Binary: sandboxtest.Binary(t), DataDir: filepath.Join(t.TempDir(), "sandbox")}
	for _, foreground := range []bool{false, true} {
		args := bare()
		if foreground {
			args = bare("--foreground")
		}
		cmd, out := c.Command("up", args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		sandboxtest.Eventually(t, time.Minute, func() error {
			if !foreground && len(processes(t, c.DataDir)) > 2 {
				return nil
			}
			if foreground && strings.Contains(out.String(), "export KUBECONFIG=") {
				return nil
			}
			return errors.New("not far enough yet")
		})
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		if foreground != (err == nil) {
			t.Errorf("foreground %v: %v\n%s", foreground, err, out)
		}
		if err := gone(t, c); err != nil {
			t.Errorf("foreground %v: %v", foreground, err)
		}
	}
	if _, stderr, err := c.Run("down"); err != nil {
		t.Errorf("down: %v\n%s", err, stderr)
	}
}

// kill ends the supervisor the hard way.
func kill(t *testing.T, c *sandboxtest.Cluster) {
	t.Helper()
	pid, err := strconv.Atoi(read(t, filepath.Join(c.DataDir, "supervisor.lock")))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // a process of this size takes a moment to die
		held, err := datadir.Dir(c.DataDir).Held(datadir.SupervisorLock)
		if err == nil && !held {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the supervisor does not die: %v", err)
		}
	}
}

// killComponent ends one component the hard way.
func killComponent(t *testing.T, c *sandboxtest.Cluster, name string) {
	t.Helper()
	for _, line := range processes(t, c.DataDir) {
		if !strings.Contains(line, "component "+name+" ") {
			continue
		}
		pid, err := strconv.Atoi(strings.Fields(line)[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no component %s runs", name)
}

func gone(t *testing.T, c *sandboxtest.Cluster) error {
	if left := processes(t, c.DataDir); len(left) > 0 {
		return fmt.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
	}
	return nil
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return lines[len(lines)-1]
}

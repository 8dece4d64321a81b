package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gangctl/gangctl/sandbox/sandboxtest"
	"github.com/gangctl/gangctl/test/faultproxy"
)

// ownScheduler is `gangctl scheduler` as a process of the test's own, with a
// configuration of its own, under the rights that install grants.
type ownScheduler struct {
	t      *testing.T
	dir    string
	args   []string
	output *sandboxtest.Output
	cmd    *exec.Cmd
	done   chan error
}

// startScheduler starts a scheduler, with the arguments that it gets for each of
// its plugins (YAML), and waits until it is ready. It ends with the test. Proxy,
// which may be nil, is what it talks to the API server through. The sandbox, of
// which dataDir is the data directory, is one in which nobody else schedules.
func startScheduler(t *testing.T, dataDir string, proxy *faultproxy.Proxy, plugins map[string]string, flags ...string) *ownScheduler {
	t.Helper()
	s := &ownScheduler{t: t, dir: t.TempDir(), output: &sandboxtest.Output{}}
	kubeconfig := filepath.Join(dataDir, "pki", "gang-scheduler.kubeconfig")
	if proxy != nil {
		own := filepath.Join(s.dir, "kubeconfig")
		must(t, proxy.WriteKubeconfig(kubeconfig, own))
		kubeconfig = own
	}
	config := filepath.Join(s.dir, "config.yaml")
	text := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection: {kubeconfig: %s, qps: 500, burst: 1000}\n"+
		"leaderElection: {leaderElect: false}\nprofiles:\n- schedulerName: gang-scheduler\n  pluginConfig:\n", kubeconfig)
	for name, args := range plugins {
		text += fmt.Sprintf("  - {name: %s, args: %s}\n", name, args)
	}
	must(t, os.WriteFile(config, []byte(text), 0o600))
	s.args = append([]string{
		"scheduler", "--config", config, "--authentication-kubeconfig", kubeconfig, "--authorization-kubeconfig", kubeconfig,
		"--bind-address", "127.0.0.1", "--cert-dir", s.dir, "-v", "2",
	}, flags...)
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			lines := strings.Split(s.output.String(), "\n")
			t.Logf("the scheduler said:\n%s", strings.Join(lines[max(0, len(lines)-15000):], "\n"))
		}
	})
	s.start()
	return s
}

// start starts the process, for the first time or again.
func (s *ownScheduler) start() {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(s.t, err)
	address := listener.Addr().String()
	must(s.t, listener.Close())
	_, port, err := net.SplitHostPort(address)
	must(s.t, err)
	s.cmd = exec.Command(programs.gangctl, append(s.args, "--secure-port", port)...)
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(s.t, s.cmd.Start())
	done := make(chan error, 1)
	s.done = done
	cmd := s.cmd
	go func() { done <- cmd.Wait() }()
	config := &rest.Config{Host: "https://" + address, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client, err := kubernetes.NewForConfig(config)
	must(s.t, err)
	deadline := time.Now().Add(stepTimeout)
	for {
		body, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(s.t.Context())
		if err == nil && bytes.Equal(body, []byte("ok")) {
			return
		}
		select {
		case err := <-done:
			s.t.Fatalf("the scheduler ended: %v\n%s", err, s.output.String())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the scheduler is not ready: %v", err)
		}
	}
}

// stop ends the process as by kill -9, which leaves it no time to tidy up.
func (s *ownScheduler) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.done
	s.cmd = nil
}

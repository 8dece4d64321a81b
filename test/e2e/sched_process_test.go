package e2e

// The scheduler's scenarios, and the tests that play them:
//
//	F1 F2 F3 F4        TestRecordedFacts, TestDefaultSchedulerGivesADeadMembersPlaceAway, TestADeadMembersPlaceIsKept
//	T02 T03 T04 T26    TestSchedulerPlaces: two gangs, hoarding, head of line, packing trap
//	T05                TestAging: starvation
//	T07                TestReplacement: a member dies
//	T08 T16            TestDialects: completed members, a definition goes and returns
//	T11 T12 T19        TestPreemption: useless preemption, preemption that breaks a gang, mixed priorities
//	T17 T18            TestMinimums: the minimum changes, incomplete
//	T21                TestBindings: a binding fails; with volumes, package barrier
//	T23                TestPartialGangs: a node goes while a gang is being bound
//	T33                TestRecordedFacts, TestDialects: labels only
//	faults             TestFaults: server away, watches expired, leader change, restarts, node death
//	cost               TestSchedulerWrites, TestWaitingGangsCostNothing
//	any of these       TestChaos
//
// What takes long is played in some dialects only, and with GANGCTL_LONG in every
// one that can express it.

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gangctl/gangctl/internal/sandboxtest"
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
	done   chan struct{} // closed when it has ended
	ended  error         // how; to be read then
	// meanwhile is called again and again while it gets ready; it may be nil.
	meanwhile func()
}

// process is how a scheduler of a test's own is to run.
type process struct {
	// dataDir is that of the sandbox, in which no other scheduler schedules what this one does.
	dataDir string
	// proxy is what it talks to the API server through; nil for directly.
	proxy *faultproxy.Proxy
	// name is the schedulerName that it answers to; gang-scheduler if empty.
	name string
	// plugins are the arguments of its plugins, as YAML.
	plugins map[string]string
	// elect has it take turns with others, for a short lease.
	elect bool
	flags []string
}

// startScheduler starts a scheduler, with the arguments that it gets for each of
// its plugins (YAML), and waits until it is ready. It ends with the test. Proxy,
// which may be nil, is what it talks to the API server through. The sandbox, of
// which dataDir is the data directory, is one in which no other scheduler schedules.
func startScheduler(t *testing.T, dataDir string, proxy *faultproxy.Proxy, plugins map[string]string, flags ...string) *ownScheduler {
	t.Helper()
	return process{dataDir: dataDir, proxy: proxy, plugins: plugins, flags: flags}.start(t)
}

// start starts it and waits until it is ready. It ends with the test.
func (p process) start(t *testing.T) *ownScheduler {
	t.Helper()
	s := &ownScheduler{t: t, dir: t.TempDir(), output: &sandboxtest.Output{}}
	kubeconfig := filepath.Join(p.dataDir, "pki", "gang-scheduler.kubeconfig")
	if p.proxy != nil {
		own := filepath.Join(s.dir, "kubeconfig")
		must(t, p.proxy.WriteKubeconfig(kubeconfig, own))
		kubeconfig = own
	}
	election := "{leaderElect: false}"
	if p.elect {
		election = "{leaderElect: true, leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 500ms}"
	}
	config := filepath.Join(s.dir, "config.yaml")
	text := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection: {kubeconfig: %s, qps: 500, burst: 1000}\n"+
		"leaderElection: %s\nprofiles:\n- schedulerName: %s\n  pluginConfig:\n", kubeconfig, election, cmp.Or(p.name, "gang-scheduler"))
	for _, name := range slices.Sorted(maps.Keys(p.plugins)) {
		text += fmt.Sprintf("  - {name: %s, args: %s}\n", name, p.plugins[name])
	}
	must(t, os.WriteFile(config, []byte(text), 0o600))
	s.args = append([]string{
		"scheduler", "--config", config, "--authentication-kubeconfig", kubeconfig, "--authorization-kubeconfig", kubeconfig,
		"--bind-address", "127.0.0.1", "--cert-dir", s.dir, "-v", "2",
	}, p.flags...)
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			lines := strings.Split(s.output.String(), "\n")
			t.Logf("the scheduler said:\n%s", strings.Join(lines[max(0, len(lines)-150):], "\n"))
		}
	})
	s.start()
	return s
}

// portTaken reports whether the process ended because another one has taken its port, which was free before it came to listen.
func (s *ownScheduler) portTaken() bool {
	lines := strings.Split(s.output.String(), "\n")
	return strings.Contains(strings.Join(lines[max(0, len(lines)-4):], "\n"), "address already in use")
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
	cmd, done := s.cmd, make(chan struct{})
	s.done = done
	go func() { s.ended = cmd.Wait(); close(done) }()
	ready := s.endpoints(&rest.Config{})
	deadline := time.Now().Add(stepTimeout)
	for {
		body, err := ready.Get().AbsPath("/readyz").DoRaw(s.t.Context())
		if err == nil && bytes.Equal(body, []byte("ok")) {
			return
		}
		select {
		case <-done:
			if s.portTaken() {
				s.start()
				return
			}
			s.t.Fatalf("the scheduler ended: %v\n%s", s.ended, s.output.String())
		case <-time.After(50 * time.Millisecond):
		}
		if s.meanwhile != nil {
			s.meanwhile()
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the scheduler is not ready: %v", err)
		}
	}
}

// address is that of the scheduler itself. Its certificate is its own.
func (s *ownScheduler) address() string {
	return "https://127.0.0.1:" + s.cmd.Args[len(s.cmd.Args)-1] // see start
}

// endpoints is a client of the scheduler's own endpoints, with the credentials of a config.
func (s *ownScheduler) endpoints(as *rest.Config) rest.Interface {
	s.t.Helper()
	config := rest.CopyConfig(as)
	config.Host = s.address()
	config.Insecure, config.CAData, config.CAFile = true, nil, ""
	client, err := kubernetes.NewForConfig(config)
	must(s.t, err)
	return client.Discovery().RESTClient()
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

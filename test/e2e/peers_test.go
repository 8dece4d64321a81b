package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/sandboxtest"
)

// peersPage lists the threads of TestPeers.
const peersPage = "../../docs/explanation/peers-bugs.md"

// thread is what users reported of another scheduler, as a scenario.
type thread struct {
	// name is its repository and number; test is the name of the scenario.
	name, test string
	// dialect is that in which our scheduler gets the gangs. kube-scheduler reads Kubernetes' own only.
	dialect  string
	machines []machine
	// run returns what is not as those who reported it expect.
	run func(peer) error
	// stock is part of what is wrong with kube-scheduler, empty if nothing is. By chance, it may be right at times.
	stock  string
	chance bool
	// long scenarios are for make e2e-long.
	long bool
}

// machine is a node of a scenario.
type machine struct {
	name, cpu   string
	gpus        int
	rack, block string
}

// peer is a scheduler in a scenario.
type peer struct {
	team
	// prefix is of the names of all that the scenario makes: what is deleted late would be taken for another.
	prefix string
	// stock is kube-scheduler; otherwise it is ours.
	stock bool
	// patience is how long what is expected may take.
	patience time.Duration
}

// TestPeers runs what users of other schedulers reported on ours, and on kube-scheduler with all that it has for gangs.
func TestPeers(t *testing.T) {
	t.Parallel()
	c := newSharedCluster(t, nil, "--native-gangs")
	_, err := c.client.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 100}, metav1.CreateOptions{})
	must(t, err)
	startScheduler(t, c.DataDir, nil, nil, allNames)
	startStock(t, c)
	page, err := os.ReadFile(peersPage)
	must(t, err)
	for _, th := range threads() {
		t.Run(th.test, func(t *testing.T) {
			if line := lineWith(string(page), th.name); !strings.Contains(line, "`"+th.test+"`") {
				t.Errorf("%s has no row of %s with the test %q", peersPage, th.name, th.test)
			}
			if th.long && !long() {
				t.Skip("it takes long")
			}
			th.on(t, c, true)
			th.on(t, c, false)
		})
	}
}

// lineWith is the first line of a text that contains another.
func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}

// on runs the scenario on one of the schedulers.
func (th thread) on(t *testing.T, c *cluster, stock bool) {
	t.Helper()
	p := peer{team: c.with(t, wireOf(th.dialect)), prefix: unused(t), patience: stepTimeout}
	if stock {
		p.team, p.prefix, p.stock, p.patience = c.with(t, wireOf("native")), p.prefix+"k", true, 5*time.Second
		p.scheduler = corev1.DefaultSchedulerName
		if th.stock == "" { // it does it right, and may back off before
			p.patience = stepTimeout
		}
	}
	p.defined()
	for _, m := range th.machines {
		p.add(m)
	}
	start := time.Now()
	err := th.run(p)
	t.Logf("kube-scheduler: %v, after %s: %v", stock, time.Since(start).Round(100*time.Millisecond), err)
	switch {
	case !stock && err != nil:
		t.Errorf("our scheduler: %v", err)
	case stock && err == nil && th.stock != "" && !th.chance:
		t.Errorf("kube-scheduler does it right, want %q", th.stock)
	case stock && err != nil && (th.stock == "" || !strings.Contains(err.Error(), th.stock)):
		t.Errorf("kube-scheduler: %v, want %q", err, th.stock)
	}
	p.tidy()
}

func wireOf(dialect string) wire {
	for _, w := range wires() {
		if w.name == dialect {
			return w
		}
	}
	return wire{}
}

// startStock starts kube-scheduler with the gates of gangs and topology.
func startStock(t *testing.T, c *cluster) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection: {kubeconfig: %s, qps: 500, burst: 1000}\n"+
		"leaderElection: {leaderElect: false}\n", c.Kubeconfig)
	must(t, os.WriteFile(config, []byte(text), 0o600))
	cmd := exec.CommandContext(t.Context(), c.Binary, "component", "default-scheduler", "--data-dir", c.DataDir, "--config", config,
		"--secure-port", "0", "--feature-gates", "GenericWorkload=true,TopologyAwareWorkloadScheduling=true")
	log := &sandboxtest.Output{}
	cmd.Stdout, cmd.Stderr = log, log
	if _, err := cmd.StdinPipe(); err != nil { // a component ends with what started it
		t.Fatal(err)
	}
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("kube-scheduler's log:\n%s", log)
		}
	})
}

// add adds a node.
func (p peer) add(m machine) {
	p.t.Helper()
	args := []string{"add", p.node(m.name), "--cpu", m.cpu, "--gpus", fmt.Sprint(m.gpus)}
	for key, value := range map[string]string{rackLabel: m.rack, blockLabel: m.block} {
		if value != "" {
			args = append(args, "--label", key+"="+value)
		}
	}
	if _, stderr, err := p.Run("node", args...); err != nil {
		p.t.Fatalf("node add: %v\n%s", err, stderr)
	}
}

// node is the name of a node in this run of the scenario.
func (p peer) node(name string) string { return p.prefix + "-" + name }

// tidy removes all that the scenario made.
func (p peer) tidy() {
	p.t.Helper()
	p.sweep(p.t)
	nodes := p.client.CoreV1().Nodes()
	must(p.t, nodes.DeleteCollection(p.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	if p.resource.Group != "" {
		must(p.t, p.dynamic.Resource(p.resource).Namespace(space).DeleteCollection(p.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	}
}

// eventually waits for what is expected, and returns an error if it does not come.
func (p peer) eventually(wrong string, done func() bool) error {
	for deadline := time.Now().Add(p.patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if done() {
			return nil
		}
	}
	return errors.New(wrong)
}

// have waits until pods have nodes.
func (p peer) have(wrong string, names ...string) error {
	return p.eventually(wrong, func() bool { return p.bound(p.t, names...) == len(names) })
}

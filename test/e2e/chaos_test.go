package e2e

import (
	"cmp"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gangctl/gangctl/install"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
	"github.com/gangctl/gangctl/test/chaos"
	"github.com/gangctl/gangctl/test/faultproxy"
)

// TestChaos lets random things happen to a cluster and its scheduler, and holds
// the scheduler to its promises at every moment. When all is well again, whoever
// waits must have a reason to. The environment sets how long:
//
//	GANGCTL_CHAOS_SEEDS  how many seeds (1), from GANGCTL_CHAOS_SEED (1) on
//	GANGCTL_CHAOS_TIME   for how long each (20s)
func TestChaos(t *testing.T) {
	seeds, first := number(t, "GANGCTL_CHAOS_SEEDS", 1), number(t, "GANGCTL_CHAOS_SEED", 1)
	length, err := time.ParseDuration(cmp.Or(os.Getenv("GANGCTL_CHAOS_TIME"), "20s"))
	must(t, err)
	c := newSharedCluster(t, nil, "--native-gangs", "--operator=false")
	must(t, (&sandboxmanifest.Applier{Client: c.dynamic}).Apply(t.Context(), install.SchedulerPolicyRBAC()))
	c.priorities(t, 100, 200)
	for _, w := range wires() {
		if w.defines() {
			c.define(t, w.resource)
		}
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { c.chaos(t, uint64(seed), length) })
	}
}

const (
	chaosNodes = 6
	chaosCPUs  = 8
	// quietFor is for how long nothing happens before all is well, mends how long
	// it takes to read what is to be read again, and findsBack how long a watch may
	// take to find a server again, which it looks for every second.
	quietFor, mends, findsBack = 5 * time.Second, 5 * time.Second, 8 * time.Second
	// relistsWithin is how long client-go may wait before it lists what is too old to be
	// watched: twice as long each time, until two minutes have passed without.
	relistsWithin, listsAtLast = 1600 * time.Millisecond, time.Minute
)

// chaos plays the script of a seed.
func (c *cluster) chaos(t *testing.T, seed uint64, length time.Duration) {
	proxy, err := faultproxy.Start(c.Config)
	must(t, err)
	defer func() { must(t, proxy.Close()) }()
	m := &mayhem{cluster: c, t: t, seed: seed, proxy: proxy, script: chaos.NewScript(seed), bands: map[string]*band{}, happened: map[chaos.Kind]int{}, nodes: map[string]bool{}}
	limits := chaos.Limits{Partial: 12 * time.Second, Evicted: 12 * time.Second, Unexplained: 12 * time.Second}
	m.model = chaos.New(limits, chaosCPUs*1000, time.Now())
	for range chaosNodes {
		m.addNode()
	}
	m.sched = startScheduler(t, c.DataDir, proxy, map[string]string{
		"GangBelowMinimum": "{belowMin: evict, grace: 4s, startGrace: 3s}", "GangReplacement": "{holdTTL: 5s}", "GangAging": "{after: 8s}", "GangBinding": "{timeout: 4s}",
	}, allNames)
	m.sched.meanwhile = m.due // the server may be away, and has to come back
	w, err := c.client.CoreV1().Pods(space).Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	defer w.Stop()
	m.play(w.ResultChan(), time.Now().Add(length))
	m.quiesce(w.ResultChan())
	t.Logf("%v", m.happened)
	m.sched.stop()
	m.removeAll(w.ResultChan())
}

// play lets things happen until the time has come.
func (m *mayhem) play(events <-chan watch.Event, until time.Time) {
	next := time.Now()
	for time.Now().Before(until) {
		if now := time.Now(); now.After(next) {
			move := m.script.Next()
			m.happened[move.Kind]++
			m.do(move)
			next = time.Now().Add(move.After)
		}
		m.step(events)
	}
}

// step lets a moment pass.
func (m *mayhem) step(events <-chan watch.Event) {
	tick := time.After(50 * time.Millisecond)
	for {
		select {
		case e, ok := <-events:
			if !ok {
				m.t.Fatal("the watch of pods has ended")
			}
			m.see(e)
			continue
		case <-tick:
		}
		break
	}
	m.due()
	now := time.Now()
	m.report(m.model.Check(now, m.kept(now)))
}

func (m *mayhem) see(e watch.Event) {
	pod, ok := e.Object.(*corev1.Pod)
	if !ok {
		m.t.Fatalf("the watch of pods tells %v", e.Object)
	}
	m.changed = time.Now()
	b := m.bands[pod.Labels[chaos.GangLabel]]
	if e.Type != watch.Deleted {
		m.report(m.model.See(pod))
		if b != nil {
			b.pods[pod.Name] = pod
		}
		if pod.Spec.NodeName != "" && !m.nodes[pod.Spec.NodeName] {
			m.remove(pod) // as the collector of lost pods does
		}
		return
	}
	m.model.Gone(pod)
	if b != nil && b.pods[pod.Name] != nil && b.pods[pod.Name].UID == pod.UID {
		delete(b.pods, pod.Name)
		m.after(time.Duration(200+len(pod.UID)*7%900)*time.Millisecond, func() { m.member(b, pod.Name) })
	}
}

// report fails the test with what is broken, and goes on.
func (m *mayhem) report(broken []string) {
	for _, what := range broken {
		m.t.Errorf("%s, after %v", what, m.happened)
	}
}

// quiesce lets all be well again, and waits until nothing happens any more. Then
// none that waits may have room. A gang may start as late as that: it waited to
// preempt others, or for its next attempt. Then it is waited for once more.
func (m *mayhem) quiesce(events <-chan watch.Event) {
	deadline := time.Now().Add(stepTimeout)
	for {
		for len(m.later) > 0 || time.Since(m.changed) < quietFor || m.kept(time.Now()) {
			if time.Now().After(deadline) {
				m.t.Fatalf("the cluster does not come to rest")
			}
			m.step(events)
		}
		late := m.waitsWithoutCause()
		if late == "" {
			return
		}
		if time.Now().After(deadline) {
			m.t.Error(late)
			return
		}
		m.changed = time.Now()
	}
}

// waitsWithoutCause returns the first gang that waits, as far as the test has seen,
// and of which gangctl says that it runs, with what it says.
func (m *mayhem) waitsWithoutCause() string {
	for _, b := range m.sorted() {
		placed, done, waiting := m.model.Tally(b.name)
		if waiting == 0 || done > 0 || placed >= b.min { // nobody promises more than the minimum
			continue
		}
		var pending string
		for _, pod := range b.pods {
			if pod.Spec.NodeName == "" {
				pending = max(pending, pod.Name)
			}
		}
		out, stderr, code := gangctlAt(m.t, m.Kubeconfig, "why-pending", "pod/"+pending, "-n", space)
		if code == 0 {
			return fmt.Sprintf("gang %s (%s, %d of %d placed) waits: %s\nand gangctl says\n%s%s", b.name, b.wire.name, placed, b.min, conditionOf(b.pods[pending]), out, stderr)
		}
	}
	return ""
}

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// goesAtMost is for how long the members of a gang that is taken back may be deleted one after the other: their controllers do that.
const goesAtMost = 15 * time.Second

// gangWatch sees every change of a pod, and for how long gangs are partly bound.
type gangWatch struct {
	t *testing.T
	// stop ends it, and fails the test if a gang was partly bound for too long.
	stop func()

	mu      sync.Mutex
	changes chan struct{}
	// need is how many members each gang needs.
	need map[string]int
	pods map[types.UID]*corev1.Pod
	// partly is since when each gang is partly bound, and whether it was whole before.
	partly map[string]interval
	// starts and goes are for how long a gang was partly bound at the longest.
	starts, goes time.Duration
}

type interval struct {
	since time.Time
	goes  bool
}

// watchGangs begins to see pods.
func (c *cluster) watchGangs(t *testing.T, need map[string]int) *gangWatch {
	t.Helper()
	w, err := c.client.CoreV1().Pods(space).Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	g := &gangWatch{t: t, need: need, pods: map[types.UID]*corev1.Pod{}, partly: map[string]interval{}, changes: make(chan struct{}, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok {
				g.see(e.Type, pod)
			}
		}
	}()
	g.stop = sync.OnceFunc(func() {
		t.Helper()
		w.Stop()
		<-ended
		g.judge()
	})
	t.Cleanup(g.stop)
	return g
}

func (g *gangWatch) see(event watch.EventType, pod *corev1.Pod) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pods[pod.UID] = pod
	if event == watch.Deleted {
		delete(g.pods, pod.UID)
	}
	g.measure(gangOfPod(pod), time.Now())
	select {
	case g.changes <- struct{}{}:
	default:
	}
}

func gangOfPod(pod *corev1.Pod) string {
	if name, ok := native.NameOf(pod); ok {
		return name
	}
	name, _ := schedulerplugins.NameOf(pod)
	return name
}

// bound is how many members of a gang have a node, and are not on their way out.
func (g *gangWatch) bound(gang string) (n int) {
	for _, pod := range g.pods {
		if gangOfPod(pod) == gang && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func (g *gangWatch) measure(gang string, now time.Time) {
	n, before := g.bound(gang), g.partly[gang]
	switch {
	case n > 0 && n < g.need[gang] && before.since.IsZero():
		g.partly[gang] = interval{now, before.goes}
	case n == 0 || n >= g.need[gang]:
		if took := now.Sub(before.since); !before.since.IsZero() && before.goes {
			g.goes = max(g.goes, took)
		} else if !before.since.IsZero() {
			g.starts = max(g.starts, took)
		}
		g.partly[gang] = interval{goes: n > 0}
	}
}

// judge fails the test if a gang was partly bound for too long, or is.
func (g *gangWatch) judge() {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for gang, p := range g.partly {
		if !p.since.IsZero() {
			g.t.Errorf("%s is partly bound: %d of %d", gang, g.bound(gang), g.need[gang])
		}
	}
	if g.starts > partialAtMost || g.goes > goesAtMost {
		g.t.Errorf("a gang was partly bound for %s before it was whole, and for %s before it was gone", g.starts, g.goes)
	}
}

// pass lets so many changes of pods pass, or a second.
func (g *gangWatch) pass(changes int) {
	over := time.After(time.Second)
	for range changes {
		select {
		case <-g.changes:
		case <-over:
			return
		}
	}
}

// state is what there is of each gang.
func (g *gangWatch) state() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []string
	for uid, pod := range g.pods {
		all = append(all, fmt.Sprintf("%s %s %s %s", gangOfPod(pod), uid, pod.Spec.NodeName, pod.Status.Phase))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// kueueSequences submits, deletes and changes priorities at random. No gang is ever partly bound, and whoever waits has a reason.
func (c *cluster) kueueSequences(t *testing.T, kinds []queuedKind) {
	var starts, goes time.Duration
	happened := map[string]int{}
	for seed := range 20 {
		t.Run(fmt.Sprint("sequence ", seed), func(t *testing.T) {
			s := &sequence{cluster: c, random: rand.New(rand.NewPCG(uint64(seed), 19)), kinds: kinds, happened: happened, jobs: map[string]sequenceJob{}}
			s.watch = c.watchGangs(t, map[string]int{})
			s.play(t)
			s.watch.stop()
			starts, goes = max(starts, s.watch.starts), max(goes, s.watch.goes)
		})
	}
	t.Logf("partly bound at the longest: %s before a gang was whole, %s before it was gone; %v", starts.Round(time.Millisecond), goes.Round(time.Millisecond), happened)
}

// sequence is one of random moves.
type sequence struct {
	*cluster
	random   *rand.Rand
	kinds    []queuedKind
	watch    *gangWatch
	happened map[string]int
	jobs     map[string]sequenceJob
	made     int
}

type sequenceJob struct {
	queuedJob
	kind queuedKind
}

func (s *sequence) play(t *testing.T) {
	for range 10 {
		switch n := s.random.IntN(10); {
		case n < 6 && len(s.jobs) < 7 || len(s.jobs) == 0:
			s.submit(t)
		case n < 8:
			s.delete(t, s.any())
		default:
			s.change(t, s.any())
		}
		s.watch.pass(s.random.IntN(8))
	}
	rests(t, 3*time.Second, s.watch.state)
	for _, name := range s.names() {
		s.judge(t, s.jobs[name])
	}
	for _, name := range s.names() {
		s.delete(t, name)
	}
	s.empty(t)
	s.noWorkloads(t)
}

func (s *sequence) names() []string {
	var all []string
	for name := range s.jobs {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func (s *sequence) any() string {
	all := s.names()
	return all[s.random.IntN(len(all))]
}

func (s *sequence) submit(t *testing.T) {
	t.Helper()
	pick := func(of ...string) string { return of[s.random.IntN(len(of))] }
	s.made++
	j := sequenceJob{kind: s.kinds[s.random.IntN(len(s.kinds))], queuedJob: queuedJob{name: fmt.Sprintf("gang-%d", s.made), queue: pick("research", "vision"),
		priority: pick("low", "low", "high"), workers: 1 + s.random.IntN(4), gpus: []int{2, 4, 8}[s.random.IntN(3)]}}
	s.watch.mu.Lock()
	s.watch.need[j.name] = j.workers
	s.watch.mu.Unlock()
	s.jobs[j.name] = j
	s.run(t, j.kind.submit(t, j.queuedJob)...)
	s.happened["submitted"]++
}

func (s *sequence) delete(t *testing.T, name string) {
	t.Helper()
	s.run(t, "delete", name)
	delete(s.jobs, name)
	s.happened["deleted"]++
}

// change gives a job the other priority.
func (s *sequence) change(t *testing.T, name string) {
	t.Helper()
	j := s.jobs[name]
	j.priority = map[string]string{"low": "high", "high": "low"}[j.priority]
	s.jobs[name] = j
	patch := fmt.Sprintf(`{"metadata":{"labels":{"kueue.x-k8s.io/priority-class":%q}}}`, j.priority)
	_, err := s.dynamic.Resource(j.kind.gvr()).Namespace(space).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
	s.happened["priority"]++
}

// judge fails the test unless a job runs whole, or has nothing and a reason.
func (s *sequence) judge(t *testing.T, j sequenceJob) {
	t.Helper()
	pods := s.selected(t, j.kind.selector+j.name)(context.Background())
	switch n := count(pods, runs); n {
	case j.workers:
		s.happened["runs"]++
	case 0:
		stdout, stderr, code := gangctlAt(t, s.Kubeconfig, "why-pending", j.name)
		first, _, _ := strings.Cut(stdout, "\n")
		if code < 3 || strings.HasPrefix(first, "FITS_NOW") || strings.HasPrefix(first, "UNKNOWN") {
			t.Errorf("%s %s waits, with %d pods: exit code %d\n%s%s", j.kind.name, j.name, len(pods), code, stdout, stderr)
		}
		s.happened["waits"]++
	default:
		t.Errorf("%d of %d members of %s run", n, j.workers, j.name)
	}
}

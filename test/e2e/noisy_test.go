package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/gangctl/gangctl/internal/leastscheduler"
	"github.com/gangctl/gangctl/internal/sandboxtest"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/sandbox/demo"
	"github.com/gangctl/gangctl/test/chaos"
)

// TestNoisyTenant times the gangs of one tenant, first undisturbed and then while another, who has the role edit in a namespace of his
// own, writes random objects there that an API server takes and no user means. They start as fast, and the scheduler is not restarted. Beside
// pods for which the API server itself takes up to a second they start as fast as it lets anybody.
// The environment sets how long:
//
//	GANGCTL_NOISY_SEEDS  how many seeds (1), from GANGCTL_NOISY_SEED (1) on
//	GANGCTL_NOISY_TIME   for how long each (20s), after half of that undisturbed, and before as long beside huge pods
func TestNoisyTenant(t *testing.T) {
	if !long() {
		t.Skip("it measures for minutes: make noisy")
	}
	seeds, first := number(t, "GANGCTL_NOISY_SEEDS", 1), number(t, "GANGCTL_NOISY_SEED", 1)
	length, err := time.ParseDuration(cmp.Or(os.Getenv("GANGCTL_NOISY_TIME"), "20s"))
	must(t, err)
	n := newNoisy(t)
	var calm, disturbed times
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			undisturbed, absurd := n.play(t, uint64(seed), length)
			calm, disturbed = append(calm, undisturbed...), append(disturbed, absurd...)
		})
	}
	t.Logf("all seeds: undisturbed %s, beside absurd objects %s", calm, disturbed)
	if len(disturbed) < 2000 {
		return // one in a hundred is too few to go by
	}
	for _, percent := range []int{50, 99} {
		if got, want := disturbed.at(percent), 2*calm.at(percent); got > want {
			t.Errorf("%d %% of the gangs of all seeds start within %s: want at most %s, twice as long as undisturbed ones take", percent, got, want)
		}
	}
}

// noisy is a cluster of two tenants, and a scheduler of its own that is watched.
type noisy struct {
	stage *demo.Stage
	sched *ownScheduler
	evil  tenant
	count int // of the gangs that were timed
}

func newNoisy(t *testing.T) *noisy {
	t.Helper()
	// What collecting garbage takes of two CPUs is no scheduler's to mend: this API server has the memory of one in production, and not a laptop's.
	on := sandboxtest.Start(t, sandboxtest.Options{Args: []string{"--nodes=0", "--run-for=0", "--scheduler=none"}, Env: []string{"GOMEMLIMIT=4GiB", "GOGC=off"}})
	n := &noisy{stage: newStageOn(t, on, demo.Scheduler{Title: "a scheduler of the test's own", Name: "none"})}
	must(t, n.stage.RunSandbox(t.Context(), "node", "add", "--count", "4", "--cpu", "32", "--memory", "64Gi", "--gpus", "4"))
	n.sched = startScheduler(t, n.stage.DataDir, nil, nil, "--serve", "volcano,kube-batch")
	n.evil = newTenant(t, n.stage, "noisy")
	// A quota as every namespace should have one: what is absurd has to be cheap.
	_, err := n.stage.Client().CoreV1().ResourceQuotas("noisy").Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("100"), corev1.ResourceRequestsCPU: resource.MustParse("16")}}}, metav1.CreateOptions{})
	must(t, err)
	return n
}

// play is a seed: half of the time for undisturbed gangs, all of it for those next to each noise. It returns the first two.
func (n *noisy) play(t *testing.T, seed uint64, length time.Duration) (calm, absurd times) {
	n.starts(t, length/10, n.ours) // what is slow for the first ones is not what is measured
	calm = n.starts(t, length/2, n.ours)[0]
	t.Logf("undisturbed %s", calm)
	t.Run("absurd objects", func(t *testing.T) {
		absurd = n.beside(t, chaos.NewNoise(seed), length, n.ours)[0]
		t.Logf("disturbed %s", absurd)
		n.within(t, absurd, calm)
	})
	t.Run("huge pods", func(t *testing.T) {
		must(t, leastscheduler.Start(t.Context(), n.stage.Config(), leastscheduler.Gangs{
			Label: "of", Size: func(string) int { return 4 }, Node: func() string { return "node-1" },
		}))
		all := n.beside(t, chaos.NewHeavyNoise(seed), length, n.ours, leastOf)
		t.Logf("disturbed    %s", all[0])
		t.Logf("at the least %s, which is what the API server takes", all[1])
		n.within(t, all[0], calm, all[1])
	})
	return calm, absurd
}

// within checks that gangs start in twice the time of the slower of others.
func (n *noisy) within(t *testing.T, got times, others ...times) {
	t.Helper()
	for _, percent := range []int{50, 99} {
		limit := 500 * time.Millisecond // below it no user waits, and the machine's own hiccups decide
		for _, other := range others {
			limit = max(limit, 2*other.at(percent))
		}
		if got.at(percent) > limit {
			t.Errorf("%d %% of the gangs start within %s: want at most %s", percent, got.at(percent), limit)
		}
	}
	select {
	case <-n.sched.done:
		t.Fatalf("the scheduler ended: %v", n.sched.ended)
	default:
	}
	for line := range strings.Lines(n.sched.output.String()) {
		if strings.Contains(line, "panic") || strings.Contains(line, "this is a bug") {
			t.Errorf("the scheduler said: %s", line)
		}
	}
	t.Logf("the scheduler's memory was %d MiB at most", peakOf(t, n.sched)>>20)
}

// beside times gangs while a tenant writes noise, which is removed again.
func (n *noisy) beside(t *testing.T, noise *chaos.Noise, length time.Duration, kinds ...gangOf) []times {
	t.Helper()
	ready := readyRequests(t, noise, length)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan map[string]int, 1)
	go func() { done <- n.noise(ctx, ready) }()
	all := n.starts(t, length, kinds...)
	cancel()
	written := <-done
	t.Logf("written: %v", written)
	if sum(written, "written") < 5 {
		t.Errorf("there was hardly any noise: %v", written)
	}
	n.clear(t)
	return all
}

func sum(counts map[string]int, suffix string) (n int) {
	for what, count := range counts {
		if strings.HasSuffix(what, suffix) {
			n += count
		}
	}
	return n
}

// times are how long gangs took from their creation until all members had nodes.
type times []time.Duration

// at is the time within which so many of a hundred started.
func (x times) at(percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(x))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

func (x times) String() string {
	return fmt.Sprintf("%d gangs: median %s, p99 %s", len(x), x.at(50).Round(time.Millisecond), x.at(99).Round(time.Millisecond))
}

// quietPace is how often a gang of the quiet tenant comes. Without a pause they would saturate the machine by themselves.
const quietPace = 250 * time.Millisecond

// gangOf has a pod be a member of a gang of four.
type gangOf func(p *corev1.Pod, name string)

// ours is a gang of our scheduler.
func (n *noisy) ours(p *corev1.Pod, name string) { labels.SetGroup(&p.ObjectMeta, name, 4) }

// leastOf is one of [leastscheduler].
func leastOf(p *corev1.Pod, _ string) { p.Spec.SchedulerName = leastscheduler.Name }

// starts times gangs of four, one after the other, from when the last member exists until all have nodes: by turns one of each kind, each the
// first every other time.
func (n *noisy) starts(t *testing.T, during time.Duration, kinds ...gangOf) []times {
	t.Helper()
	w, err := n.quiet().Watch(t.Context(), metav1.ListOptions{LabelSelector: "quiet=yes"})
	must(t, err)
	defer w.Stop()
	pace := time.NewTicker(quietPace)
	defer pace.Stop()
	all := make([]times, len(kinds))
	for end := time.Now().Add(during); time.Now().Before(end); <-pace.C {
		n.count++
		for i := range kinds {
			kind := (i + n.count) % len(kinds) // the first one waits for what began in the pause, and the other one does not
			all[kind] = append(all[kind], n.start(t, w, fmt.Sprintf("q-%d-%d", n.count, kind), kinds[kind]))
		}
	}
	return all
}

func (n *noisy) quiet() typedcorev1.PodInterface {
	return n.stage.Client().CoreV1().Pods(demo.Namespace)
}

// start times four pods.
func (n *noisy) start(t *testing.T, w watch.Interface, name string, set gangOf) time.Duration {
	t.Helper()
	for i := range 4 {
		p := pod(fmt.Sprintf("%s-%d", name, i), nil)
		p.Labels = map[string]string{"quiet": "yes", "of": name}
		set(p, name)
		_, err := n.quiet().Create(t.Context(), p, metav1.CreateOptions{})
		must(t, err)
	}
	start, placed := time.Now(), map[string]bool{}
	for len(placed) < 4 {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				t.Fatal("the watch of pods has ended")
			}
			p, ok := e.Object.(*corev1.Pod)
			switch {
			case !ok || e.Type == watch.Deleted || p.Labels["of"] != name:
			case p.Spec.NodeName != "":
				placed[p.Name] = true
			}
		case <-time.After(stepTimeout):
			t.Fatalf("of %s %d of 4 have nodes", name, len(placed))
		case <-n.sched.done:
			t.Fatalf("the scheduler ended: %v", n.sched.ended)
		}
	}
	took := time.Since(start)
	must(t, n.quiet().DeleteCollection(t.Context(), now(), metav1.ListOptions{LabelSelector: "of=" + name}))
	return took
}

// noiseRequest is noise that is ready to be sent: what it takes the noisy tenant's own computer to write it is not measured.
type noiseRequest struct {
	chaos.Write
	body []byte
}

// readyRequests are more than can be sent in a time.
func readyRequests(t *testing.T, noise *chaos.Noise, length time.Duration) (ready []noiseRequest) {
	t.Helper()
	for pauses := time.Duration(0); pauses < length; {
		r := noiseRequest{Write: noise.Next()}
		if r.body = r.Patch; r.body == nil && r.Object != nil {
			body, err := r.Object.MarshalJSON()
			must(t, err)
			r.body = body
		}
		ready, pauses = append(ready, r), pauses+r.After
	}
	return ready
}

// noise writes until ctx ends, and counts what was written and what was refused, by what it was.
func (n *noisy) noise(ctx context.Context, ready []noiseRequest) map[string]int {
	counts := map[string]int{}
	for _, what := range ready {
		err := n.evil.write(ctx, what)
		switch {
		case ctx.Err() != nil:
			return counts
		case err == nil:
			counts[what.Name+" written"]++
		default:
			counts[what.Name+" refused"]++
		}
		select {
		case <-ctx.Done():
		case <-time.After(what.After):
		}
	}
	return counts
}

// write sends a request, as the tenant. What is answered is not decoded, but for the UID of what is to own itself.
func (e tenant) write(ctx context.Context, what noiseRequest) error {
	rest, collection := e.client.Discovery().RESTClient(), "/apis/"+what.Resource.GroupVersion().String()
	if what.Resource.Group == "" {
		collection = "/api/" + what.Resource.Version
	}
	collection += "/namespaces/" + e.namespace + "/" + what.Resource.Resource
	switch {
	case what.Delete:
		return rest.Delete().AbsPath(collection).SetHeader("Content-Type", "application/json").Body([]byte(`{"gracePeriodSeconds":0}`)).Do(ctx).Error()
	case what.Patch != nil:
		return rest.Patch(types.MergePatchType).AbsPath(collection, what.Object.GetName()).Body(what.body).Do(ctx).Error()
	}
	made, err := rest.Post().AbsPath(collection).SetHeader("Content-Type", "application/json").Body(what.body).DoRaw(ctx)
	if err != nil || !what.Circle {
		return err
	}
	var owner metav1.PartialObjectMetadata // what owns itself is known only now
	if err := json.Unmarshal(made, &owner); err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":true}]}}`, owner.APIVersion, owner.Kind, owner.Name, owner.UID)
	return rest.Patch(types.MergePatchType).AbsPath(collection, owner.Name).Body(patch).Do(ctx).Error()
}

// clear removes what the tenant wrote, for the next seed.
func (n *noisy) clear(t *testing.T) {
	t.Helper()
	for _, resource := range chaos.NoiseResources() {
		if err := n.evil.dynamic.Resource(resource).Namespace("noisy").DeleteCollection(t.Context(), now(), metav1.ListOptions{}); err != nil {
			t.Logf("remove %s: %v", resource.Resource, err)
		}
	}
	eventually(t, "the tenant's pods are gone", func(ctx context.Context) bool {
		pods, err := n.evil.client.CoreV1().Pods("noisy").List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0
	})
}

var peak = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakOf is the largest resident memory of a scheduler since it started, in bytes.
func peakOf(t *testing.T, s *ownScheduler) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	must(t, err)
	m := peak.FindSubmatch(status)
	if m == nil {
		t.Fatalf("no peak in\n%s", status)
	}
	kib, err := strconv.ParseInt(string(m[1]), 10, 64)
	must(t, err)
	return kib << 10
}

// TestHostileMemory compares the memory of the scheduler, and of the commands about all namespaces, with and without objects that once
// took all of it. The scheduler is restarted each time: it was its first look at the cluster that was the worst.
func TestHostileMemory(t *testing.T) {
	n := newNoisy(t)
	pendingJob(t, n.stage)
	measure := func() map[string]int64 {
		n.sched.stop()
		n.sched.start()
		n.starts(t, 3*time.Second, n.ours)
		all := n.evil.commands(t, n.stage)
		all["scheduler"] = peakOf(t, n.sched) >> 10
		return all
	}
	before := measure()
	hugeMinimum(t, n.stage, n.evil)
	hugeParallelism(t, n.stage, n.evil)
	after := measure()
	for what, kib := range after {
		t.Logf("%-20s %3d MiB without, %4d MiB with, × %.2f", what, before[what]>>10, kib>>10, float64(kib)/float64(before[what]))
		if float64(kib) > 1.5*float64(before[what]) {
			t.Errorf("%s takes %d MiB with such objects, and %d without: want at most 1.5 times as much", what, kib>>10, before[what]>>10)
		}
	}
}

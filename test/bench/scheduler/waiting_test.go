package scheduler

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/sandboxtest"
)

// waiting are gangs that no node has room for.
var waiting = workload{
	name: "waiting", text: "1,000 gangs of 3 that wait, and a node that changes each second", gangs: equal(1000, 3), cpu: "100", memory: "100Mi", filled: "200m",
}

const (
	// answersWithin is the time in which all gangs that came at once have an answer, and settlesWithin that in which no answer has been older than
	// oldestAnswer for settledFor. They are watched for as long as watched then.
	answersWithin, settlesWithin, settledFor, watched = 3 * time.Minute, 4 * time.Minute, time.Minute, 3 * time.Minute
	// oldestAnswer is how long ago an answer was last found to be true, at most.
	oldestAnswer = time.Minute
	// explainerShare is how much of a core the explainer uses over any ten seconds, at most.
	explainerShare = 0.05
	// between is the time between two looks, and span that over which shares are measured.
	between, span = 5 * time.Second, 2
)

// TestWaitingGangsAreExplained: 1,000 gangs wait on 5,000 nodes, one of which changes each second, so that no answer holds for good. Each has an
// answer, none is older than a minute, and over any ten seconds that takes a twentieth of a core. GANGCTL_BENCH_FILLERS=10 measures it beside 50,000 pods.
func TestWaitingGangsAreExplained(t *testing.T) {
	if os.Getenv("GANGCTL_LONG") == "" {
		t.Skip("it measures: make e2e-long")
	}
	work := waiting
	work.fillers = number(t, "GANGCTL_BENCH_FILLERS", 0)
	m := newMeasurement(t, bare(t), work, peers[0])
	m.prepare(5000)
	scheduler := m.start(serving...)
	time.Sleep(warmUp)
	m.create(func(string) {})
	created := time.Now()
	go m.changeNodes(t.Context())
	sandboxtest.Eventually(t, answersWithin, func() error {
		if n := m.answers(t); n < len(waiting.gangs) {
			return fmt.Errorf("%d gangs have an answer", n)
		}
		return nil
	})
	t.Logf("all have an answer after %s", time.Since(created).Round(time.Second))
	look := func() sample { return take(t, scheduler.Process.Pid) }
	settled := time.Now()
	for end := settled.Add(settlesWithin); time.Since(settled) < settledFor; time.Sleep(between) {
		if s := look(); s.oldest > oldestAnswer {
			settled = time.Now()
		}
		if time.Now().After(end) {
			t.Fatalf("an answer was older than %s %s ago", oldestAnswer, time.Since(settled).Round(time.Second))
		}
	}
	t.Logf("none is older than %s from %s on", oldestAnswer, settled.Sub(created).Round(time.Second))
	var samples []sample
	for end := time.Now().Add(watched); time.Now().Before(end); time.Sleep(between) {
		samples = append(samples, look())
	}
	var most sample
	for i, s := range samples {
		most.oldest = max(most.oldest, s.oldest)
		if i < span {
			continue
		}
		before := samples[i-span]
		passed := s.at.Sub(before.at)
		most.cpu, most.worked = max(most.cpu, (s.cpu-before.cpu)*time.Second/passed), max(most.worked, (s.worked-before.worked)*time.Second/passed)
	}
	// Five minutes after they failed all gangs are tried again, within some ten seconds: that is not the explainer's.
	t.Logf("in %s: the oldest answer %s, the explainer at most %.1f %% of a core over ten seconds, the scheduler %.1f %%; %v answers were written",
		watched, most.oldest, 100*most.worked.Seconds(), 100*most.cpu.Seconds(), samples[len(samples)-1].written-samples[0].written)
	if most.oldest > oldestAnswer {
		t.Errorf("an answer was %s old", most.oldest)
	}
	if most.worked.Seconds() > explainerShare {
		t.Errorf("the explainer used %.1f %% of a core", 100*most.worked.Seconds())
	}
}

// sample is what is seen of a scheduler at a moment.
type sample struct {
	at                  time.Time
	cpu, worked, oldest time.Duration
	written             float64
}

// take looks at a scheduler that serves.
func take(t *testing.T, pid int) sample {
	t.Helper()
	text, err := fetch(t.Context(), untrusting(), servingAt+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	metrics := metricsOf(t, text)
	value := func(name string) float64 {
		family := metrics["gangctl_scheduler_"+name].GetMetric()
		if len(family) != 1 {
			t.Fatalf("the scheduler has no metric %s", name)
		}
		return family[0].GetGauge().GetValue() + family[0].GetCounter().GetValue()
	}
	seconds := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	return sample{
		at: time.Now(), cpu: cpuOf(t, pid), oldest: seconds(value("oldest_answer_seconds")),
		worked: seconds(value("explaining_seconds_total")), written: value("published_answers_total"),
	}
}

// changeNodes changes a label of a node each second.
func (m *measurement) changeNodes(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"example.com/changed":"%d"}}}`, i)
		_, err := m.typed.CoreV1().Nodes().Patch(ctx, nodeName(i%m.nodes), types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil && ctx.Err() == nil {
			m.b.Errorf("change a node: %v", err)
		}
	}
}

// answers is of how many gangs it is published why they wait.
func (m *measurement) answers(t *testing.T) (n int) {
	t.Helper()
	events, err := m.typed.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range events.Items {
		if e := &events.Items[i]; strings.HasPrefix(e.Name, "why-pending.") {
			n++
		}
	}
	return n
}

package explainer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/published"
	"github.com/gangctl/gangctl/pkg/gang"
)

var key = gang.Key{Dialect: gang.SchedulerPlugins, Namespace: "team", Name: "gang"}

// fixture is an explainer for a cluster with one gang that waits for GPUs.
type fixture struct {
	*Explainer
	snap      *snapshot.Snapshot
	taken     int
	published []*answer.Answer
	fail      error
	// recalled is what was published before, once it can be read.
	recalled  map[gang.Key]*answer.Answer
	recallErr error
	queries   int
	rests     int
	next      atomic.Bool // the gang is next
	version   atomic.Int64
}

func newFixture() *fixture {
	s := &fixture{snap: clustertest.New().Nodes(1, 4).Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 4}).Done()}
	s.Explainer = New(Config{
		Snapshot: func(context.Context) (*snapshot.Snapshot, error) { s.taken++; return s.snap, nil },
		Rest:     func() { s.rests++ },
		Version:  func() string { return fmt.Sprint(s.version.Load()) },
		Members: func(k gang.Key) (pods []*corev1.Pod) {
			for _, pod := range s.snap.Pods {
				if k == key {
					pods = append(pods, pod)
				}
			}
			return pods
		},
		Next: func(gang.Key) bool { return s.next.Load() },
		Publish: func(_ context.Context, _ gang.Key, a *answer.Answer) error {
			if s.fail == nil {
				s.published = append(s.published, a)
			}
			return s.fail
		},
		Published: func(context.Context) (map[gang.Key]*answer.Answer, error) {
			s.queries++
			return s.recalled, s.recallErr
		},
		Same:  published.Same,
		Clock: clock.RealClock{},
		CPU:   func() time.Duration { return time.Duration(time.Now().UnixNano()) }, // what takes time is work
	})
	return s
}

// numbered is one gang of a crowd.
func numbered(i int) gang.Key {
	return gang.Key{Dialect: gang.SchedulerPlugins, Namespace: "team", Name: fmt.Sprintf("gang-%03d", i)}
}

// crowd has the cluster hold gangs of one pod that wait.
func (s *fixture) crowd(gangs int) {
	b := clustertest.New().Nodes(1, 4)
	for i := range gangs {
		b.Add(clustertest.Gang{Name: numbered(i).Name, Workers: 1, GPUs: 8})
	}
	s.snap = b.Done()
	s.Members = func(k gang.Key) (pods []*corev1.Pod) {
		for _, pod := range s.snap.Pods {
			if k != key && strings.HasPrefix(pod.Name, k.Name+"-") {
				pods = append(pods, pod)
			}
		}
		return pods
	}
}

// play runs the explainer in virtual time.
func play(t *testing.T, script func(t *testing.T, s *fixture), prepare ...func(*fixture)) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture()
		for _, p := range prepare {
			p(s)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.Run(ctx) }()
		script(t, s)
		cancel()
		<-done
	})
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// leaves compares how many gangs are still to be looked at.
func (s *fixture) leaves(t *testing.T, want float64) {
	t.Helper()
	if got, err := testutil.GetGaugeMetricValue(s.left); err != nil || got != want {
		t.Errorf("%v: %v gangs are left, want %v", err, got, want)
	}
}

func TestAWaitingGangIsExplainedOnce(t *testing.T) {
	play(t, func(t *testing.T, s *fixture) {
		s.Register(metrics.NewKubeRegistry().MustRegister)
		for range 5 {
			s.Touch(key)
			pass(debounce / 10)
		}
		s.leaves(t, 1)
		pass(debounce)
		s.leaves(t, 0)
		if len(s.published) != 1 || s.taken != 1 {
			t.Fatalf("%d answers from %d snapshots", len(s.published), s.taken)
		}
		if a := s.published[0]; a.Verdict != answer.Blocked && a.Verdict != answer.Waiting || a.Job.Name != "gang" || a.Primary == nil {
			t.Errorf("published %+v", a)
		}
		s.Touch(key)
		pass(2 * debounce)
		if len(s.published) != 1 {
			t.Errorf("the same answer was published %d times", len(s.published))
		}
		pass(time.Minute)
		if s.taken != 2 {
			t.Errorf("%d snapshots though nothing was touched", s.taken)
		}
		pass(renewal + recheck)
		if len(s.published) != 2 {
			t.Errorf("published %d times, want once more before it is forgotten", len(s.published))
		}
	})
}

// Where a node or a pod has changed, the gangs that wait are looked at again though nothing happened to them.
func TestAnAnswerIsCheckedWhereTheClusterHasChanged(t *testing.T) {
	play(t, func(t *testing.T, s *fixture) {
		s.Touch(key)
		pass(2 * refresh)
		if s.taken != 1 {
			t.Errorf("%d snapshots while nothing changed", s.taken)
		}
		s.version.Add(1)
		pass(2 * refresh)
		if s.taken != 2 {
			t.Errorf("%d snapshots after a change", s.taken)
		}
	})
}

// A hundred answers take 20 seconds at the pace. Each round begins in time for its last answer to be given before the one that it replaces is a minute
// old, though the cluster changes every second; and answers do not become old while nothing changes.
func TestNoAnswerIsOlderThanAMinute(t *testing.T) {
	const gangs = 100
	play(t, func(t *testing.T, s *fixture) {
		s.Register(metrics.NewKubeRegistry().MustRegister)
		for i := range gangs {
			s.Touch(numbered(i))
		}
		pass(10 * time.Minute)
		s.version.Add(1)
		for range 600 {
			pass(time.Second)
			s.version.Add(1)
			age, err := testutil.GetGaugeMetricValue(s.age)
			if err != nil || age > oldest.Seconds() {
				t.Fatalf("an answer is %v s old (%v)", age, err)
			}
		}
		if s.taken > 36 {
			t.Errorf("%d looks at the cluster in 20 minutes", s.taken)
		}
	}, func(s *fixture) {
		s.crowd(gangs)
		same := s.Same
		s.Same = func(a, b *answer.Answer) bool { // an answer takes eight milliseconds, all of them 20 seconds at the pace
			time.Sleep(8 * time.Millisecond)
			return same(a, b)
		}
	})
}

// Hundreds of gangs wait, and to answer for each takes a while. Over any ten seconds the explainer works for a twentieth at most. Each gang
// gets an answer, the later ones without advice first.
func TestAnExplainerTakesATwentiethOfACore(t *testing.T) {
	const gangs = 100
	var ends []time.Time
	first, advised := map[gang.Key]bool{}, map[gang.Key]bool{}
	play(t, func(t *testing.T, s *fixture) {
		for i := range gangs {
			s.Touch(numbered(i))
		}
		pass(10 * time.Minute)
		if len(first) != gangs || len(advised) != gangs {
			t.Errorf("%d gangs have answers and %d have advice, of %d", len(first), len(advised), gangs)
		}
		for i := range ends {
			n := 0
			for _, end := range ends[i:] {
				if end.Sub(ends[i]) < window {
					n++
				}
			}
			if worked := time.Duration(n) * 10 * time.Millisecond; worked > window/20 {
				t.Fatalf("in %s from %s it worked for %s", window, ends[i], worked)
			}
		}
	}, func(s *fixture) {
		s.crowd(gangs)
		s.Publish = func(_ context.Context, k gang.Key, a *answer.Answer) error {
			first[k] = true
			if len(a.Unblock) > 0 {
				advised[k] = true
			}
			time.Sleep(10 * time.Millisecond)
			ends = append(ends, time.Now())
			return nil
		}
	})
}

// What the cluster is read from is given up when no gang has waited for a while, and not where gangs wait now and then, or one fails again and again.
func TestRestsWhereNoGangWaits(t *testing.T) {
	play(t, func(t *testing.T, s *fixture) {
		waits := s.Members
		for range 4 {
			s.Members = waits
			s.Touch(key)
			pass(time.Minute)
			s.Members = func(gang.Key) []*corev1.Pod { return nil }
			s.Touch(key)
			pass(restAfter - time.Minute)
		}
		if s.rests != 0 || s.taken != 4 {
			t.Errorf("rested %d times, and looked %d times", s.rests, s.taken)
		}
		pass(2 * time.Minute)
		if s.rests != 1 {
			t.Errorf("rested %d times where none waits", s.rests)
		}
		s.Members, s.fail = waits, errors.New("no")
		s.Touch(key)
		pass(2 * lastRetry)
		if s.rests != 1 {
			t.Errorf("rested %d times while one fails", s.rests)
		}
	})
}

func TestANewReasonIsPublished(t *testing.T) {
	play(t, func(t *testing.T, s *fixture) {
		s.Touch(key)
		pass(2 * debounce)
		s.snap = clustertest.New().Nodes(1, 4).Runs("other", 4, "n1").Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 4}).Done()
		s.Touch(key)
		pass(debounce + debounce/2)
		if len(s.published) != 1 {
			t.Errorf("published %d times within %s", len(s.published), minInterval)
		}
		pass(minInterval)
		if len(s.published) != 2 || published.Same(s.published[0], s.published[1]) {
			t.Errorf("published %d times", len(s.published))
		}
	})
}

// A gang that is next in the queue has nothing to be told. One that is found not to fit, or that nobody comes to, has.
func TestAGangThatIsNextIsNotExplained(t *testing.T) {
	play(t, func(t *testing.T, s *fixture) {
		s.next.Store(true)
		s.Touch(key)
		pass(time.Minute)
		if s.taken != 0 || len(s.published) != 0 {
			t.Errorf("%d answers from %d snapshots while it was next", len(s.published), s.taken)
		}
		s.next.Store(false)
		pass(2 * debounce)
		if len(s.published) != 1 {
			t.Errorf("published %d times when it was not", len(s.published))
		}
	})
}

// What changes every few seconds is not published every few seconds.
func TestPublishingIsBounded(t *testing.T) {
	play(t, func(t *testing.T, s *fixture) {
		for second := range 300 {
			b := clustertest.New().Nodes(1, 4).Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 4})
			if second/7%2 == 0 {
				b = clustertest.New().Nodes(1, 4).Runs("other", 4, "n1").Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 4})
			}
			s.snap = b.Done()
			s.Touch(key)
			pass(time.Second)
		}
		if n, limit := len(s.published), 1+int(300*time.Second/minInterval); n > limit || n < 3 {
			t.Errorf("published %d times in five minutes, want at most %d", n, limit)
		}
	})
}

func TestAGangThatStartsTakesItsAnswerBack(t *testing.T) {
	play(t, func(t *testing.T, s *fixture) {
		s.Touch(key)
		pass(2 * debounce)
		s.snap = clustertest.New().Nodes(1, 4).Done()
		s.Touch(key)
		pass(2 * debounce)
		if len(s.published) != 2 || s.published[1].Verdict != answer.Running || s.published[1].Job != s.published[0].Job {
			t.Errorf("published %+v", s.published)
		}
		s.Touch(key)
		pass(2 * debounce)
		if len(s.published) != 2 {
			t.Error("it was taken back twice")
		}
	})
}

func TestAGangThatStartsAtOnceCostsNothing(t *testing.T) {
	play(t, func(t *testing.T, s *fixture) {
		s.Touch(key)
		s.snap = clustertest.New().Nodes(1, 4).Done()
		pass(2 * debounce)
		if s.taken+len(s.published) != 0 {
			t.Errorf("%d snapshots and %d answers for a gang that runs", s.taken, len(s.published))
		}
	})
}

// A gang has its own time to start, whoever else is about to be explained.
func TestAGangThatComesWhileOthersWaitHasItsTime(t *testing.T) {
	play(t, func(t *testing.T, s *fixture) {
		s.Touch(gang.Key{Dialect: gang.SchedulerPlugins, Namespace: "team", Name: "another"})
		pass(debounce * 9 / 10)
		s.Touch(key)
		pass(debounce * 9 / 10)
		if len(s.published) != 0 {
			t.Errorf("explained after less than %s", debounce)
		}
		pass(debounce)
		if len(s.published) != 1 {
			t.Errorf("%d answers, want the one about the gang that still waits", len(s.published))
		}
	})
}

// What is known of nodes outlives a round in which nothing is to be explained, and a look that fails, and not the last gang that waits.
func TestKnownNodesAreKept(t *testing.T) {
	play(t, func(t *testing.T, s *fixture) {
		knows := func() bool {
			synctest.Wait()
			return s.sight != nil || !reflect.ValueOf(s.known).IsZero()
		}
		s.Touch(key)
		pass(2 * debounce)
		if !knows() {
			t.Error("nothing is known after the first look")
		}
		another := gang.Key{Dialect: gang.SchedulerPlugins, Namespace: "team", Name: "another"} // which waits for nothing
		s.Touch(another)
		pass(2 * debounce)
		if s.sight != nil || !knows() {
			t.Error("what was known is given up though a gang waits")
		}
		was := s.Snapshot
		s.Snapshot = func(context.Context) (*snapshot.Snapshot, error) { return nil, errors.New("the API server is away") }
		s.version.Add(1)
		s.Touch(key)
		pass(minInterval + 2*debounce)
		if !knows() {
			t.Error("what was known is given up though a gang waits, when a look failed")
		}
		s.Snapshot = was
		s.snap = clustertest.New().Nodes(1, 4).Done()
		s.Touch(key)
		pass(minInterval + 2*debounce)
		s.Touch(another)
		pass(restAfter + 2*debounce)
		if knows() {
			t.Error("nodes are kept though no gang waits")
		}
	})
}

// Many gangs wait, each of which takes a while to explain. They are explained in small rounds, oldest first, with rests between, and an
// answer that became wrong is withdrawn before them.
func TestRoundsAreShort(t *testing.T) {
	const gangs = 20
	var order []string
	var began []time.Time
	play(t, func(t *testing.T, s *fixture) {
		for i := range gangs {
			s.Touch(numbered(i))
			pass(time.Millisecond)
		}
		s.Touch(key)
		pass(debounce + time.Millisecond)
		if len(order) == 0 || order[0] != "withdrawn" {
			t.Errorf("first came %v, want the answer that became wrong", order)
			return
		}
		pass(time.Hour)
		if want := gangs + 1; len(order) < want || order[1] != numbered(0).Name || order[gangs] != numbered(gangs-1).Name {
			t.Errorf("order %v, want by age", order)
		}
		// Two fill the allowance, and the third was begun within it.
		for i := 3; i < len(began); i++ {
			if passed := began[i].Sub(began[i-3]); passed < window {
				t.Errorf("answers %d to %d, of half the allowance each, were begun within %s", i-3, i, passed)
			}
		}
	}, func(s *fixture) {
		s.crowd(gangs)
		at := time.Now()
		s.recalled = map[gang.Key]*answer.Answer{key: {Job: answer.Job{Name: "gang"}, Snapshot: answer.SnapshotStamp{At: &at}}}
		s.Publish = func(_ context.Context, k gang.Key, a *answer.Answer) error {
			if a.Verdict == answer.Running {
				order = append(order, "withdrawn")
				return nil
			}
			order, began = append(order, k.Name), append(began, time.Now())
			time.Sleep(allowance / 2)
			return nil
		}
	})
}

// One answer takes a hundred times what is allowed. The others rest for two windows, and not for a hundred; an answer that became wrong is
// withdrawn meanwhile, and the gang that took so long makes up for it alone.
func TestAnOverlongAnswerDoesNotSilenceOthers(t *testing.T) {
	const took = 100 * allowance
	named := func(name string) gang.Key {
		return gang.Key{Dialect: gang.SchedulerPlugins, Namespace: "team", Name: name}
	}
	at := map[string][]time.Time{}
	play(t, func(t *testing.T, s *fixture) {
		s.Touch(named("started"))
		pass(time.Millisecond)
		s.Touch(named("slow"))
		pass(debounce + took + time.Second)
		if len(at["started"]) != 1 || len(at["slow"]) != 1 {
			t.Errorf("published %v", at)
			return
		}
		start := time.Now()
		for _, name := range []string{"calm", "started", "slow"} {
			s.Touch(named(name))
		}
		pass(debounce + time.Millisecond)
		if len(at["started"]) != 2 {
			t.Errorf("an answer that became wrong is not withdrawn after %s", time.Since(start))
		}
		pass(longest*window + time.Second - debounce)
		if len(at["calm"]) != 1 {
			t.Errorf("after %s another gang has no answer", time.Since(start))
		}
		s.version.Add(1)
		pass(start.Add(99 * window).Sub(time.Now()))
		if len(at["slow"]) != 1 {
			t.Errorf("the slow gang was explained after %s", at["slow"][1].Sub(start))
		}
		pass(recheck + renewal)
		if len(at["slow"]) < 2 {
			t.Error("the slow gang was never explained again")
		}
	}, func(s *fixture) {
		s.snap = clustertest.New().Nodes(1, 4).Add(clustertest.Gang{Name: "slow", Workers: 1, GPUs: 8}).Add(clustertest.Gang{Name: "calm", Workers: 1, GPUs: 8}).
			Add(clustertest.Gang{Name: "started", Workers: 1, GPUs: 8}).Done()
		s.Same = func(a, b *answer.Answer) bool { return false }
		s.Members = func(k gang.Key) (pods []*corev1.Pod) {
			for _, pod := range s.snap.Pods {
				if strings.HasPrefix(pod.Name, k.Name+"-") && (k.Name != "started" || len(at["slow"]) == 0) {
					pods = append(pods, pod)
				}
			}
			return pods
		}
		s.Publish = func(_ context.Context, k gang.Key, a *answer.Answer) error {
			at[k.Name] = append(at[k.Name], time.Now())
			if k.Name == "slow" {
				time.Sleep(took)
			}
			return nil
		}
	})
}

// What a tenant wrote makes the explanation of his gang panic, or its answer unwritable. The others are explained, and his is not tried
// again before it changes, or ever less often.
func TestOneGangThatFailsStopsNoOther(t *testing.T) {
	evil := gang.Key{Dialect: gang.SchedulerPlugins, Namespace: "evil", Name: "gang"}
	for name, tt := range map[string]struct {
		fail        func() error
		least, most int // tries
	}{
		"panic":   {func() error { panic("a nil map") }, 1, 1},
		"invalid": {func() error { return apierrors.NewInvalid(schema.GroupKind{Kind: "Event"}, "My_Gang", nil) }, 5, 20},
	} {
		t.Run(name, func(t *testing.T) {
			tries, good := 0, 0
			play(t, func(t *testing.T, s *fixture) {
				for range 60 * 60 {
					s.Touch(evil)
					s.Touch(key)
					pass(time.Second)
				}
				if good == 0 || s.current[key].answer == nil {
					t.Error("another gang has no answer")
				}
				if tries < tt.least || tries > tt.most {
					t.Errorf("%d tries in an hour", tries)
				}
			}, func(s *fixture) {
				members := s.Members
				s.Members = func(gang.Key) []*corev1.Pod { return members(key) }
				s.Publish = func(_ context.Context, k gang.Key, a *answer.Answer) error {
					if k == evil {
						tries++
						return tt.fail()
					}
					good++
					return nil
				}
			})
		})
	}
}

// An API server that is away is not asked again and again.
func TestASnapshotThatFailsIsTakenAgainLater(t *testing.T) {
	play(t, func(t *testing.T, s *fixture) {
		tries, away := 0, true
		take := s.Snapshot
		s.Snapshot = func(ctx context.Context) (*snapshot.Snapshot, error) {
			if tries++; away {
				return nil, errors.New("the API server is away")
			}
			return take(ctx)
		}
		s.Touch(key)
		pass(time.Minute)
		if want := int(time.Minute / debounce); tries == 0 || tries > want {
			t.Errorf("%d snapshots were tried in a minute, %d at most", tries, want)
		}
		away = false
		pass(2 * debounce)
		if len(s.published) != 1 {
			t.Errorf("published %d times after the failure", len(s.published))
		}
	})
}

func TestAFailedWriteIsTriedAgain(t *testing.T) {
	play(t, func(t *testing.T, s *fixture) {
		s.fail = errors.New("the API server is away")
		s.Touch(key)
		pass(5 * debounce)
		s.fail = nil
		pass(5 * debounce)
		if len(s.published) != 1 {
			t.Errorf("published %d times after the failure", len(s.published))
		}
	})
}

func TestAFailureToTakeBackIsTriedAgain(t *testing.T) {
	play(t, func(t *testing.T, s *fixture) {
		s.Touch(key)
		pass(2 * debounce)
		s.snap = clustertest.New().Nodes(1, 4).Done()
		s.fail = errors.New("the API server is away")
		s.Touch(key)
		pass(5 * debounce)
		s.fail = nil
		pass(5 * debounce)
		if len(s.published) != 2 || s.published[1].Verdict != answer.Running {
			t.Errorf("published %+v, want that nobody waits any more", s.published)
		}
	})
}

// An answer that another leader published is gone on with: nothing is written while
// it is true, and it is taken back when it is not, though this one never gave it.
func TestWhatAnotherPublished(t *testing.T) {
	before := func(s *fixture) {
		a, err := diagnose.NewExplainer(s.snap).Explain(context.Background(), diagnose.Query{Namespace: "team", Name: "gang"}, diagnose.Options{})
		if err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-time.Minute)
		a.Snapshot.At = &at
		s.recalled = map[gang.Key]*answer.Answer{key: a}
	}
	starts := func(s *fixture) { before(s); s.snap = clustertest.New().Nodes(1, 4).Done() }
	play(t, func(t *testing.T, s *fixture) {
		pass(3 * debounce)
		if len(s.published) != 0 || s.taken != 1 {
			t.Errorf("published %+v from %d snapshots, though it is true still", s.published, s.taken)
		}
		pass(10 * time.Minute)
		if s.queries != 1 {
			t.Errorf("read %d times what was published before", s.queries)
		}
	}, before)
	play(t, func(t *testing.T, s *fixture) {
		pass(3 * debounce)
		if len(s.published) != 1 || s.published[0].Verdict != answer.Running || s.published[0].Job != s.recalled[key].Job {
			t.Errorf("published %+v, want that nobody waits any more", s.published)
		}
		pass(refresh)
		if len(s.published) != 1 {
			t.Error("it was taken back twice")
		}
	}, starts)
	play(t, func(t *testing.T, s *fixture) {
		pass(3 * debounce)
		s.recallErr = nil
		pass(refresh)
		if len(s.published) != 1 || s.queries < 2 {
			t.Errorf("published %+v though it can be read now", s.published)
		}
	}, starts, func(s *fixture) { s.recallErr = errors.New("the API server is away") })
	play(t, func(t *testing.T, s *fixture) {
		pass(10 * time.Minute)
		if s.queries != 1 {
			t.Errorf("queries %d times for what it may not read", s.queries)
		}
	}, starts, func(s *fixture) {
		s.recallErr = apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", nil)
	})
}

// A round that begins with a look at the cluster waits until there is time for that: beside many pods it takes most of what a window allows.
func TestALookFitsIntoTheWindow(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	e := &Explainer{Config: Config{Clock: clock}}
	at := wait{entry: entry{since: clock.Now()}}
	advice := wait{entry: entry{since: clock.Now(), advice: true}}
	for name, c := range map[string]struct {
		sight *sight
		took  time.Duration
		first time.Duration
		want  time.Duration
	}{
		"no look yet":           {nil, 0, 0, chunk},
		"a look":                {nil, chunk, 0, 2 * chunk},
		"with its first answer": {nil, chunk, chunk, 3 * chunk},
		"a long look":           {nil, 10 * allowance, 0, allowance},
		"it sees":               {&sight{at: clock.Now()}, 3 * chunk, chunk, chunk},
		"it saw":                {&sight{at: clock.Now().Add(-sightFor)}, 2 * chunk, 0, 3 * chunk},
	} {
		e.sight, e.looked, e.first = c.sight, c.took, c.first
		if got := e.least(at); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if e.sight = (&sight{at: clock.Now()}); e.least(advice) != adviceBudget { // also of a gang that is the first of a round
		t.Errorf("advice begins with %s", e.least(advice))
	}
}

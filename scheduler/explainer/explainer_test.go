package explainer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/published"
	"github.com/gangctl/gangctl/pkg/gang"
)

var key = gang.Key{Dialect: gang.SchedulerPlugins, Namespace: "team", Name: "gang"}

// stage is an explainer for a cluster with one gang that waits for GPUs.
type stage struct {
	*Explainer
	snap      *snapshot.Snapshot
	taken     int
	published []*answer.Answer
	fail      error
	// standing is what was published before, once it can be read.
	standing map[gang.Key]*answer.Answer
	deaf     error
	asked    int
}

func newStage() *stage {
	s := &stage{snap: clustertest.New().Nodes(1, 4).Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 4}).Done()}
	s.Explainer = (&Explainer{
		Snapshot: func(context.Context) (*snapshot.Snapshot, error) { s.taken++; return s.snap, nil },
		Members: func(k gang.Key) (pods []*corev1.Pod) {
			for _, pod := range s.snap.Pods {
				if k == key {
					pods = append(pods, pod)
				}
			}
			return pods
		},
		Publish: func(_ context.Context, _ gang.Key, a *answer.Answer) error {
			if s.fail == nil {
				s.published = append(s.published, a)
			}
			return s.fail
		},
		Standing: func(context.Context) (map[gang.Key]*answer.Answer, error) { s.asked++; return s.standing, s.deaf },
		Same:     published.Same,
		Clock:    clock.RealClock{},
	}).Complete()
	return s
}

// play runs the explainer in virtual time.
func play(t *testing.T, script func(t *testing.T, s *stage), prepare ...func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
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

func TestAWaitingGangIsExplainedOnce(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		for range 5 {
			s.Touch(key)
			pass(settle / 10)
		}
		pass(settle)
		if len(s.published) != 1 || s.taken != 1 {
			t.Fatalf("%d answers from %d snapshots", len(s.published), s.taken)
		}
		if a := s.published[0]; a.Verdict != answer.Blocked && a.Verdict != answer.Waiting || a.Job.Name != "gang" || a.Primary == nil {
			t.Errorf("published %+v", a)
		}
		s.Touch(key)
		pass(2 * settle)
		if len(s.published) != 1 {
			t.Errorf("the same answer was published %d times", len(s.published))
		}
		pass(time.Minute)
		if s.taken != 2 {
			t.Errorf("%d snapshots though nothing was touched", s.taken)
		}
		pass(renewal + refresh)
		if len(s.published) != 2 {
			t.Errorf("published %d times, want once more before it is forgotten", len(s.published))
		}
	})
}

func TestANewReasonIsPublished(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.Touch(key)
		pass(2 * settle)
		s.snap = clustertest.New().Nodes(1, 4).Runs("other", 4, "n1").Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 4}).Done()
		s.Touch(key)
		pass(2 * settle)
		if len(s.published) != 1 {
			t.Errorf("published %d times within %s", len(s.published), gap)
		}
		pass(gap)
		if len(s.published) != 2 || published.Same(s.published[0], s.published[1]) {
			t.Errorf("published %d times", len(s.published))
		}
	})
}

// What changes every second is not published every second.
func TestPublishingIsBounded(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		for second := range 300 {
			b := clustertest.New().Nodes(1, 4).Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 4})
			if second%2 == 0 {
				b = clustertest.New().Nodes(1, 4).Runs("other", 4, "n1").Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 4})
			}
			s.snap = b.Done()
			s.Touch(key)
			pass(time.Second)
		}
		if n, limit := len(s.published), 1+int(300*time.Second/gap); n > limit || n < 3 {
			t.Errorf("published %d times in five minutes, want at most %d", n, limit)
		}
	})
}

func TestAGangThatStartsTakesItsAnswerBack(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.Touch(key)
		pass(2 * settle)
		s.snap = clustertest.New().Nodes(1, 4).Done()
		s.Touch(key)
		pass(2 * settle)
		if len(s.published) != 2 || s.published[1].Verdict != answer.Running || s.published[1].Job != s.published[0].Job {
			t.Errorf("published %+v", s.published)
		}
		s.Touch(key)
		pass(2 * settle)
		if len(s.published) != 2 {
			t.Error("it was taken back twice")
		}
	})
}

func TestAGangThatStartsAtOnceCostsNothing(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.Touch(key)
		s.snap = clustertest.New().Nodes(1, 4).Done()
		pass(2 * settle)
		if s.taken+len(s.published) != 0 {
			t.Errorf("%d snapshots and %d answers for a gang that runs", s.taken, len(s.published))
		}
	})
}

// A gang has its own time to start, whoever else is about to be explained.
func TestAGangThatComesWhileOthersWaitHasItsTime(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.Touch(gang.Key{Dialect: gang.SchedulerPlugins, Namespace: "team", Name: "another"})
		pass(settle * 9 / 10)
		s.Touch(key)
		pass(settle * 9 / 10)
		if len(s.published) != 0 {
			t.Errorf("explained after less than %s", settle)
		}
		pass(settle)
		if len(s.published) != 1 {
			t.Errorf("%d answers, want the one about the gang that still waits", len(s.published))
		}
	})
}

func TestAFailedWriteIsTriedAgain(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.fail = errors.New("the API server is away")
		s.Touch(key)
		pass(5 * settle)
		s.fail = nil
		pass(5 * settle)
		if len(s.published) != 1 {
			t.Errorf("published %d times after the failure", len(s.published))
		}
	})
}

func TestAFailureToTakeBackIsTriedAgain(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.Touch(key)
		pass(2 * settle)
		s.snap = clustertest.New().Nodes(1, 4).Done()
		s.fail = errors.New("the API server is away")
		s.Touch(key)
		pass(5 * settle)
		s.fail = nil
		pass(5 * settle)
		if len(s.published) != 2 || s.published[1].Verdict != answer.Running {
			t.Errorf("published %+v, want that nobody waits any more", s.published)
		}
	})
}

// An answer that another leader published is gone on with: nothing is written while
// it is true, and it is taken back when it is not, though this one never gave it.
func TestWhatAnotherPublished(t *testing.T) {
	before := func(s *stage) {
		a, err := diagnose.NewAsker(s.snap).Ask(context.Background(), diagnose.Question{Namespace: "team", Name: "gang"}, diagnose.Options{})
		if err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-time.Minute)
		a.Snapshot.At = &at
		s.standing = map[gang.Key]*answer.Answer{key: a}
	}
	starts := func(s *stage) { before(s); s.snap = clustertest.New().Nodes(1, 4).Done() }
	play(t, func(t *testing.T, s *stage) {
		pass(3 * settle)
		if len(s.published) != 0 || s.taken != 1 {
			t.Errorf("published %+v from %d snapshots, though it is true still", s.published, s.taken)
		}
		pass(10 * time.Minute)
		if s.asked != 1 {
			t.Errorf("read %d times what was published before", s.asked)
		}
	}, before)
	play(t, func(t *testing.T, s *stage) {
		pass(3 * settle)
		if len(s.published) != 1 || s.published[0].Verdict != answer.Running || s.published[0].Job != s.standing[key].Job {
			t.Errorf("published %+v, want that nobody waits any more", s.published)
		}
		pass(refresh)
		if len(s.published) != 1 {
			t.Error("it was taken back twice")
		}
	}, starts)
	play(t, func(t *testing.T, s *stage) {
		pass(3 * settle)
		s.deaf = nil
		pass(refresh)
		if len(s.published) != 1 || s.asked < 2 {
			t.Errorf("published %+v though it can be read now", s.published)
		}
	}, starts, func(s *stage) { s.deaf = errors.New("the API server is away") })
	play(t, func(t *testing.T, s *stage) {
		pass(10 * time.Minute)
		if s.asked != 1 {
			t.Errorf("asked %d times for what it may not read", s.asked)
		}
	}, starts, func(s *stage) { s.deaf = apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", nil) })
}

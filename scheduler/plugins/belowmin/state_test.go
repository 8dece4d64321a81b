package belowmin

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// The member that cannot be bound is replaced by a younger one, or by none: what
// showed that the gang was never whole is gone, and it still was not.
func TestAGangThatWasNeverWholeStaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fixture)
		events string
	}{
		"replaced": {func(w *fixture) { w.pods = w.pods[:2]; w.pod("a-2-again", 5, -1) }, "for 10s, pod a-2-again could not be bound"},
		"gone":     {func(w *fixture) { w.pods = w.pods[:2] }, "for 10s, a member could not be bound, and is gone"},
	} {
		w := newFixture(t, short)
		w.pod("a-0", 0, 1)
		w.pod("a-1", 0, 1)
		w.pod("a-2", 0, -1)
		w.after(0)
		w.clock.Step(5 * time.Second)
		c.change(w)
		w.after(0)
		w.after(5 * time.Second)
		if did := w.did(); len(did) != 4 {
			t.Errorf("%s: did %q", name, did)
		}
		w.wantEvents(c.events)
	}
}

// The object of a gang is deleted and created again while the gang is partly bound: that does not make it one that was whole.
func TestAGangThatWasNeverWholeAndIsDeclaredAgain(t *testing.T) {
	w := newFixture(t, short)
	w.pod("a-0", 0, 1)
	w.pod("a-1", 0, 1)
	w.pod("a-2", 0, -1)
	w.after(0)
	w.required = 0
	w.after(5 * time.Second)
	w.required = 3
	w.after(0)
	w.after(9 * time.Second)
	w.wantEvents()
	w.after(time.Second)
	w.wantEvents("GangRolledBack 2 of 3")
}

// It is forgotten when the gang is whole, when another member got a place since,
// and where members were on their way when it seemed so: it may have been whole.
func TestAGangThatWasWholeAfterAll(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"whole":       func(w *fixture) { w.pod("a-3", 2, 3); w.after(0); w.pods = w.pods[:2] },
		"another":     func(w *fixture) { w.pods = w.pods[1:2]; w.pod("a-3", 2, 3) },
		"on its ways": func(w *fixture) { w.pods = w.pods[:2]; w.bindingEnded(groupA, "a-2", false) },
	} {
		w := newFixture(t, `{"grace":"1h","startGrace":"10s"}`)
		w.pod("a-0", 0, 1)
		w.pod("a-1", 0, 1)
		w.pod("a-2", 0, -1)
		if name == "on its ways" {
			w.bindingStarted(groupA, "a-2")
		}
		w.after(0)
		change(w)
		w.pod("a-4", 9, -1)
		w.after(0)
		w.after(time.Minute)
		if did := w.did(); len(did) > 0 {
			t.Errorf("%s: did %q", name, did)
		}
	}
}

// The right to take its places is given an hour later.
func TestARollBackThatWasRefusedIsMadeUpFor(t *testing.T) {
	w := newFixture(t, short, tfjob("llama", nil))
	refused := true
	w.dynamic.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refused, nil, apierrors.NewForbidden(tfjobs.GroupResource(), "llama", nil)
	})
	for _, name := range []string{"a-0", "a-1"} {
		w.pod(name, 0, 1, ownedBy("kubeflow.org/v1", "TFJob", "llama"))
	}
	w.pod("a-2", 0, -1, ownedBy("kubeflow.org/v1", "TFJob", "llama"))
	w.after(0)
	w.after(10 * time.Second)
	w.wantEvents("GangRolledBack", "install/scheduler-policy-rbac.yaml")
	w.after(time.Hour) // for so long it is refused
	refused = false
	w.did()
	w.after(time.Hour)
	w.wantDid("patch tfjobs llama")
}

// Members of an earlier job completed and are kept for their logs. They are not
// members of today's gang.
func TestCompletedPodsOfAnEarlierJob(t *testing.T) {
	w := newFixture(t, short)
	w.pod("old-0", -100, -90, phase(corev1.PodSucceeded))
	w.pod("a-0", 0, 1)
	w.pod("a-1", 0, 1)
	w.pod("a-2", 0, -1)
	w.after(0)
	w.after(10 * time.Second)
	w.wantEvents("GangRolledBack")
}

// The operator deletes all pods of a job that is suspended. The next time it still
// gets twice as long, for an hour, and unless it is another job.
func TestTheGraceGrowsThoughAllPodsGo(t *testing.T) {
	for _, c := range []struct {
		name  string
		away  time.Duration
		job   string
		grace time.Duration
	}{
		{"the same", time.Minute, "llama", 20 * time.Second},
		{"after long", time.Hour, "llama", 10 * time.Second},
		{"another", time.Minute, "opt", 10 * time.Second},
	} {
		w := newFixture(t, short, tfjob("llama", nil), tfjob("opt", nil))
		members := func(job string) {
			at := int(w.clock.Now().Sub(noon).Seconds())
			w.pods = nil
			for i, bound := range []int{at, at, -1} {
				w.pod(job+string(rune('a'+i))+w.clock.Now().Format("1504"), at, bound, ownedBy("kubeflow.org/v1", "TFJob", job))
			}
		}
		members("llama")
		w.after(0)
		w.after(10 * time.Second)
		w.wantDid("patch tfjobs llama")
		w.pods = nil
		w.after(0)
		w.after(c.away)
		w.did()
		members(c.job)
		w.after(0)
		w.after(c.grace - time.Second)
		if did := w.did(); len(did) > 0 {
			t.Errorf("%s: did %q before %s", c.name, did, c.grace)
		}
		w.after(time.Second)
		w.wantDid("patch tfjobs " + c.job)
	}
}

// Of a gang that is gone for good nothing is kept.
func TestGangsAreForgotten(t *testing.T) {
	w := newFixture(t, short)
	w.pod("a-0", 0, 1)
	w.pod("a-1", 0, -1)
	w.after(0)
	w.after(10 * time.Second)
	w.pods = nil
	w.after(0)
	if len(w.gangs) != 1 {
		t.Error("forgotten at once")
	}
	w.after(time.Hour)
	if len(w.gangs) != 0 {
		t.Error("kept indefinitely")
	}
}

// A grace may be configured to be years.
func TestAGraceDoubles(t *testing.T) {
	century := 100 * 365 * 24 * time.Hour
	for _, c := range []struct {
		grace     time.Duration
		evictions int
		want      time.Duration
	}{
		{time.Minute, 0, time.Minute}, {time.Minute, 2, 4 * time.Minute}, {time.Minute, 1 << 30, maxGrace}, {2 * maxGrace, 3, 2 * maxGrace},
		{century, 0, century}, {century, 10, century}, {maxGrace - 1, 1, maxGrace},
	} {
		if got := doubled(c.grace, c.evictions); got != c.want {
			t.Errorf("%s after %d: %s, want %s", c.grace, c.evictions, got, c.want)
		}
	}
}

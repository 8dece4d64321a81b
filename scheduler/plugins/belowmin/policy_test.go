package belowmin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/scheduler/plugins/args"
)

const short = `{"grace":"30s","startGrace":"10s"}`

func TestAGangThatWasNeverWholeIsTakenBack(t *testing.T) {
	w := newFixture(t, short)
	w.pod("a-0", 0, 1)
	w.pod("a-1", 0, 1)
	w.pod("a-2", 0, -1)
	w.after(0)
	w.after(9 * time.Second)
	w.wantDid()
	w.after(time.Second)
	w.wantDid("patch pods/status a-0", "delete pods a-0", "patch pods/status a-1", "delete pods a-1")
	w.wantEvents("GangRolledBack 2 of 3 members that the gang needs have places, and it was never whole: for 10s, pod a-2 could not be bound")
	if !w.isEvicting(groupA) {
		t.Error("a member may join those that leave")
	}
	w.pods = w.pods[2:]
	w.after(time.Second)
	if w.isEvicting(groupA) || w.freed != 1 {
		t.Error("no member may join though none is left")
	}
	// The next time it gets twice as long.
	w.pod("a-3", 30, 31)
	w.pods[0].CreationTimestamp = metav1.NewTime(noon.Add(30 * time.Second))
	w.required = 2
	w.after(0)
	w.after(19 * time.Second)
	w.wantDid()
	w.after(time.Second)
	w.wantDid("patch pods/status a-3", "delete pods a-3")
}

func TestNeverWhole(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*fixture)
		want bool
	}{
		"one could not be bound":                {func(w *fixture) { w.pod("a-1", 0, 1); w.pod("a-2", 0, -1) }, true},
		"one died, and has a replacement":       {func(w *fixture) { w.pod("a-1", 0, 1); w.pod("a-2", 9, -1) }, false},
		"one died, and has none":                {func(w *fixture) { w.pod("a-1", 0, 1) }, false},
		"one failed, another was never bound":   {func(w *fixture) { w.pod("a-1", 0, 1, phase(corev1.PodFailed)); w.pod("a-2", 0, -1) }, true},
		"one leaves, another was never bound":   {func(w *fixture) { w.pod("a-1", 0, 1, leaving); w.pod("a-2", 0, -1) }, true},
		"one was replaced, another never bound": {func(w *fixture) { w.pod("a-1", 9, -1); w.pod("a-2", 0, -1) }, true},
		"a member above the minimum waits, and one died": {func(w *fixture) {
			w.pod("a-1", 0, 1)
			w.pod("a-2", 9, -1)
			w.pod("a-3", 0, -1)
		}, false},
	} {
		w := newFixture(t, short)
		w.pod("a-0", 0, 2)
		c.set(w)
		if got := membersOf(w.pods, 3, w.nodeExists).neverWhole(noon, time.Minute); got != c.want {
			t.Errorf("%s: never whole is %v", name, got)
		}
	}
	w := newFixture(t, short)
	w.pod("a-0", 0, 2)
	w.pod("a-1", 0, -1)
	if membersOf(w.pods, 3, w.nodeExists).neverWhole(noon.Add(time.Hour), time.Minute) {
		t.Error("one of long ago is taken for one that was never whole: its minimum may have been raised")
	}
}

func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		name, args, note string
		did, events      []string
	}{
		{"hold is the default", short, "", nil, []string{"GangBelowMinimum 2 of 3 members that the gang needs have places, for 30s. By policy hold they keep them"}},
		{"evict by configuration", `{"grace":"30s","belowMin":"evict"}`, "",
			[]string{"patch pods/status a-0", "create pods/eviction a-0", "patch pods/status a-1", "create pods/eviction a-1"},
			[]string{"GangEvicted 2 of 3 members that the gang needs have places, for 30s. By policy evict"}},
		{"evict by annotation", short, "evict",
			[]string{"patch pods/status a-0", "create pods/eviction a-0", "patch pods/status a-1", "create pods/eviction a-1"},
			[]string{"GangEvicted"}},
		{"ignore", short, "ignore", nil, nil},
		{"a slip of the pen", short, "evcit", nil, []string{`GangPolicyFailed annotation gangctl.dev/below-min-policy: "evcit" is none of hold, evict and ignore; taking it for hold`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFixture(t, c.args)
			w.note = c.note
			w.pod("a-0", 0, 1)
			w.pod("a-1", 0, 1)
			w.after(0)
			w.after(29 * time.Second)
			w.wantDid()
			w.after(time.Second)
			w.wantDid(c.did...)
			w.wantEvents(c.events...)
			w.after(time.Hour)
			if c.did == nil {
				w.wantEvents() // not again
			}
		})
	}
}

func TestWhomThePolicyLeavesAlone(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"whole again in time": func(w *fixture) {
			w.clock.Step(20 * time.Second)
			w.pod("a-2", 20, 20)
			w.after(0)
			w.pods = w.pods[:2]
		},
		"on its way out":          func(w *fixture) { w.pod("a-2", 0, 1, phase(corev1.PodSucceeded)); w.completed = 1 },
		"not declared any more":   func(w *fixture) { w.required = 0 },
		"its minimum was lowered": func(w *fixture) { w.required = 2 },
		"no member has a node":    func(w *fixture) { w.pods = nil; w.pod("a-3", 0, -1) },
	} {
		w := newFixture(t, `{"grace":"30s","startGrace":"10s","belowMin":"evict"}`)
		w.pod("a-0", 0, 1)
		w.pod("a-1", 0, 1)
		w.after(0)
		change(w)
		w.after(0)
		w.after(29 * time.Second)
		if did, got := w.did(), w.events(); len(did) > 0 || len(got) > 0 {
			t.Errorf("%s: did %q, events %q", name, did, got)
		}
	}
}

// A gang that ran, and whose minimum was raised, ran.
func TestARaisedMinimumTakesNothingBack(t *testing.T) {
	w := newFixture(t, short)
	w.required = 2
	w.pod("a-0", 0, 1)
	w.pod("a-1", 0, 1)
	w.pod("a-2", 0, -1)
	w.after(0)
	w.required = 3
	w.after(0)
	w.after(10 * time.Second)
	w.wantDid()
}

func TestArgs(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                           "",
		short:                          "",
		`{"belowMin":"delete"}`:        `args.belowMin: "delete" is none of hold, evict and ignore`,
		`{"grace":"0s"}`:               "args.grace: 0s is not a positive duration",
		`{"startGrace":"-1s"}`:         "args.startGrace: -1s is not a positive duration",
		`{"below-min":"hold"}`:         "below-min",
		`{"belowMin":"ignore"}`:        "",
		fmt.Sprintf(`{"grace":%d}`, 3): "grace",
	} {
		_, err := args.Decode(&runtime.Unknown{Raw: []byte(text), ContentType: runtime.ContentTypeJSON}, DefaultArgs())
		if (want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Run works off what is enqueued, and ends.
func TestRun(t *testing.T) {
	w := newFixture(t, short)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	looked := make(chan bool, 1)
	w.Synced = func() bool {
		select {
		case looked <- true:
		default:
		}
		return true
	}
	go func() { defer close(done); w.Run(ctx) }()
	w.Touch(keyA)
	select {
	case <-looked:
	case <-time.After(10 * time.Second):
		t.Error("the gang was not reconciled")
	}
	cancel()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("it does not end")
	}
}

// What a gang has is recorded while it is whole: not what it has below its minimum, nor each time that it is looked at.
func TestWhatAWholeGangHasIsRecorded(t *testing.T) {
	w := newFixture(t, short)
	want := func(times int, members ...string) {
		t.Helper()
		w.after(time.Second)
		if !slices.Equal(w.whole, members) || w.recorded != times {
			t.Errorf("recorded %v, %d times, want %v, %d times", w.whole, w.recorded, members, times)
		}
	}
	w.pod("a-0", 0, 1)
	w.pod("a-1", 0, 1)
	want(0)
	w.pod("a-2", 0, 1)
	want(1, "a-0", "a-1", "a-2")
	want(1, "a-0", "a-1", "a-2")
	w.required = 4
	w.pod("a-3", 5, -1)
	below := w.below
	want(1, "a-0", "a-1", "a-2")
	if w.below == below {
		t.Error("not recorded that it is below its minimum")
	}
	w.required = 3
	want(2, "a-0", "a-1", "a-2")
	w.gone = map[string]bool{w.pods[1].Spec.NodeName: true}
	w.required, w.pods = 1, w.pods[:2]
	want(2, "a-0", "a-1", "a-2") // what is on a node that is gone is not there
	w.gone = nil
	want(3, "a-0", "a-1")
	w.pods = nil
	want(3)
}

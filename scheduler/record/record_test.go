package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/poll"
)

var (
	group    = &corev1.ObjectReference{APIVersion: "scheduling.x-k8s.io/v1alpha1", Kind: "PodGroup", Namespace: "research", Name: "llama", UID: "g"}
	resource = schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
)

// desk is a recorder and the API server that it writes to.
type desk struct {
	*Recorder
	t      *testing.T
	client *fake.Clientset
	clock  *testclock.FakeClock

	mu    sync.Mutex
	fails func(try int) error // of the next tries; nil for success
	tried int
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, client: fake.NewClientset(), clock: testclock.NewFakeClock(time.Unix(1e9, 0))}
	d.client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.tried++
		if d.fails != nil {
			if err := d.fails(d.tried); err != nil {
				return true, nil, err
			}
		}
		return false, nil, nil
	})
	d.Recorder = New(d.client.EventsV1(), "gang-scheduler", d.clock, func(context.Context) {})
	return d
}

// run writes until the test or what is returned ends.
func (d *desk) run() (stop func()) {
	ctx, cancel := context.WithCancel(d.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	stop = func() { cancel(); <-done }
	d.t.Cleanup(stop)
	return stop
}

func (d *desk) written() []eventsv1.Event {
	d.t.Helper()
	list, err := d.client.EventsV1().Events("").List(d.t.Context(), metav1.ListOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

func (d *desk) attempts() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tried
}

func (d *desk) record(note string) {
	d.Eventf(group, nil, corev1.EventTypeWarning, "Unschedulable", "Scheduling", "%s", note)
}

// What users wrote is in notes, and those who read them may print them on a terminal.
func TestNotesHaveNoControlCharacters(t *testing.T) {
	d := newDesk(t)
	d.run()
	d.record("PodGroup \x1b]52;c;aGk=\x07\nx not found")
	poll.Until(d.t, "it is written", func() bool { return len(d.written()) == 1 })
	if got, want := d.written()[0].Note, `PodGroup ^[]52;c;aGk=\u0007\nx not found`; got != want {
		t.Errorf("the note is %q, want %q", got, want)
	}
}

// The recorder of client-go writes the first of these, and counts the others.
func TestAChangedExplanationIsAnEventOfItsOwn(t *testing.T) {
	d := newDesk(t)
	d.run()
	notes := []string{"4 of 8 GPUs free", "2 of 8 GPUs free", "in 100% pieces"}
	for _, note := range notes {
		d.record(note)
	}
	poll.Until(d.t, "all are written", func() bool { return len(d.written()) == len(notes) })
	for i, event := range d.written() {
		if event.Note != notes[i] || event.Series != nil {
			t.Errorf("event %d says %q, series %v; want %q", i, event.Note, event.Series, notes[i])
		}
		if event.Regarding != *group || event.Namespace != "research" || !strings.HasPrefix(event.Name, "llama.") || event.ReportingController != "gang-scheduler" {
			t.Errorf("event %+v", event)
		}
	}
	if n := d.attempts(); n != len(notes) {
		t.Errorf("%d requests for %d events", n, len(notes))
	}
}

func TestAnEventOnAPodRefersToIt(t *testing.T) {
	d := newDesk(t)
	d.run()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "a", UID: "p", ResourceVersion: "7"}}
	d.Eventf(pod, group, corev1.EventTypeNormal, "Scheduled", "Scheduling", "%s", strings.Repeat("é", noteLimit))
	poll.Until(d.t, "it is written", func() bool { return len(d.written()) == 1 })
	event := d.written()[0]
	want := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "research", Name: "a", UID: "p", ResourceVersion: "7"}
	if event.Regarding != want || event.Related == nil || *event.Related != *group {
		t.Errorf("it is about %+v and %+v", event.Regarding, event.Related)
	}
	if len(event.Note) > noteLimit || !strings.HasSuffix(event.Note, "é…") {
		t.Errorf("a note of %d bytes, which ends in %q", len(event.Note), event.Note[len(event.Note)-5:])
	}
}

func TestWhatMayPassIsTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		tries   int
		written bool
	}{
		"no answer": {errors.New("connection refused"), 3, true},
		"busy":      {apierrors.NewTooManyRequests("busy", 1), 3, true},
		"forbidden": {apierrors.NewForbidden(resource, "llama", errors.New("no")), 1, false},
		"for ever":  {errors.New("connection refused"), tries, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.fails = func(try int) error {
				if c.written && try == c.tries {
					return nil
				}
				if try > c.tries {
					return nil // the next event
				}
				return c.err
			}
			d.run()
			d.record(name)
			for try := 1; try < c.tries; try++ {
				poll.Until(d.t, fmt.Sprintf("try %d", try), func() bool { return d.attempts() == try && d.clock.HasWaiters() })
				d.clock.Step(pause << (try - 1))
			}
			poll.Until(d.t, "the last try", func() bool { return d.attempts() == c.tries })
			d.record("the next")
			want := 1
			if c.written {
				want = 2
			}
			poll.Until(d.t, "the next is written", func() bool { return len(d.written()) == want })
			if got := d.written()[0].Note == name; got != c.written {
				t.Errorf("it is written: %t, want %t", got, c.written)
			}
		})
	}
}

// An answer that was lost does not make two events of one.
func TestWhatWasWrittenIsNotWrittenTwice(t *testing.T) {
	d := newDesk(t)
	d.fails = func(try int) error {
		switch try {
		case 1:
			return errors.New("the connection broke")
		case 2:
			return apierrors.NewAlreadyExists(resource, "llama")
		}
		return nil
	}
	d.run()
	d.record("first")
	poll.Until(d.t, "it is tried", func() bool { return d.attempts() == 1 && d.clock.HasWaiters() })
	d.clock.Step(pause)
	d.record("second")
	poll.Until(d.t, "the second is written", func() bool { return len(d.written()) == 1 })
	if n := d.attempts(); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// Nothing waits for events, and no more are kept than there is room for.
func TestTooManyAreDropped(t *testing.T) {
	d := newDesk(t)
	for i := range queued + 10 { // no writer runs yet
		d.record(fmt.Sprint(i))
	}
	d.run()
	poll.Until(d.t, "those that were kept are written", func() bool { return len(d.written()) == queued })
	if last := d.written()[queued-1].Note; last != fmt.Sprint(queued-1) {
		t.Errorf("the last one says %s, want %d", last, queued-1)
	}
}

func TestWhatWaitsAtTheEndIsWritten(t *testing.T) {
	d := newDesk(t)
	d.fails = func(try int) error {
		if try == 1 {
			return errors.New("connection refused")
		}
		return nil
	}
	stop := d.run()
	d.record("first")
	d.record("second")
	poll.Until(d.t, "the first is tried", func() bool { return d.attempts() == 1 && d.clock.HasWaiters() })
	stop()
	if events := d.written(); len(events) != 2 || events[0].Note != "first" || events[1].Note != "second" {
		t.Errorf("written %v", events)
	}
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/clock"
)

var (
	podResource = schema.GroupResource{Resource: "pods"}
	errLost     = errors.New("EOF")
	errConflict = apierrors.NewConflict(podResource, "a", errors.New("it is bound"))
	errInternal = apierrors.NewInternalError(errors.New("etcd: request timed out"))
)

func bindPod(uid, node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "a"}, Spec: corev1.PodSpec{NodeName: node}}
	if uid != "" {
		p.UID = "b"
	}
	return p
}

func bindTo(ctx context.Context, b *Binder, client kubernetes.Interface) error {
	return b.Client(client).CoreV1().Pods("ns").Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "a"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"},
	}, metav1.CreateOptions{})
}

func TestBind(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer error
		pod    *corev1.Pod // nil where it is gone
		fails  bool
		reads  int
	}{
		{"it is bound", nil, bindPod("", ""), false, 0},
		{"it is refused", apierrors.NewForbidden(podResource, "a", errors.New("no")), bindPod("", "n1"), true, 0},
		{"it is gone", apierrors.NewNotFound(podResource, "a"), nil, true, 0},
		{"the answer is lost and it is bound", errLost, bindPod("", "n1"), false, 1},
		{"the answer is lost and it is not bound", errLost, bindPod("", ""), true, 1},
		{"the answer is lost and it is gone", errLost, nil, true, 1},
		{"the answer is lost and there is another of its name", errLost, bindPod("b", "n1"), true, 1},
		{"it is bound already, there", errConflict, bindPod("", "n1"), false, 1},
		{"it is bound already, elsewhere", errConflict, bindPod("", "n2"), true, 1},
		{"the server fails after it was bound", errInternal, bindPod("", "n1"), false, 1},
		{"the server fails", errInternal, bindPod("", ""), true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := fake.NewClientset()
			if c.pod != nil {
				client = fake.NewClientset(c.pod)
			}
			client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.answer })
			b := NewBinder(clock.RealClock{})
			b.Register(metrics.NewKubeRegistry().MustRegister)
			if err := bindTo(t.Context(), b, client); (err != nil) != c.fails || c.fails && !errors.Is(err, c.answer) {
				t.Errorf("got %v", err)
			}
			reads := 0
			for _, action := range client.Actions() {
				if action.GetVerb() == "get" {
					reads++
				}
			}
			if counted := b.counted(t, resultBound) + b.counted(t, resultUnbound); reads != c.reads || counted != c.reads {
				t.Errorf("the pod was read %d times, and %d were counted, want %d", reads, counted, c.reads)
			}
			if c.reads > 0 && (b.counted(t, resultBound) == 1) == c.fails {
				t.Error("the wrong result was counted")
			}
		})
	}
}

func (b *Binder) counted(t *testing.T, result string) int {
	t.Helper()
	n, err := testutil.GetCounterMetricValue(b.unanswered.WithLabelValues(result))
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// While the server is away nothing is known, and the binding goes on.
func TestTheServerIsAway(t *testing.T) {
	client := fake.NewClientset(bindPod("", "n1"))
	client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errLost })
	away := 3
	client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		away--
		return away >= 0, nil, fmt.Errorf("connection refused (%d)", away)
	})
	if err := bindTo(t.Context(), NewBinder(clock.RealClock{}), client); err != nil || away >= 0 {
		t.Errorf("got %v, and the server is away for %d more requests", err, away)
	}

	away = 1 << 30
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := bindTo(ctx, NewBinder(clock.RealClock{}), client); !errors.Is(err, errLost) {
		t.Errorf("a scheduler that ends gets %v, want the cause", err)
	}
}

// A server that never answers is not waited for.
func TestARequestThatHangs(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice that the client is gone
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"ns","name":"a","uid":"a"}}`))
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	b := NewBinder(clock.RealClock{})
	b.timeout = 50 * time.Millisecond
	if err := bindTo(t.Context(), b, client); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a timeout", err)
	}
}

// slowPods answers no binding before answer is closed.
type slowPods struct {
	typedcorev1.PodInterface
	begun  atomic.Int32
	answer chan struct{}
}

func (p *slowPods) Bind(context.Context, *corev1.Binding, metav1.CreateOptions) error {
	p.begun.Add(1)
	<-p.answer
	return nil
}

// Events and statuses come after the bindings that wait, but not indefinitely.
func TestReportsComeAfterBindings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &slowPods{answer: make(chan struct{})}
		b := NewBinder(clock.RealClock{})
		pods := &bindPods{PodInterface: server, binder: b}
		report := func() time.Duration {
			start := time.Now()
			b.Idle(t.Context())
			return time.Since(start)
		}
		if d := report(); d != 0 {
			t.Errorf("a report waits %s for no binding", d)
		}
		var done sync.WaitGroup
		for range 100 * slots {
			done.Go(func() { _ = pods.Bind(t.Context(), &corev1.Binding{}, metav1.CreateOptions{}) })
		}
		synctest.Wait()
		for i, want := range []time.Duration{priorityTime, 0, 0} {
			if d := report(); d != want {
				t.Errorf("report %d waits %s for bindings that wait for minutes, want %s", i, d, want)
			}
		}
		close(server.answer)
		done.Wait()
		if d := report(); d != 0 {
			t.Errorf("a report waits %s when all are bound", d)
		}
	})
}

// A gang's members are bound one after the other, not among thousands, and those whose binding hangs do not keep others waiting.
func TestBindingsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &slowPods{answer: make(chan struct{})}
		pods := &bindPods{PodInterface: server, binder: NewBinder(clock.RealClock{})}
		var done sync.WaitGroup
		for range 2*slots + 1 {
			done.Go(func() { _ = pods.Bind(t.Context(), &corev1.Binding{}, metav1.CreateOptions{}) })
		}
		for _, want := range []int32{slots, 2 * slots, 2*slots + 1} {
			synctest.Wait()
			if n := server.begun.Load(); n != want {
				t.Errorf("%d bindings are under way, want %d", n, want)
			}
			time.Sleep(slotTime)
		}
		close(server.answer)
		done.Wait()
	})
}

// failingPods takes a while for each binding, and fails those of a pod as often as it is told.
type failingPods struct {
	typedcorev1.PodInterface
	mu    sync.Mutex
	fails map[string]int
	sent  []string
}

func (p *failingPods) Bind(_ context.Context, binding *corev1.Binding, _ metav1.CreateOptions) error {
	p.mu.Lock()
	p.sent = append(p.sent, binding.Name)
	fails := p.fails[binding.Name] > 0
	p.fails[binding.Name]--
	p.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	if fails {
		return errInternal
	}
	return nil
}

func (p *failingPods) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Pod, error) {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}, nil
}

// The member whose binding failed comes before gangs that have not begun: its own gang has nodes, and does nothing with them. One that fails again and
// again waits like the others.
func TestFailedBindingsComeFirst(t *testing.T) {
	const pods = 10 * slots
	synctest.Test(t, func(t *testing.T) {
		server := &failingPods{fails: map[string]int{"0": 1, "1": 1 << 30}}
		client := &bindPods{PodInterface: server, binder: NewBinder(clock.RealClock{})}
		var all sync.WaitGroup
		for i := range pods {
			name := fmt.Sprint(i)
			all.Go(func() {
				for range 2 * mayHurry { // as the engine does
					binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Target: corev1.ObjectReference{Name: "n"}}
					if client.Bind(t.Context(), binding, metav1.CreateOptions{}) == nil {
						return
					}
				}
			})
			synctest.Wait()
		}
		all.Wait()
		var at [2][]int
		for i, name := range server.sent {
			if n := slices.Index([]string{"0", "1"}, name); n >= 0 {
				at[n] = append(at[n], i)
			}
		}
		if len(at[0]) != 2 || at[0][1] > 2*slots {
			t.Errorf("a binding that failed once was sent as number %v", at[0])
		}
		if len(at[1]) != 2*mayHurry || at[1][mayHurry] >= pods || at[1][mayHurry+1] < pods {
			t.Errorf("a binding that fails always was sent as number %v", at[1])
		}
	})
}

// Bindings that are sent again come first, and have half of the slots at most while others wait.
func TestSlotsOfFailedBindings(t *testing.T) {
	s := newBindingSlots(clock.RealClock{})
	for range slots {
		if turn, _ := s.take(false); turn != nil {
			t.Fatal("no slot is free")
		}
	}
	var again, first []chan struct{}
	for range 2 * slots {
		turn, _ := s.take(true)
		again = append(again, turn)
		turn, _ = s.take(false)
		first = append(first, turn)
	}
	expect := func(when string, wantAgain, wantFirst int) {
		t.Helper()
		if a, f := begun(again), begun(first); a != wantAgain || f != wantFirst {
			t.Errorf("%s: %d that are sent again have begun, and %d others; want %d and %d", when, a, f, wantAgain, wantFirst)
		}
	}
	for range slotsAgain {
		s.release(false)
	}
	expect("at first", slotsAgain, 0)
	for range slots - slotsAgain {
		s.release(false)
	}
	expect("then", slotsAgain, slots-slotsAgain)
	for range slots {
		s.release(false)
	}
	expect("while those that are sent again hang", slotsAgain, 2*slots-slotsAgain)
	s.release(true)
	expect("when one of them ends", slotsAgain+1, 2*slots-slotsAgain)
	for range slotsAgain + 1 {
		s.release(false)
	}
	expect("when no other waits", slotsAgain+2, 2*slots)
}

// begun is how many have their turn.
func begun(turns []chan struct{}) (n int) {
	for _, turn := range turns {
		select {
		case <-turn:
			n++
		default:
		}
	}
	return n
}

// Who gives up while it waits for a slot takes none.
func TestCancelledBindings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBindingSlots(clock.RealClock{})
		var leave []func()
		for range slots {
			done, err := s.enter(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			leave = append(leave, done)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := s.enter(short, true); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		for _, done := range leave {
			done()
			done()
		}
		if s.free != slots || s.waiting() != 0 {
			t.Errorf("%d slots are free, and %d bindings wait", s.free, s.waiting())
		}
		s.awaitIdle(t.Context())
	})
}

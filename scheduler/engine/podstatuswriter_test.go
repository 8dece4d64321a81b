package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// delayedServer is a clientset whose API server takes a time for each request about a pod, by namespace, and keeps what it was asked for.
type delayedServer struct {
	kubernetes.Interface
	typedcorev1.CoreV1Interface
	took  map[string]time.Duration
	size  map[string]int // of pods, by namespace
	errs  []error        // of the next requests
	fails string         // the pod, as NAMESPACE/NAME, of which all fail

	mu       sync.Mutex
	requests []string
	under    map[string]int // requests under way, by namespace
	most     int            // of one namespace at once
}

func newDelayedServer(took map[string]time.Duration) *delayedServer {
	return &delayedServer{Interface: fake.NewClientset(), took: took, under: map[string]int{}}
}

func (s *delayedServer) CoreV1() typedcorev1.CoreV1Interface { return s }

func (s *delayedServer) Pods(namespace string) typedcorev1.PodInterface {
	return &delayedPods{server: s, namespace: namespace}
}

type delayedPods struct {
	typedcorev1.PodInterface
	server    *delayedServer
	namespace string
}

func (p *delayedPods) Patch(_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Pod, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"large": strings.Repeat("x", p.server.size[p.namespace])}}}
	return pod, p.server.answer(p.namespace, fmt.Sprintf("%s/%s %s", p.namespace, name, data))
}

func (p *delayedPods) Bind(_ context.Context, binding *corev1.Binding, _ metav1.CreateOptions) error {
	return p.server.answer(p.namespace, fmt.Sprintf("%s/%s bind", p.namespace, binding.Name))
}

func (s *delayedServer) answer(namespace, request string) (err error) {
	s.mu.Lock()
	s.under[namespace]++
	s.most = max(s.most, s.under[namespace])
	s.mu.Unlock()
	time.Sleep(s.took[namespace])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under[namespace]--
	s.requests = append(s.requests, request)
	if pod, _, _ := strings.Cut(request, " "); pod == s.fails {
		return errInternal
	}
	if len(s.errs) > 0 {
		err, s.errs = s.errs[0], s.errs[1:]
	}
	return err
}

// made returns the requests so far.
func (s *delayedServer) made() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// writeStatus patches the status of a pod as the engine does.
func writeStatus(t *testing.T, client kubernetes.Interface, namespace, name, status string) {
	t.Helper()
	_, err := client.CoreV1().Pods(namespace).Patch(t.Context(), name, types.StrategicMergePatchType, []byte(`{"status":`+status+`}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

// running runs a writer of statuses to a server until the test ends.
func running(t *testing.T, server *delayedServer) kubernetes.Interface {
	t.Helper()
	_, client := newRunning(t, server, func() bool { return false })
	return client
}

// newRunning runs one beside bindings that wait to be sent, or do not. Pods whose names begin with "old" have been reported on.
func newRunning(t *testing.T, server *delayedServer, busy func() bool) (*PodStatusWriter, kubernetes.Interface) {
	t.Helper()
	w := NewPodStatusWriter(func(namespace, name string) (*corev1.Pod, bool) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}}
		if strings.HasPrefix(name, "old") {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}
		}
		return pod, true
	}, busy, clock.RealClock{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return w, w.Client(server)
}

// What users wrote is in the messages of conditions, and those who read them may print them on a terminal.
func TestMessagesHaveNoControlCharacters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newDelayedServer(nil)
		client := running(t, server)
		for _, kind := range []string{"PodScheduled", "DisruptionTarget"} {
			writeStatus(t, client, "team", "a", `{"$setElementOrder/conditions":[{"type":"x"}],"conditions":[{"type":"`+kind+`","observedGeneration":9007199254740993,"message":"\u001b]52;c;aGk=\u0007"}]}`)
		}
		synctest.Wait()
		requests := server.made()
		for _, request := range requests {
			if !strings.Contains(request, `"message":"^[]52;c;aGk=\\u0007"`) || !strings.Contains(request, `"observedGeneration":9007199254740993`) || !strings.Contains(request, "$setElementOrder") {
				t.Errorf("written: %s", request)
			}
		}
		if len(requests) != 2 {
			t.Errorf("%d requests, want 2", len(requests))
		}
	})
}

// The first statuses of pods are held while bindings wait, for a while, and a binding that comes meanwhile drops its pod's. Others are not held: they are
// compared with what the API server has, or others have to see them.
func TestHeldStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newDelayedServer(nil)
		var busy atomic.Bool
		_, client := newRunning(t, server, busy.Load)
		expect := func(when string, want ...string) {
			t.Helper()
			time.Sleep(2 * holdCheck)
			synctest.Wait()
			var got []string
			for _, request := range server.made() {
				pod, _, _ := strings.Cut(request, " ")
				got = append(got, pod)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		busy.Store(true)
		writeStatus(t, client, "ns", "bound", unscheduled)
		writeStatus(t, client, "ns", "waits", unscheduled)
		expect("while bindings wait")
		writeStatus(t, client, "ns", "old", unscheduled)
		writeStatus(t, client, "ns", "nominated", `{"conditions":[{"type":"PodScheduled","status":"False"}],"nominatedNodeName":"n"}`)
		expect("what is not held", "ns/old", "ns/nominated")
		if err := client.CoreV1().Pods("ns").Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "bound"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		busy.Store(false)
		expect("when none waits any more", "ns/old", "ns/nominated", "ns/bound", "ns/waits")
		busy.Store(true)
		writeStatus(t, client, "ns", "later", unscheduled)
		expect("in the next burst", "ns/old", "ns/nominated", "ns/bound", "ns/waits")
		time.Sleep(maxHold)
		expect("in a long one", "ns/old", "ns/nominated", "ns/bound", "ns/waits", "ns/later")
	})
}

// What is held of a pod goes with what is not.
func TestAHeldStatusIsWrittenWithANomination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newDelayedServer(nil)
		_, client := newRunning(t, server, func() bool { return true })
		writeStatus(t, client, "ns", "a", unscheduled)
		writeStatus(t, client, "ns", "a", `{"nominatedNodeName":"n"}`)
		time.Sleep(holdCheck)
		synctest.Wait()
		if got := server.made(); len(got) != 2 || !strings.Contains(got[0], "PodScheduled") || !strings.Contains(got[1], "nominatedNodeName") {
			t.Errorf("got %v", got)
		}
		time.Sleep(maxHold)
		if got := server.made(); len(got) != 2 {
			t.Errorf("written again: %v", got)
		}
	})
}

// One status that fails keeps those that were held waiting for no longer than others, and what is dropped leaves nothing.
func TestHeldStatusesBesideOneThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newDelayedServer(map[string]time.Duration{"ns": time.Millisecond})
		server.fails = "ns/old"
		w, client := newRunning(t, server, func() bool { return true })
		writeStatus(t, client, "ns", "old", unscheduled)
		writeStatus(t, client, "ns", "new", unscheduled)
		for i := range 500 {
			name := fmt.Sprint("bound", i)
			writeStatus(t, client, "ns", name, unscheduled)
			if err := client.CoreV1().Pods("ns").Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * maxHold)
		synctest.Wait()
		if got := strings.Join(server.made(), "\n"); !strings.Contains(got, "ns/new ") || strings.Count(got, "ns/old ") < 2 {
			t.Errorf("after %s: %s", 2*maxHold, got)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if pending := w.pending["ns"]; pending == nil || len(pending.pods) != 1 || len(pending.order)+len(pending.held) > 2 {
			t.Errorf("left: %+v", pending)
		}
	})
}

const unscheduled = `{"conditions":[{"type":"PodScheduled","status":"False"}]}`

// Pods of one tenant for which the API server takes seconds keep neither the engine nor another tenant's statuses waiting.
func TestSlowStatusesOfATenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newDelayedServer(map[string]time.Duration{"noisy": time.Second, "quiet": time.Millisecond})
		client := running(t, server)
		start := time.Now()
		for i := range 100 {
			writeStatus(t, client, "noisy", fmt.Sprint("n", i), unscheduled)
		}
		writeStatus(t, client, "quiet", "q", unscheduled)
		if took := time.Since(start); took > 0 {
			t.Errorf("the engine waited %s", took)
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if got := server.made(); len(got) != 1 || !strings.HasPrefix(got[0], "quiet/q ") {
			t.Errorf("after 10 ms: %v", got)
		}
		time.Sleep(100 * time.Second)
		synctest.Wait()
		writeStatus(t, client, "noisy", "late", unscheduled) // ends no pause
		if n := len(server.made()); n > 2+100/(1+pauseFactor) || server.most != 1 {
			t.Errorf("%d were written in 100 s, %d at once of one namespace, want one second in five to be spent on them", n, server.most)
		}
		time.Sleep(500 * time.Second)
		synctest.Wait()
		if n := len(server.made()); n != 102 {
			t.Errorf("%d were written in the end", n)
		}
	})
}

// What is out of date by the time it could be written is not written, and what else was queued for the pod is.
func TestStatusesOfOnePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newDelayedServer(map[string]time.Duration{"ns": time.Second})
		client := running(t, server)
		writeStatus(t, client, "ns", "other", unscheduled)
		synctest.Wait()
		writeStatus(t, client, "ns", "a", `{"conditions":[],"nominatedNodeName":"n1"}`)
		for i := range 50 {
			writeStatus(t, client, "ns", "a", fmt.Sprintf(`{"conditions":[{"type":"PodScheduled","message":"%d"}]}`, i))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{
			`ns/other {"metadata":{"uid":"uid-other"},"status":{"conditions":[{"type":"PodScheduled","status":"False"}]}}`,
			`ns/a {"metadata":{"uid":"uid-a"},"status":{"conditions":[],"nominatedNodeName":"n1"}}`,
			`ns/a {"metadata":{"uid":"uid-a"},"status":{"conditions":[{"type":"PodScheduled","message":"49"}]}}`,
		}
		if got := server.made(); !slices.Equal(got, want) {
			t.Errorf("written:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// A pod that is bound is not reported as unscheduled afterwards.
func TestABindingComesAfterItsPodsStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newDelayedServer(map[string]time.Duration{"ns": time.Second})
		server.errs = []error{errLost} // the API server may have it, and is not sent it again
		client := running(t, server)
		writeStatus(t, client, "ns", "a", unscheduled) // under way
		synctest.Wait()
		writeStatus(t, client, "ns", "a", unscheduled)
		if err := client.CoreV1().Pods("ns").Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		var order []string
		for _, request := range server.made() {
			order = append(order, strings.TrimPrefix(request[:len("ns/a b")], "ns/"))
		}
		if want := []string{"a {", "a b"}; !slices.Equal(order, want) {
			t.Errorf("requests are %q, want %q", order, want)
		}
	})
}

// The condition of a victim is on it before it is deleted, and a pod that is gone is no error.
func TestStatusesThatAreNotQueued(t *testing.T) {
	server := newDelayedServer(nil)
	client := running(t, server)
	gone := apierrors.NewNotFound(podResource, "a")
	server.errs = []error{gone}
	_, err := client.CoreV1().Pods("ns").Patch(t.Context(), "a", types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"DisruptionTarget"}]}}`), metav1.PatchOptions{}, "status")
	if !errors.Is(err, gone) || len(server.made()) != 1 {
		t.Errorf("a victim: %v, %v", err, server.made())
	}
	if _, err := client.CoreV1().Pods("ns").Patch(t.Context(), "a", types.StrategicMergePatchType, []byte(`{"status":[]}`), metav1.PatchOptions{}, "status"); err == nil {
		t.Error("a patch that is none is queued")
	}
}

// A namespace pauses after a slow status, whenever what it has more was queued: also while that status was being written.
func TestAStatusThatComesDuringASlowOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newDelayedServer(map[string]time.Duration{"noisy": time.Second})
		client := running(t, server)
		writeStatus(t, client, "noisy", "a", unscheduled)
		time.Sleep(time.Second / 2)
		writeStatus(t, client, "noisy", "b", unscheduled)
		time.Sleep(pauseFactor * time.Second)
		if n := len(server.made()); n != 1 {
			t.Errorf("%d statuses were written before the pause was over, want one", n)
		}
		time.Sleep(2 * time.Second)
		if n := len(server.made()); n != 2 {
			t.Errorf("%d statuses were written after the pause, want both", n)
		}
	})
}

// Each status of a large pod is sent to all who watch pods, with the pod, however fast the API server answers. A tenant with many of them has the
// statuses of his pods late, and nobody else has.
func TestStatusesOfLargePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newDelayedServer(map[string]time.Duration{"large": time.Millisecond, "huge": time.Millisecond, "quiet": time.Millisecond})
		server.size = map[string]int{"large": 2 * largePod, "huge": 100 * largePod, "quiet": largePod / 2}
		client := running(t, server)
		for i := range 20 {
			for _, namespace := range []string{"huge", "large", "quiet"} {
				writeStatus(t, client, namespace, fmt.Sprint("p", i), unscheduled)
			}
		}
		for _, c := range []struct {
			after              time.Duration
			quiet, large, huge int
		}{{time.Second, 20, 1, 1}, {20 * time.Second, 20, 6, 1}, {40 * time.Second, 20, 16, 2}, {20 * time.Minute, 20, 20, 20}} {
			time.Sleep(c.after)
			synctest.Wait()
			got := map[string]int{}
			for _, request := range server.made() {
				namespace, _, _ := strings.Cut(request, "/")
				got[namespace]++
			}
			if want := map[string]int{"quiet": c.quiet, "large": c.large, "huge": c.huge}; !maps.Equal(got, want) {
				t.Errorf("%s later %v are written, want %v", c.after, got, want)
			}
		}
	})
}

// What the API server did not get is sent again, what it refused is not. What came meanwhile for the same pod takes its place.
func TestAStatusIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newDelayedServer(map[string]time.Duration{"ns": time.Second})
		replaced := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "d", field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "uid-d", "field is immutable")})
		server.errs = []error{errLost, errInternal, nil, errConflict, nil, apierrors.NewForbidden(podResource, "c", errors.New("no")), replaced}
		client := running(t, server)
		writeStatus(t, client, "ns", "a", unscheduled)
		synctest.Wait()
		writeStatus(t, client, "ns", "a", `{"conditions":[],"nominatedNodeName":"n1"}`)
		time.Sleep(time.Minute)
		writeStatus(t, client, "ns", "b", unscheduled)
		time.Sleep(time.Minute)
		writeStatus(t, client, "ns", "c", unscheduled)
		writeStatus(t, client, "ns", "d", unscheduled)
		time.Sleep(time.Minute)
		synctest.Wait()
		var made []string
		for _, request := range server.made() {
			made = append(made, request[:len("ns/a")]+fmt.Sprint(strings.Contains(request, "n1")))
		}
		if want := []string{"ns/afalse", "ns/atrue", "ns/atrue", "ns/bfalse", "ns/bfalse", "ns/cfalse", "ns/dfalse"}; !slices.Equal(made, want) {
			t.Errorf("requests are %v, want %v", made, want)
		}
	})
}

// A status that has the UID of its pod is written to that one, though another pod has the name by now.
func TestAStatusOfAPodThatWasReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newDelayedServer(nil)
		client := running(t, server)
		patch := []byte(`{"metadata":{"uid":"uid-before"},"status":` + unscheduled + `}`)
		if _, err := client.CoreV1().Pods("ns").Patch(t.Context(), "a", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if made := server.made(); len(made) != 1 || !strings.Contains(made[0], "uid-before") || strings.Contains(made[0], "uid-a") {
			t.Errorf("requests are %v", made)
		}
	})
}

// A status that is to be written to one version of its pod is not written to a later one.
func TestAStatusOfOneVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newDelayedServer(nil)
		server.errs = []error{errInternal, errConflict}
		client := running(t, server)
		patch := []byte(`{"metadata":{"uid":"uid-a","resourceVersion":"7"},"status":{"nominatedNodeName":null}}`)
		if _, err := client.CoreV1().Pods("ns").Patch(t.Context(), "a", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if made := server.made(); len(made) != 2 || !strings.Contains(made[1], `"resourceVersion":"7"`) {
			t.Errorf("requests are %v", made)
		}
	})
}

// Two pods have one name after each other. What is reported of the first last, and too late, does not take the place of what is reported of the second.
func TestStatusesOfTwoPodsOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newDelayedServer(map[string]time.Duration{"ns": time.Second})
		w, client := newRunning(t, server, func() bool { return false })
		patch := func(uid, message string) {
			t.Helper()
			data := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"conditions":[{"type":"PodScheduled","message":%q}]}}`, uid, message)
			if _, err := client.CoreV1().Pods("ns").Patch(t.Context(), "a", types.StrategicMergePatchType, []byte(data), metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
		}
		writeStatus(t, client, "ns", "other", unscheduled)
		synctest.Wait()
		patch("second", "waits")
		w.report(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "first"}}, false, nil)
		patch("first", "waited")
		time.Sleep(time.Minute)
		synctest.Wait()
		if written := strings.Join(server.made(), "\n"); !strings.Contains(written, `"waits"`) {
			t.Errorf("written:\n%s", written)
		}
	})
}

// Nothing is kept of namespaces that have paused.
func TestPausesAreForgotten(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Unix(0, 0))
	w := NewPodStatusWriter(nil, nil, now)
	for i := range 10 {
		w.pause(fmt.Sprint(i), time.Second)
		now.Step(time.Second)
	}
	if len(w.pauses) != 1 {
		t.Errorf("%d pauses are kept", len(w.pauses))
	}
}

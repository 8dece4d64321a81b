package engine

import (
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

// An object over which a handler panics is skipped; those after it are handled, also by the other handlers of that object.
func TestAPanicInAHandlerEndsNothing(t *testing.T) {
	named := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	}
	panics := NewPanics()
	panics.Register(metrics.NewKubeRegistry().MustRegister)
	informer := panics.Informer(informers.NewSharedInformerFactory(fake.NewClientset(named("absurd"), named("calm")), 0).Core().V1().Pods().Informer())
	var mu sync.Mutex
	var handled, others []string
	name := func(obj any) string { return obj.(*corev1.Pod).Name }
	add := func(to *[]string) func(any) {
		return func(obj any) {
			mu.Lock()
			defer mu.Unlock()
			if to == &handled && name(obj) == "absurd" {
				panic("its request is 10^99")
			}
			*to = append(*to, name(obj))
		}
	}
	for _, to := range []*[]string{&handled, &others} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add(to)}); err != nil {
			t.Fatal(err)
		}
	}
	go informer.RunWithContext(t.Context())
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		mu.Lock()
		done := len(handled) == 1 && len(others) == 2
		mu.Unlock()
		if done {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("handled %v, and by another handler %v", handled, others)
		}
	}
	if handled[0] != "calm" {
		t.Errorf("handled %v", handled)
	}
	// The counter comes after the handler has ended, which may be later than the other events.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		got, err := testutil.GetCounterMetricValue(panics.total.WithLabelValues("informer"))
		if err == nil && got == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("counted %v, %v", got, err)
		}
	}
}

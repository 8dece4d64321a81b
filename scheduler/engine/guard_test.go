package engine

import (
	"errors"
	"testing"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2/ktesting"
)

// What panics is skipped until it changes; nothing else is.
func TestGuard(t *testing.T) {
	logger, _ := ktesting.NewTestContext(t)
	panics := NewPanics()
	g, version := panics.Guard("test"), "1"
	panics.Register(metrics.NewKubeRegistry().MustRegister)
	tried := 0
	try := func(key string, work func() error) (bool, error) {
		return g.Do(logger, key, func() string { return version }, func() error { tried++; return work() })
	}
	breaks := func() error { panic("runPolicy is null") }
	for range 3 {
		if done, err := try("a", breaks); done || err != nil {
			t.Errorf("done %v, %v", done, err)
		}
	}
	if got, err := testutil.GetCounterMetricValue(panics.total.WithLabelValues("test")); tried != 1 || err != nil || got != 1 {
		t.Errorf("tried %d times, counted %v, %v; want once", tried, got, err)
	}
	failed := errors.New("conflict")
	if done, err := try("b", func() error { return failed }); !done || !errors.Is(err, failed) {
		t.Errorf("another: done %v, %v", done, err)
	}
	version = "2"
	if done, err := try("a", func() error { return nil }); !done || err != nil {
		t.Errorf("when it has changed: done %v, %v", done, err)
	}
}

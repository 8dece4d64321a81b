package engine

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
)

// maxSkipped is how many keys a guard skips at most. Beyond that it clears them all, and each may panic once more.
const maxSkipped = 10000

// Panics counts the panics that guards recover from, by the part of the scheduler.
type Panics struct{ total *metrics.CounterVec }

// NewPanics returns the counter of all guards.
func NewPanics() *Panics {
	return &Panics{total: metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "gangctl_scheduler", Name: "panics_total", StabilityLevel: metrics.ALPHA,
		Help: "Panics over a gang, which is skipped until it changes, by the part of the scheduler.",
	}, []string{"part"})}
}

// Register registers the metric.
func (p *Panics) Register(register func(...metrics.Registerable)) { register(p.total) }

// Guard returns the guard of a part of the scheduler; its panics are logged and counted under that name. A nil Panics counts
// none.
func (p *Panics) Guard(part string) *Guard {
	g := &Guard{part: part, skipped: map[string]string{}, count: func() {}}
	if p != nil {
		g.count = func() { p.total.WithLabelValues(part).Inc() }
	}
	return g
}

// Guard keeps a panic over the data of one user from ending the process: the gang is skipped until it changes, and all others
// are processed. Its methods may be called from several goroutines.
type Guard struct {
	part  string
	count func()

	mu      sync.Mutex
	skipped map[string]string // by key: the version that panicked
}

// Do runs the work for a key. done is false if the work panicked, now or on the same version before. version is only called if
// the work panics, or did.
func (g *Guard) Do(logger klog.Logger, key string, version func() string, work func() error) (done bool, err error) {
	if g.skips(key, version) {
		return false, nil
	}
	defer func() {
		if cause := recover(); cause != nil {
			g.count()
			g.skip(key, version)
			logger.Error(fmt.Errorf("panic: %v", cause), "Skipping a gang until it changes: this is a bug, please report it",
				"part", g.part, "gang", key, "stack", string(debug.Stack()))
			done, err = false, nil
		}
	}()
	return true, work()
}

// Each runs work that is not done again, over what the log calls by this name. done is false if it panicked.
func (g *Guard) Each(logger klog.Logger, name func() string, work func()) (done bool) {
	defer func() {
		if cause := recover(); cause != nil {
			g.count()
			logger.Error(fmt.Errorf("panic: %v", cause), "Skipping what was to be done for an object: this is a bug, please report it",
				"part", g.part, "object", name(), "stack", string(debug.Stack()))
		}
	}()
	work()
	return true
}

func (g *Guard) skips(key string, version func() string) bool {
	g.mu.Lock()
	at, skipped := g.skipped[key]
	g.mu.Unlock()
	if !skipped {
		return false
	}
	if at == version() {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.skipped, key)
	return false
}

func (g *Guard) skip(key string, version func() string) {
	at := version()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.skipped) >= maxSkipped {
		clear(g.skipped)
	}
	g.skipped[key] = at
}

// VersionOf returns the version of a gang for a guard: it changes with every change to one of its objects.
func VersionOf[T metav1.Object](objects ...T) string {
	versions := make([]string, 0, len(objects))
	for _, o := range objects {
		versions = append(versions, string(o.GetUID())+"@"+o.GetResourceVersion())
	}
	slices.Sort(versions)
	return strings.Join(versions, " ")
}

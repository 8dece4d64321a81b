// Package queuesort has the engine try gangs, and pods on their own, in the order of package order.
//
// The response ratio changes with time, and the engine's queue is a heap, which compares when something comes or goes. That is exact
// enough, because gangs that wait do not wait in that heap. A gang that failed is parked by the planner, and comes into the heap
// with all others that the same event may help, within one moment; it leaves it as fast as the engine tries. The plugin compares as of
// the last full second, so that what comes and goes within one is ordered as one would by hand. What stays for longer, in a burst, is
// compared again by and by; those who have just come are behind all who wait, then as before, so none stays indefinitely. See ADR 0033.
package queuesort

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/order"
	"github.com/gangctl/gangctl/scheduler/plugins/args"
)

const (
	// Name is the name of the plugin in a configuration file.
	Name = "GangOrder"
	// Replaces is the engine's own order: priority, then the time of the last attempt.
	Replaces = names.PrioritySort
)

// Args are the arguments of the plugin GangOrder.
type Args struct {
	// Policy orders those of one priority: HighestResponseRatio, the default, or FirstComeFirstServed.
	Policy order.Policy `json:"policy"`
}

// DefaultArgs are the arguments where a configuration sets none.
func DefaultArgs() Args { return Args{Policy: order.HighestResponseRatio} }

// Validate implements args.Args.
func (a Args) Validate() error {
	if !a.Policy.Known() {
		return fmt.Errorf("policy: %q is neither %s nor %s", a.Policy, order.HighestResponseRatio, order.FirstComeFirstServed)
	}
	return nil
}

// PolicyOf is the policy of a scheduler with these profiles, which share one queue: the engine refuses profiles that order it in
// different ways. Where the plugin is not on, it is FirstComeFirstServed, which the engine's own order is like.
func PolicyOf(profiles []schedulerconfig.KubeSchedulerProfile) (order.Policy, error) {
	if len(profiles) == 0 {
		return order.FirstComeFirstServed, nil
	}
	first := profiles[0]
	if p := first.Plugins; p != nil && !enabled(p) {
		return order.FirstComeFirstServed, nil
	}
	a := DefaultArgs()
	for _, config := range first.PluginConfig {
		if config.Name != Name {
			continue
		}
		var err error
		if a, err = args.Decode(config.Args, a); err != nil {
			return "", fmt.Errorf("profile %s: plugin %s: %w", first.SchedulerName, Name, err)
		}
	}
	return a.Policy, nil
}

// enabled reports whether the plugin is on: it is unless it is disabled, or another orders the queue.
func enabled(p *schedulerconfig.Plugins) bool {
	for _, disabled := range p.MultiPoint.Disabled {
		if disabled.Name == Name {
			return false
		}
	}
	return !Ordered(p)
}

// Ordered reports whether a configuration names a plugin for the order of the queue, other than ours.
func Ordered(p *schedulerconfig.Plugins) bool {
	return len(p.QueueSort.Enabled) > 0 && p.QueueSort.Enabled[0].Name != Name
}

// Members returns the pods of a gang.
type Members func(group types.NamespacedName) []*corev1.Pod

// Sorter orders the engine's queue. All profiles share one.
type Sorter struct {
	ranking *order.Ranking
	runs    *order.Runs
	members Members
	count   *metrics.CounterVec
	clock   clock.PassiveClock
	// started is when this scheduler began to queue. Who waited before was refused by another.
	started time.Time

	mu      sync.Mutex
	at      time.Time // the moment as of which is compared
	entries map[fwk.QueuedEntityInfo]order.Entry
}

// NewSorter returns a sorter by a ranking. Of the gangs that start, runs are noted.
func NewSorter(ranking *order.Ranking, runs *order.Runs, members Members, clock clock.PassiveClock) *Sorter {
	return &Sorter{
		ranking: ranking, runs: runs, members: members, clock: clock, started: clock.Now(), entries: map[fwk.QueuedEntityInfo]order.Entry{},
		count: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "started_gangs_total", StabilityLevel: metrics.ALPHA,
			Help: "Gangs that started, by what their expected runtime was known from: deadline, annotation, learnt, or unknown.",
		}, []string{"runtime"}),
	}
}

// Register registers the sorter's metrics.
func (s *Sorter) Register(register func(...metrics.Registerable)) { register(s.count) }

// Plugin is GangOrder in one profile.
type Plugin struct{ *Sorter }

var (
	_ fwk.QueueSortPlugin = &Plugin{}
	_ fwk.ReservePlugin   = &Plugin{}
)

// NewPlugin is the factory of the plugin.
func (s *Sorter) NewPlugin(_ context.Context, object runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
	if _, err := args.Decode(object, DefaultArgs()); err != nil {
		return nil, err
	}
	return &Plugin{Sorter: s}, nil
}

// Name implements fwk.Plugin.
func (p *Plugin) Name() string { return Name }

// Less implements fwk.QueueSortPlugin.
func (p *Plugin) Less(a, b fwk.QueuedEntityInfo) bool { return p.compare(a, b) < 0 }

// Reserve implements fwk.ReservePlugin: it notes that a gang starts, once it is decided.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if group, ok := engine.GroupOf(pod); ok && !state.IsPodGroupSchedulingCycle() {
		if p.runs.Started(group, pod, func() []*corev1.Pod { return p.members(group) }) {
			p.count.WithLabelValues(cmp.Or(string(p.ranking.Expect(p.members(group)).Basis), "unknown")).Inc()
		}
	}
	return nil
}

// Unreserve implements fwk.ReservePlugin. A gang of which a member could not be bound is tried again, and was started by then.
func (p *Plugin) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) {}

// compare compares as of the last full second.
func (s *Sorter) compare(a, b fwk.QueuedEntityInfo) int {
	now := s.clock.Now().Truncate(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !now.Equal(s.at) {
		s.at = now
		clear(s.entries)
	}
	return s.ranking.Compare(s.entry(a), s.entry(b), now)
}

// entry is that of an entity of the queue, the same for a second. The lock is held.
func (s *Sorter) entry(entity fwk.QueuedEntityInfo) order.Entry {
	if e, ok := s.entries[entity]; ok {
		return e
	}
	e := order.Entry{Priority: entity.GetPriority(), Since: entity.GetTimestamp()}
	if first := entity.GetInitialAttemptTimestamp(); first != nil {
		e.Since = *first
	}
	if queued, ok := entity.(framework.QueuedEntityInfo); ok {
		e.Name = queued.GetNamespace() + "/" + queued.GetName()
		var pods []*corev1.Pod
		var first *time.Time // of a member that waits: those that have places do not wait any more
		queued.ForEachPodInfo(func(info *framework.QueuedPodInfo) bool {
			pods = append(pods, info.Pod)
			if at := info.GetInitialAttemptTimestamp(); at != nil && (first == nil || at.Before(*first)) {
				first = at
			}
			return true
		})
		if first != nil {
			e.Since = *first
		}
		for _, pod := range pods {
			if reason, since := order.Refused(pod); reason == corev1.PodReasonUnschedulable && since.Before(s.started) && since.Before(e.Since) && !since.IsZero() {
				e.Since = since
			}
		}
		e.Expected = s.ranking.Expect(pods)
	}
	s.entries[entity] = e
	return e
}

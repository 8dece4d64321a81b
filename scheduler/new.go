package scheduler

import (
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/explainer"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/plugins/queuesort"
	"github.com/gangctl/gangctl/scheduler/record"
)

// Config has the dependencies and settings of a scheduler. The feature gates of the process are set before: see [SetDefaultGates].
type Config struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Profiles are those of kube-scheduler; our plugins are added. Their names are those that the scheduler answers to.
	Profiles []schedulerconfig.KubeSchedulerProfile
	// Plugins are further ones that the profiles name.
	Plugins frameworkruntime.Registry
	// DynamicInformers are for resources that the profiles' plugins watch; may be nil.
	DynamicInformers dynamicinformer.DynamicSharedInformerFactory
	// Recorders report on pods that are on their own.
	Recorders profile.RecorderFactory
	// Namespace is where the scheduler has its lease, and the key with which it signs.
	Namespace string
	// Priority is what that of a gang is taken from.
	Priority gangcache.Priority
	// InformerName names the informers in metrics; may be nil.
	InformerName *cache.InformerName
	// Register adds metrics to a registry; nil leaves them out.
	Register func(...metrics.Registerable)
	// Options are further ones of the engine.
	Options []upstream.Option
}

// Scheduler is kube-scheduler's engine, fed with gangs, and what works alongside it.
type Scheduler struct {
	// Engine is ready to run once Informers are started and have synced.
	Engine *upstream.Scheduler
	// Informers are those that the engine reads. Pods are pointed to their gangs, and PodGroups are the gangs of all dialects.
	Informers informers.SharedInformerFactory
	// Client is the one that the engine writes with.
	Client kubernetes.Interface
	// Profiles are those of the configuration, with our plugins.
	Profiles []schedulerconfig.KubeSchedulerProfile

	gangs   *gangs
	parts   parts
	events  *record.Recorder // on gangs; the engine has its own for pods
	counted []measured
	listing listing
	work    sync.WaitGroup
}

// measured is a part of the scheduler with metrics of its own.
type measured interface {
	Register(register func(...metrics.Registerable))
}

// New builds the engine with three things of our own: the informer that shows it pods (each pointed to its gang), the one that shows it
// gangs, and the client through which it binds and reports.
func New(ctx context.Context, c Config) (*Scheduler, error) {
	limitDeviceSearch(c.Profiles)
	names := profileNames(c.Profiles)
	foreignNames, err := claims.Names(c.Profiles)
	if err != nil {
		return nil, err
	}
	policy, err := queuesort.PolicyOf(c.Profiles)
	if err != nil {
		return nil, err
	}
	binder := engine.NewBinder(clock.RealClock{})
	recorder := record.New(c.Client.EventsV1(), names[0], clock.RealClock{}, binder.Idle)
	g, err := newGangs(gangsConfig{
		client: c.Client, dynamic: c.Dynamic, follow: explainer.FollowCluster, names: names, namespace: c.Namespace,
		recorder: recorder, idle: binder.Idle, busy: binder.Busy, informerName: c.InformerName,
		priority: c.Priority, policy: policy, foreignNames: foreignNames,
	})
	if err != nil {
		return nil, err
	}
	p := newParts(g, c.Profiles)
	plugins := extensions(p)
	if err := checkNames(c.Profiles, plugins, c.Plugins); err != nil {
		return nil, err
	}
	enable(c.Profiles, plugins)
	s := &Scheduler{
		Informers: g.factory, Client: g.statuses.Client(binder.Client(g.client)), Profiles: c.Profiles, gangs: g, parts: p, events: recorder,
		// listed in docs/scheduler.md, and a test holds the two to each other
		counted: []measured{g.reasons, g.explainer, g.panics, binder, p.planner, p.claims, p.replacement, p.aging, p.queueSort, p.belowMinimum, p.binding, p.packing, p.crossNode, p.preemption},
		listing: listing{gangs: g, aging: p.aging, clock: clock.RealClock{}},
	}
	if c.Register != nil {
		for _, part := range s.counted {
			part.Register(c.Register)
		}
	}
	recorders := func(name string) events.EventRecorderLogger { return engine.FilterMemberEvents(c.Recorders(name)) }
	options := append(slices.Clone(c.Options), upstream.WithProfiles(c.Profiles...))
	s.Engine, err = newEngine(ctx, p, c.Plugins, s.Client, s.Informers, c.DynamicInformers, recorders, options...)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Start runs what works alongside the engine until ctx ends, and returns. It calls fail if the gangs cannot be read. The engine takes its
// first gang when it runs.
func (s *Scheduler) Start(ctx context.Context, fail func()) {
	s.work.Go(func() { s.events.Run(ctx) })
	s.gangs.follow(ctx, &s.work, s.Engine, fail)
	s.work.Go(func() { s.parts.aging.Run(ctx) })
	s.work.Go(func() { s.parts.preemption.Run(ctx) })
	s.work.Go(func() { s.parts.planner.Run(ctx) })
}

// Wait waits until all that Start runs has ended.
func (s *Scheduler) Wait() { s.work.Wait() }

package scheduler

import (
	"context"
	"fmt"
	"sync"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/plugins/queuesort"
	"github.com/gangctl/gangctl/scheduler/record"
)

// instance is one scheduler, ready to run.
type instance struct {
	config *schedulerserverconfig.CompletedConfig
	engine *upstream.Scheduler
	gangs  *gangs
	parts  parts
	events *record.Recorder // on gangs; the engine has its own for pods

	listing listing
	counted []measured
	work    sync.WaitGroup // what runs alongside the engine
}

// measured is a part of the scheduler with metrics of its own.
type measured interface {
	Register(register func(...metrics.Registerable))
}

// setup builds the engine from kube-scheduler's options, with three things of
// our own: the informer that shows it pods (each pointed to its gang), the one
// that shows it gangs, and the client through which it reports on them.
func setup(ctx context.Context, opts *settings) (*instance, error) {
	c, err := configure(ctx, opts)
	if err != nil {
		return nil, err
	}
	client, dyn, err := clients(c.KubeConfig)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	profiles, err := addProfiles(c.ComponentConfig.Profiles, opts.serve)
	if err != nil {
		return nil, err
	}
	limitDeviceSearch(profiles)
	c.ComponentConfig.Profiles = profiles
	names := profileNames(profiles)
	foreignNames, err := claims.Names(profiles)
	if err != nil {
		return nil, err
	}
	policy, err := queuesort.PolicyOf(profiles)
	if err != nil {
		return nil, err
	}

	binder := engine.NewBinder(clock.RealClock{})
	recorder := record.New(client.EventsV1(), names[0], clock.RealClock{}, binder.Idle)
	g, err := newGangs(cluster{
		client: client, dynamic: dyn, collect: collect.Collect, names: names, namespace: c.ComponentConfig.LeaderElection.ResourceNamespace,
		recorder: recorder, idle: binder.Idle, informerName: opts.InformerName,
		priority: opts.priority, policy: policy, foreignNames: foreignNames,
	})
	if err != nil {
		return nil, err
	}
	c.Client, c.InformerFactory = binder.Client(g.client), g.factory
	p := newParts(g, profiles)
	if err := checkNames(profiles, extensions(p)); err != nil {
		return nil, err
	}
	counted := []measured{g.reasons, g.explainer, g.panics, binder, p.planner, p.claims, p.replacement, p.aging, p.queueSort, p.belowMinimum, p.binding, p.packing, p.preemption}
	for _, part := range counted { // listed in docs/scheduler.md, and a test holds the two to each other
		part.Register(legacyregistry.MustRegister)
	}
	enable(profiles, extensions(p))
	cc := c.Complete()
	engine, err := newEngine(ctx, p, cc.Client, cc.InformerFactory, cc.DynInformerFactory, recorders(&cc), engineOptions(&cc)...)
	if err != nil {
		return nil, err
	}
	if err := options.LogOrWriteConfig(klog.FromContext(ctx), opts.WriteConfigTo, &cc.ComponentConfig, nil); err != nil {
		return nil, err
	}
	return &instance{
		config: &cc, engine: engine, gangs: g, parts: p, events: recorder, counted: counted, listing: listing{gangs: g, keeper: p.aging, clock: clock.RealClock{}},
	}, nil
}

// configure reads kube-scheduler's configuration, with our defaults.
func configure(ctx context.Context, opts *settings) (*schedulerserverconfig.Config, error) {
	defaults, err := defaultConfig()
	if err != nil {
		return nil, err
	}
	opts.ComponentConfig = defaults
	if err := ownLease(klog.FromContext(ctx), opts.Options); err != nil {
		return nil, err
	}
	if errs := opts.Validate(); len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	if opts.InformerName, err = cache.NewInformerName(DefaultName); err != nil {
		return nil, err
	}
	c, err := opts.Config(ctx)
	if err != nil {
		return nil, err
	}
	return c, ownProfile(klog.FromContext(ctx), opts.ConfigFile, c.ComponentConfig.Profiles)
}

// clients are those through which everything is read. Their watches find an API
// server soon that was away.
func clients(config *rest.Config) (kubernetes.Interface, dynamic.Interface, error) {
	config = rest.AddUserAgent(config, DefaultName) // a copy
	config.Wrap(engine.NewReconnector(clock.RealClock{}).Wrap)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	dyn, err := dynamic.NewForConfig(config)
	return client, dyn, err
}

// recorders are those through which the engine reports on pods.
func recorders(cc *schedulerserverconfig.CompletedConfig) profile.RecorderFactory {
	return func(name string) events.EventRecorderLogger {
		return engine.FilterMemberEvents(cc.EventBroadcaster.NewRecorder(name))
	}
}

// engineOptions are what kube-scheduler's own main gives to the engine.
func engineOptions(cc *schedulerserverconfig.CompletedConfig) []upstream.Option {
	return []upstream.Option{
		upstream.WithComponentConfigVersion(cc.ComponentConfig.APIVersion),
		upstream.WithKubeConfig(cc.KubeConfig),
		upstream.WithProfiles(cc.ComponentConfig.Profiles...),
		upstream.WithPercentageOfNodesToScore(cc.ComponentConfig.PercentageOfNodesToScore),
		upstream.WithPodMaxBackoffSeconds(cc.ComponentConfig.PodMaxBackoffSeconds),
		upstream.WithPodInitialBackoffSeconds(cc.ComponentConfig.PodInitialBackoffSeconds),
		upstream.WithPodMaxInUnschedulablePodsDuration(cc.PodMaxInUnschedulablePodsDuration),
		upstream.WithExtenders(cc.ComponentConfig.Extenders...),
		upstream.WithParallelism(cc.ComponentConfig.Parallelism),
	}
}

// run serves and schedules. The engine's own main loop keeps the lease.
func (s *instance) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.work.Wait()
	defer cancel()
	if err := s.serve(ctx); err != nil {
		return err
	}
	s.work.Go(func() { s.events.Run(ctx) })
	s.gangs.follow(ctx, &s.work, s.engine, cancel)
	s.work.Go(func() { s.parts.aging.Run(ctx) })
	s.work.Go(func() { s.parts.preemption.Run(ctx) })
	return app.Run(ctx, s.config, s.engine)
}

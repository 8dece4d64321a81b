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
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/aging"
	"github.com/gangctl/gangctl/scheduler/plugins/preemption"
	"github.com/gangctl/gangctl/scheduler/record"
)

// How many requests a second the scheduler sends to the API server at most, and
// at once, unless its configuration says otherwise.
const (
	clientQPS   = 1000
	clientBurst = 2000
)

// instance is one scheduler, ready to run.
type instance struct {
	config *schedulerserverconfig.CompletedConfig
	engine *upstream.Scheduler
	gangs  *gangs
	keeper *aging.Keeper
	events *record.Recorder // on gangs; the engine has its own for pods

	preemptor *preemption.Preemptor

	listing listing
	counted []measured
	work    sync.WaitGroup // what runs beside the engine
}

// setup builds the engine from kube-scheduler's options, with three things of
// our own: the informer that shows it pods (each pointed to its gang), the one
// that shows it gangs, and the client through which it reports on them.
func setup(ctx context.Context, opts *settings) (*instance, error) {
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
	client, dyn, err := clients(c.KubeConfig)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	profiles, err := serve(c.ComponentConfig.Profiles, opts.serve)
	if err != nil {
		return nil, err
	}
	c.ComponentConfig.Profiles = profiles
	names := profileNames(profiles)

	recorder := record.New(client.EventsV1(), names[0], clock.RealClock{})
	g, err := gather(client, dyn, names, recorder, opts.InformerName)
	if err != nil {
		return nil, err
	}
	binder := engine.NewBindConfirmer(clock.RealClock{})
	c.Client, c.InformerFactory = binder.Client(g.client), g.factory
	p := assemble(g, c.ComponentConfig.Profiles)
	counted := []measured{g.notes, g.why, binder, p.planner, p.claims, p.places, p.keeper, g.policy, p.barrier, p.score, p.preempt}
	measure(legacyregistry.MustRegister, counted...)
	plugins := extensions(p)
	enable(c.ComponentConfig.Profiles, plugins)
	cc := c.Complete()
	engine, err := newEngine(ctx, &cc, registry(p.engine, plugins))
	if err != nil {
		return nil, err
	}
	p.planner.Attach(engine, p.preempt.Gone)
	if err := options.LogOrWriteConfig(klog.FromContext(ctx), opts.WriteConfigTo, &cc.ComponentConfig, nil); err != nil {
		return nil, err
	}
	return &instance{
		config: &cc, engine: engine, gangs: g, keeper: p.keeper, events: recorder, preemptor: p.preempt, counted: counted,
		listing: listing{gangs: g, keeper: p.keeper},
	}, nil
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

func newEngine(ctx context.Context, cc *schedulerserverconfig.CompletedConfig, plugins frameworkruntime.Registry) (*upstream.Scheduler, error) {
	recorders := profile.RecorderFactory(func(name string) events.EventRecorderLogger {
		return engine.FilterMemberEvents(cc.EventBroadcaster.NewRecorder(name))
	})
	engine, err := upstream.New(ctx, cc.Client, cc.InformerFactory, cc.DynInformerFactory, recorders,
		upstream.WithComponentConfigVersion(cc.ComponentConfig.APIVersion),
		upstream.WithKubeConfig(cc.KubeConfig),
		upstream.WithFrameworkOutOfTreeRegistry(plugins),
		upstream.WithProfiles(cc.ComponentConfig.Profiles...),
		upstream.WithPercentageOfNodesToScore(cc.ComponentConfig.PercentageOfNodesToScore),
		upstream.WithPodMaxBackoffSeconds(cc.ComponentConfig.PodMaxBackoffSeconds),
		upstream.WithPodInitialBackoffSeconds(cc.ComponentConfig.PodInitialBackoffSeconds),
		upstream.WithPodMaxInUnschedulablePodsDuration(cc.PodMaxInUnschedulablePodsDuration),
		upstream.WithExtenders(cc.ComponentConfig.Extenders...),
		upstream.WithParallelism(cc.ComponentConfig.Parallelism),
	)
	if err != nil {
		return nil, fmt.Errorf("create scheduler: %w", err)
	}
	return engine, nil
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
	s.work.Go(func() { s.keeper.Run(ctx) })
	s.work.Go(func() { s.preemptor.Run(ctx) })
	return app.Run(ctx, s.config, s.engine)
}

// defaultConfig is kube-scheduler's default configuration under our own name,
// so that the two never take each other's pods or lease.
func defaultConfig() (*schedulerconfig.KubeSchedulerConfiguration, error) {
	cfg, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("default configuration: %w", err)
	}
	cfg.Profiles[0].SchedulerName = DefaultName
	// A gang of 100 would otherwise take two seconds to be bound. API servers
	// look after themselves (priority and fairness).
	cfg.ClientConnection.QPS, cfg.ClientConnection.Burst = clientQPS, clientBurst
	cfg.LeaderElection.ResourceName = DefaultName
	cfg.LeaderElection.ResourceNamespace = DefaultNamespace
	return cfg, nil
}

func profileNames(profiles []schedulerconfig.KubeSchedulerProfile) []string {
	names := make([]string, 0, len(profiles))
	for _, p := range profiles {
		names = append(names, p.SchedulerName)
	}
	return names
}

// ownLease keeps a configuration file that says nothing of leader election
// from making us wait for ever for the lease that kube-scheduler holds.
func ownLease(logger klog.Logger, opts *options.Options) error {
	if opts.ConfigFile == "" {
		return nil
	}
	cfg, err := options.LoadConfigFromFile(logger, opts.ConfigFile)
	if err != nil {
		return fmt.Errorf("read configuration %s: %w", opts.ConfigFile, err)
	}
	upstreams, err := latest.Default()
	if err != nil {
		return fmt.Errorf("default configuration: %w", err)
	}
	lease, theirs := cfg.LeaderElection, upstreams.LeaderElection
	if lease.ResourceName != theirs.ResourceName || lease.ResourceNamespace != theirs.ResourceNamespace {
		return nil
	}
	flags := opts.Flags.FlagSet("leader election")
	for flag, value := range map[string]string{
		"leader-elect-resource-name":      DefaultName,
		"leader-elect-resource-namespace": DefaultNamespace,
	} {
		if flags.Changed(flag) {
			continue
		}
		if err := flags.Set(flag, value); err != nil {
			return fmt.Errorf("set --%s: %w", flag, err)
		}
	}
	return nil
}

package scheduler

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/scheduler/board"
	"github.com/gangctl/gangctl/scheduler/feed"
	"github.com/gangctl/gangctl/scheduler/intercept"
	"github.com/gangctl/gangctl/scheduler/roster"
	"github.com/gangctl/gangctl/scheduler/status"
	"github.com/gangctl/gangctl/scheduler/virtual"
)

// instance is one scheduler, ready to run.
type instance struct {
	config  *schedulerserverconfig.CompletedConfig
	engine  *upstream.Scheduler
	members *members
	feed    *feed.Feed
	status  *status.Controller
}

// setup builds the engine from kube-scheduler's options, with three things of
// our own: the informer that shows it pods (each pointed to its gang), the one
// that shows it gangs, and the client through which it reports on them.
func setup(ctx context.Context, opts *options.Options) (*instance, error) {
	defaults, err := defaultConfig()
	if err != nil {
		return nil, err
	}
	opts.ComponentConfig = defaults
	if err := ownLease(klog.FromContext(ctx), opts); err != nil {
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
	dyn, err := dynamic.NewForConfig(rest.AddUserAgent(c.KubeConfig, DefaultName))
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}

	notes := &board.Board{}
	store := virtual.NewStore()
	gangs := roster.New(store)
	names := profileNames(c.ComponentConfig.Profiles)
	members, err := newMembers(c.Client, names)
	if err != nil {
		return nil, err
	}
	handler := &groupHandler{roster: gangs}
	groups := feed.New(dyn, schedulerplugins.CRDName, schedulerplugins.GVR(), handler)
	controller := (&status.Controller{
		Client:     c.Client,
		Dynamic:    dyn,
		Members:    members.of,
		Objects:    groups,
		Synced:     members.hasSynced,
		Incomplete: gangs.Incomplete,
		Recorder:   c.EventBroadcaster.NewRecorder(names[0]),
		Clock:      clock.RealClock{},
	}).Complete()
	handler.touch = controller.Touch
	if err := members.notify(gangs, controller.Touch); err != nil {
		return nil, err
	}

	c.Client = intercept.Client(c.Client, &decisions{store: store, report: controller.Decided})
	c.InformerFactory = informerFactory(c.Client, opts, members.live, store)
	plugins := extensions(parts{board: notes})
	enable(c.ComponentConfig.Profiles, plugins)
	cc := c.Complete()
	engine, err := newEngine(ctx, &cc, plugins)
	if err != nil {
		return nil, err
	}
	if err := options.LogOrWriteConfig(klog.FromContext(ctx), opts.WriteConfigTo, &cc.ComponentConfig, nil); err != nil {
		return nil, err
	}
	return &instance{config: &cc, engine: engine, members: members, feed: groups, status: controller}, nil
}

// informerFactory is kube-scheduler's, with our informers of pods and gangs.
func informerFactory(client kubernetes.Interface, opts *options.Options, pods cache.SharedIndexInformer, store *virtual.Store) informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithInformerName(opts.InformerName))
	factory.InformerFor(&corev1.Pod{}, fixed(regrouped{pods}))
	factory.InformerFor(&schedulingv1beta1.PodGroup{}, fixed(
		cache.NewSharedIndexInformer(store, &schedulingv1beta1.PodGroup{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})))
	return factory
}

func fixed(informer cache.SharedIndexInformer) func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
	return func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return informer }
}

func newEngine(ctx context.Context, cc *schedulerserverconfig.CompletedConfig, plugins []extension) (*upstream.Scheduler, error) {
	recorders := profile.RecorderFactory(func(name string) events.EventRecorderLogger {
		return cc.EventBroadcaster.NewRecorder(name)
	})
	engine, err := upstream.New(ctx, cc.Client, cc.InformerFactory, cc.DynInformerFactory, recorders,
		upstream.WithComponentConfigVersion(cc.ComponentConfig.APIVersion),
		upstream.WithKubeConfig(cc.KubeConfig),
		upstream.WithFrameworkOutOfTreeRegistry(registry(plugins)),
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

// run serves and schedules. The engine's own main loop keeps the lease, the
// health checks and the metrics.
func (s *instance) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	logger := klog.FromContext(ctx)
	work.Go(func() { s.members.ended.RunWithContext(ctx) })
	work.Go(func() {
		if err := s.feed.Run(ctx); err != nil {
			logger.Error(err, "Cannot read PodGroups")
			cancel()
		}
	})
	// Reports are written by the replica that schedules, and by no other. The
	// engine asks for its first gang when it has the lease, and not before.
	var leading sync.Once
	next := s.engine.NextEntity
	s.engine.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		leading.Do(func() { work.Go(func() { s.status.Run(ctx) }) })
		return next(logger)
	}
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

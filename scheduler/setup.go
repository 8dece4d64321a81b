package scheduler

import (
	"context"
	"fmt"

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
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/scheduler/engine"
)

// instance is the scheduler of one process: it serves, and takes part in the election of a leader.
type instance struct {
	*Scheduler
	config *schedulerserverconfig.CompletedConfig
}

// setup builds the scheduler from kube-scheduler's options and ours.
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
	s, err := New(ctx, Config{
		Client: client, Dynamic: dyn, Profiles: profiles, DynamicInformers: c.DynInformerFactory,
		Recorders: func(name string) events.EventRecorderLogger { return c.EventBroadcaster.NewRecorder(name) },
		Namespace: c.ComponentConfig.LeaderElection.ResourceNamespace, Priority: opts.priority, InformerName: opts.InformerName,
		Register: legacyregistry.MustRegister, Options: engineOptions(c),
	})
	if err != nil {
		return nil, err
	}
	c.Client, c.InformerFactory, c.ComponentConfig.Profiles = s.Client, s.Informers, s.Profiles
	cc := c.Complete()
	if err := options.LogOrWriteConfig(klog.FromContext(ctx), opts.WriteConfigTo, &cc.ComponentConfig, nil); err != nil {
		return nil, err
	}
	return &instance{Scheduler: s, config: &cc}, nil
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

// engineOptions are the options that kube-scheduler's own main gives to the engine.
func engineOptions(cc *schedulerserverconfig.Config) []upstream.Option {
	return []upstream.Option{
		upstream.WithComponentConfigVersion(cc.ComponentConfig.APIVersion),
		upstream.WithKubeConfig(cc.KubeConfig),
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
	defer s.Wait()
	defer cancel()
	if err := s.serve(ctx); err != nil {
		return err
	}
	s.Start(ctx, cancel)
	return app.Run(ctx, s.config, s.Engine)
}

package scheduler

import (
	"context"
	"fmt"
	"time"

	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/features"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/scheduler/engine"
)

// discoverAgain is how often an API server is asked for its APIs that does not answer yet.
const discoverAgain = time.Second

// enableComposite has the engine place composite PodGroups where the API server serves them, which an administrator decides: the API is alpha. A gate that
// is set in the flags stays, and to set one without the API is an error, because the engine would wait for it and schedule nothing. It goes before the
// configuration is read: plugins are on by default according to the gates.
func enableComposite(ctx context.Context, gate featuregate.MutableVersionedFeatureGate, served engine.ServedFunc) error {
	chosen := gate.ExplicitlySet(features.CompositePodGroup)
	if chosen && !gate.Enabled(features.CompositePodGroup) {
		return nil
	}
	api := schedulingv1alpha3.SchemeGroupVersion.WithResource("compositepodgroups")
	serves, err := answered(ctx, func(ctx context.Context) (bool, error) { return served(ctx, api) })
	switch {
	case err != nil:
		return err
	case chosen && !serves:
		return failure.Usagef("--feature-gates: %s=true: the API server does not serve %s of %s", features.CompositePodGroup, api.Resource, api.GroupVersion()).
			WithHint("leave the gate out: it is on where the API is served")
	case chosen || !serves:
		return nil
	case gate.ExplicitlySet(features.TopologyAwareWorkloadScheduling) && !gate.Enabled(features.TopologyAwareWorkloadScheduling):
		klog.FromContext(ctx).Info("Composite PodGroups are served, and not placed as such without the other gate", "gate", features.TopologyAwareWorkloadScheduling)
		return nil
	}
	err = gate.SetFromMap(map[string]bool{string(features.TopologyAwareWorkloadScheduling): true, string(features.CompositePodGroup): true})
	if err != nil {
		return fmt.Errorf("place composite PodGroups: %w", err)
	}
	return nil
}

// answered repeats a request to the API server until it is answered: it may start later than the scheduler.
func answered(ctx context.Context, request func(context.Context) (bool, error)) (yes bool, err error) {
	stopped := wait.PollUntilContextCancel(ctx, discoverAgain, true, func(ctx context.Context) (bool, error) {
		if yes, err = request(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot read which APIs are served, and try again")
		}
		return err == nil, nil
	})
	if stopped != nil && err == nil {
		err = stopped
	}
	return yes, err
}

// discoveryOf returns a client for discovery, by kube-scheduler's options: the kubeconfig is in the configuration file, or in a flag without one.
func discoveryOf(ctx context.Context, opts *options.Options) (discovery.DiscoveryInterface, error) {
	kubeconfig := opts.Flags.FlagSet("deprecated").Lookup("kubeconfig").Value.String()
	if opts.ConfigFile != "" {
		cfg, err := options.LoadConfigFromFile(klog.FromContext(ctx), opts.ConfigFile)
		if err != nil {
			return nil, fmt.Errorf("read configuration %s: %w", opts.ConfigFile, err)
		}
		kubeconfig = cfg.ClientConnection.Kubeconfig
	}
	config, err := clientcmd.BuildConfigFromFlags(opts.Master, kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return discovery.NewDiscoveryClientForConfig(config)
}

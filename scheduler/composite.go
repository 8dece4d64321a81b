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

// discoverAgain is how often the APIs of an API server are queried that does not answer yet.
const discoverAgain = time.Second

// enableComposite has the engine place composite PodGroups where the API server serves them, which an administrator decides: the API is alpha. Where it is not
// served the gate must be off, or the engine would wait for it and schedule nothing: to have set it is an error, and AllAlpha does not count. It goes before
// the configuration is read: plugins are on by default according to the gates.
func enableComposite(ctx context.Context, gate featuregate.MutableVersionedFeatureGate, served engine.ServedFunc) error {
	on, chosen := gate.Enabled(features.CompositePodGroup), gate.ExplicitlySet(features.CompositePodGroup)
	if chosen && !on {
		return nil
	}
	api := schedulingv1alpha3.SchemeGroupVersion.WithResource("compositepodgroups")
	serves, err := answered(ctx, func(ctx context.Context) (bool, error) { return served(ctx, api) })
	switch topology := features.TopologyAwareWorkloadScheduling; {
	case err != nil:
		return err
	case on && !serves && chosen:
		return failure.Usagef("--feature-gates: %s=true: the API server does not serve %s of %s", features.CompositePodGroup, api.Resource, api.GroupVersion()).
			WithHint("leave the gate out: it is on where the API is served")
	case on == serves:
		return nil
	case serves && gate.ExplicitlySet(topology) && !gate.Enabled(topology):
		klog.FromContext(ctx).Info("Composite PodGroups are served, and not placed as such without the other gate", "gate", topology)
		return nil
	case serves:
		err = gate.SetFromMap(map[string]bool{string(topology): true, string(features.CompositePodGroup): true})
	default:
		err = gate.SetFromMap(map[string]bool{string(features.CompositePodGroup): false})
	}
	if err != nil {
		return fmt.Errorf("set the gate %s as the API server serves %s: %w", features.CompositePodGroup, api.Resource, err)
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
		cfg, err := configurationIn(klog.FromContext(ctx), opts.ConfigFile)
		if err != nil {
			return nil, err
		}
		kubeconfig = cfg.ClientConnection.Kubeconfig
	}
	config, err := clientcmd.BuildConfigFromFlags(opts.Master, kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return discovery.NewDiscoveryClientForConfig(config)
}

// Package spread leaves out the engine's check of topology spread constraints where the plan has made it.
//
// PodTopologySpread counts the pods of every node for each pod with a constraint. The plan of a gang has counted them once, for all members
// together, and keeps to the constraints in the order in which the engine tries the members. The plugin GangTopologySpread is PodTopologySpread
// at PreFilter and Filter, and skips both for a member on its planned node. All other pods are checked as by PodTopologySpread, which
// goes on scoring.
package spread

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/metrics"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"

	"github.com/gangctl/gangctl/scheduler/plugins/args"
)

// Name is the name of the plugin in a configuration file.
const Name = "GangTopologySpread"

// Replaces is the engine's plugin that is switched off at Points.
const Replaces = names.PodTopologySpread

// Points are the extension points of the plugin in a configuration.
func Points(p *schedulerconfig.Plugins) []*schedulerconfig.PluginSet {
	return []*schedulerconfig.PluginSet{&p.PreFilter, &p.Filter}
}

// Configured reports whether a configuration has PodTopologySpread off, or says itself where it is on: the plugin then stays off.
func Configured(p *schedulerconfig.Plugins) bool {
	for _, set := range Points(p) {
		if slices.ContainsFunc(slices.Concat(set.Enabled, set.Disabled), func(q schedulerconfig.Plugin) bool {
			return q.Name == Replaces || q.Name == Name || q.Name == "*"
		}) {
			return true
		}
	}
	return !slices.ContainsFunc(p.MultiPoint.Enabled, func(q schedulerconfig.Plugin) bool { return q.Name == Replaces })
}

// Check makes the plugin for profiles, with the arguments that each has for PodTopologySpread.
type Check struct {
	planned  func(fwk.CycleState) bool
	profiles []schedulerconfig.KubeSchedulerProfile
	pods     *metrics.CounterVec
}

// New returns the check for some profiles. Planned reports whether the pod that a state is of has a node in a plan that keeps to its
// constraints.
func New(planned func(fwk.CycleState) bool, profiles []schedulerconfig.KubeSchedulerProfile) *Check {
	return &Check{planned: planned, profiles: profiles, pods: metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "gangctl_scheduler", Name: "spread_pods_total", StabilityLevel: metrics.ALPHA,
		Help: "Attempts at pods with required topology spread constraints by who counted what their constraints select: the plan of their gang, or this plugin on all nodes.",
	}, []string{"counted_by"})}
}

// The values of the label.
const (
	byPlan   = "plan"
	byPlugin = "plugin"
)

// Register makes the metric known to a registry.
func (c *Check) Register(register func(...metrics.Registerable)) { register(c.pods) }

// NewPlugin is the factory of the plugin.
func (c *Check) NewPlugin(ctx context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	if _, err := args.Decode(object, noArgs{}); err != nil {
		return nil, fmt.Errorf("%w: its arguments are those of %s", err, Replaces)
	}
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	theirs, err := podtopologyspread.New(ctx, c.args(handle.ProfileName()), handle, features)
	if err != nil {
		return nil, fmt.Errorf("create plugin %s: %w", Replaces, err)
	}
	check, ok := theirs.(checks)
	if !ok {
		return nil, fmt.Errorf("plugin %s does not check pods", Replaces)
	}
	return &Plugin{checks: check, of: c, labelKeys: features.EnableMatchLabelKeysInPodTopologySpread}, nil
}

// noArgs are the arguments of the plugin itself.
type noArgs struct{}

// Validate implements args.Args.
func (noArgs) Validate() error { return nil }

// args returns the arguments of PodTopologySpread in a profile, by default those of Kubernetes.
func (c *Check) args(profile string) runtime.Object {
	for _, p := range c.profiles {
		for _, config := range p.PluginConfig {
			if p.SchedulerName == profile && config.Name == Replaces {
				return config.Args
			}
		}
	}
	return &schedulerconfig.PodTopologySpreadArgs{DefaultingType: schedulerconfig.SystemDefaulting}
}

// checks are the interfaces of PodTopologySpread that refuse pods.
type checks interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
	fwk.EnqueueExtensions
	fwk.SignPlugin
}

// Plugin is GangTopologySpread in one profile.
type Plugin struct {
	checks
	of        *Check
	labelKeys bool // the engine knows matchLabelKeys, as plans do
}

// Name implements fwk.Plugin.
func (pl *Plugin) Name() string { return Name }

// PreFilter implements fwk.PreFilterPlugin. A plan knows the constraints of the pod, and not those that a configuration has for pods without
// any.
func (pl *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if !slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, required) {
		return pl.checks.PreFilter(ctx, state, pod, nodes)
	}
	if pl.labelKeys && pl.of.planned(state) {
		pl.of.pods.WithLabelValues(byPlan).Inc()
		return nil, fwk.NewStatus(fwk.Skip)
	}
	pl.of.pods.WithLabelValues(byPlugin).Inc()
	return pl.checks.PreFilter(ctx, state, pod, nodes)
}

func required(c corev1.TopologySpreadConstraint) bool {
	return c.WhenUnsatisfiable == corev1.DoNotSchedule
}

// Package crossnode leaves out the engine's checks of rules about pods on other nodes where the plan has made them.
//
// PodTopologySpread counts the pods of every node for each pod with a constraint, and InterPodAffinity goes through all pods with anti-affinity for each
// pod, and through all pods for one with affinity. The plan of a gang has looked once, for all members together, and keeps to the rules in the order in which the engine
// tries the members. The plugins GangTopologySpread and GangInterPodAffinity are those of the engine at PreFilter and Filter, and skip both for a member on
// its planned node. All other pods are checked as by the engine's plugins, which go on scoring.
package crossnode

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
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"

	"github.com/gangctl/gangctl/scheduler/plugins/args"
)

// Rule is a plugin of the engine that refuses pods by what is on other nodes.
type Rule struct {
	// Name is the name of our plugin in a configuration file; Replaces is the engine's, which is switched off at Points.
	Name, Replaces string
	create         func(context.Context, runtime.Object, fwk.Handle, feature.Features) (fwk.Plugin, error)
	args           func() runtime.Object // those of Kubernetes
	// plans reports whether a plan knows all that the plugin checks of a pod.
	plans func(*corev1.Pod, feature.Features) bool
}

// The rules that are checked by plans.
var (
	Spread = Rule{
		Name: "GangTopologySpread", Replaces: names.PodTopologySpread, create: podtopologyspread.New,
		args: func() runtime.Object {
			return &schedulerconfig.PodTopologySpreadArgs{DefaultingType: schedulerconfig.SystemDefaulting}
		},
		// A plan does not know the constraints that a configuration has for pods without any.
		plans: func(pod *corev1.Pod, features feature.Features) bool {
			return features.EnableMatchLabelKeysInPodTopologySpread && slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
				return c.WhenUnsatisfiable == corev1.DoNotSchedule
			})
		},
	}
	Affinity = Rule{
		Name: "GangInterPodAffinity", Replaces: names.InterPodAffinity, create: interpodaffinity.New,
		args: func() runtime.Object {
			return &schedulerconfig.InterPodAffinityArgs{HardPodAffinityWeight: 1}
		},
		plans: func(*corev1.Pod, feature.Features) bool { return true },
	}
)

// Replaced is the engine's plugin that one of ours is at Points; other plugins are themselves.
func Replaced(name string) string {
	for _, r := range []Rule{Spread, Affinity} {
		if name == r.Name {
			return r.Replaces
		}
	}
	return name
}

// Points are the extension points of the plugins in a configuration.
func Points(p *schedulerconfig.Plugins) []*schedulerconfig.PluginSet {
	return []*schedulerconfig.PluginSet{&p.PreFilter, &p.Filter}
}

// Configured reports whether a configuration has the engine's plugin off, or states where it is on: ours then stays off.
func (r Rule) Configured(p *schedulerconfig.Plugins) bool {
	for _, set := range Points(p) {
		if slices.ContainsFunc(slices.Concat(set.Enabled, set.Disabled), func(q schedulerconfig.Plugin) bool {
			return q.Name == r.Replaces || q.Name == r.Name || q.Name == "*"
		}) {
			return true
		}
	}
	return !slices.ContainsFunc(p.MultiPoint.Enabled, func(q schedulerconfig.Plugin) bool { return q.Name == r.Replaces })
}

// Checks makes the plugins for profiles, with the arguments that each has for the engine's.
type Checks struct {
	planned  func(fwk.CycleState) bool
	profiles []schedulerconfig.KubeSchedulerProfile
	pods     *metrics.CounterVec
}

// New returns the checks for some profiles. Planned reports whether the pod that a state is of has a node in a plan that keeps to its
// rules.
func New(planned func(fwk.CycleState) bool, profiles []schedulerconfig.KubeSchedulerProfile) *Checks {
	return &Checks{planned: planned, profiles: profiles, pods: metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "gangctl_scheduler", Name: "cross_node_checks_total", StabilityLevel: metrics.ALPHA,
		Help: "Attempts at pods that a plugin checks by what is on other nodes, by who looked at these: the plan of their gang, or the plugin for the pod alone.",
	}, []string{"plugin", "checked_by"})}
}

// The values of the second label.
const (
	byPlan   = "plan"
	byPlugin = "plugin"
)

// Register makes the metric known to a registry.
func (c *Checks) Register(register func(...metrics.Registerable)) { register(c.pods) }

// Check makes the plugin of a rule.
type Check struct {
	of   *Checks
	rule Rule
}

// Check returns that of a rule.
func (c *Checks) Check(rule Rule) Check { return Check{c, rule} }

// NewPlugin is the factory of the plugin.
func (c Check) NewPlugin(ctx context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	if _, err := args.Decode(object, noArgs{}); err != nil {
		return nil, fmt.Errorf("%w: its arguments are those of %s", err, c.rule.Replaces)
	}
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	theirs, err := c.rule.create(ctx, c.of.args(c.rule, handle.ProfileName()), handle, features)
	if err != nil {
		return nil, fmt.Errorf("create plugin %s: %w", c.rule.Replaces, err)
	}
	checks, ok := theirs.(checks)
	if !ok {
		return nil, fmt.Errorf("plugin %s does not check pods", c.rule.Replaces)
	}
	return &Plugin{checks: checks, rule: c.rule, of: c.of, features: features}, nil
}

// noArgs are the arguments of the plugin itself.
type noArgs struct{}

// Validate implements args.Args.
func (noArgs) Validate() error { return nil }

// args returns the arguments of the engine's plugin in a profile, by default those of Kubernetes.
func (c *Checks) args(rule Rule, profile string) runtime.Object {
	for _, p := range c.profiles {
		for _, config := range p.PluginConfig {
			if p.SchedulerName == profile && config.Name == rule.Replaces {
				return config.Args
			}
		}
	}
	return rule.args()
}

// checks are the interfaces of the engine's plugins that refuse pods.
type checks interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
	fwk.EnqueueExtensions
	fwk.SignPlugin
}

// Plugin is that of a rule in one profile.
type Plugin struct {
	checks
	rule     Rule
	of       *Checks
	features feature.Features
}

// Name implements fwk.Plugin.
func (pl *Plugin) Name() string { return pl.rule.Name }

// PreFilter implements fwk.PreFilterPlugin.
func (pl *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if !pl.rule.plans(pod, pl.features) {
		return pl.checks.PreFilter(ctx, state, pod, nodes)
	}
	if pl.of.planned(state) {
		pl.of.pods.WithLabelValues(pl.rule.Name, byPlan).Inc()
		return nil, fwk.NewStatus(fwk.Skip)
	}
	pl.of.pods.WithLabelValues(pl.rule.Name, byPlugin).Inc()
	return pl.checks.PreFilter(ctx, state, pod, nodes)
}

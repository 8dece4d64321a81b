package crossnode

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

// counted counts how often all nodes are looked at.
type counted struct {
	checks
	n int
}

func (c *counted) PreFilter(context.Context, fwk.CycleState, *corev1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	c.n++
	return nil, nil
}

func TestPreFilter(t *testing.T) {
	constrained := &corev1.Pod{Spec: corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule}}}}
	preferring := constrained.DeepCopy()
	preferring.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.ScheduleAnyway
	for name, tt := range map[string]struct {
		rule      Rule
		pod       *corev1.Pod
		planned   bool
		labelKeys bool
		looks     int
	}{
		"planned":                      {Spread, constrained, true, true, 0},
		"not planned":                  {Spread, constrained, false, true, 1},
		"without matchLabelKeys":       {Spread, constrained, true, false, 1},
		"preferred":                    {Spread, preferring, true, true, 1},
		"by the configuration's alone": {Spread, &corev1.Pod{}, true, true, 1},
		"affinity of others, planned":  {Affinity, &corev1.Pod{}, true, false, 0},
		"affinity, not planned":        {Affinity, &corev1.Pod{}, false, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			theirs := &counted{}
			pl := &Plugin{
				checks: theirs, rule: tt.rule, of: New(func(fwk.CycleState) bool { return tt.planned }, nil),
				features: feature.Features{EnableMatchLabelKeysInPodTopologySpread: tt.labelKeys},
			}
			_, status := pl.PreFilter(t.Context(), framework.NewCycleState(), tt.pod, nil)
			if theirs.n != tt.looks || status.IsSkip() == (tt.looks > 0) {
				t.Errorf("looked at all nodes %d times, status %v", theirs.n, status)
			}
		})
	}
}

// The plugin is on where a configuration leaves PodTopologySpread as it comes.
func TestConfigured(t *testing.T) {
	set := func(name string) []schedulerconfig.Plugin { return []schedulerconfig.Plugin{{Name: name}} }
	on := schedulerconfig.PluginSet{Enabled: set(Spread.Replaces)}
	for name, tt := range map[string]struct {
		plugins schedulerconfig.Plugins
		want    bool
	}{
		"as it comes":         {schedulerconfig.Plugins{MultiPoint: on}, false},
		"off":                 {schedulerconfig.Plugins{}, true},
		"off at Filter":       {schedulerconfig.Plugins{MultiPoint: on, Filter: schedulerconfig.PluginSet{Disabled: set(Spread.Replaces)}}, true},
		"all off at Filter":   {schedulerconfig.Plugins{MultiPoint: on, Filter: schedulerconfig.PluginSet{Disabled: set("*")}}, true},
		"named at PreFilter":  {schedulerconfig.Plugins{MultiPoint: on, PreFilter: schedulerconfig.PluginSet{Enabled: set(Spread.Replaces)}}, true},
		"another off":         {schedulerconfig.Plugins{MultiPoint: on, Filter: schedulerconfig.PluginSet{Disabled: set("NodePorts")}}, false},
		"off, scores only on": {schedulerconfig.Plugins{Score: schedulerconfig.PluginSet{Enabled: set(Spread.Replaces)}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Spread.Configured(&tt.plugins); got != tt.want {
				t.Errorf("configured: %t", got)
			}
		})
	}
}

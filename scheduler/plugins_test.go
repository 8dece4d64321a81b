package scheduler

import (
	"testing"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

func TestEnableObeysTheConfiguration(t *testing.T) {
	plugin := func(name string) []schedulerconfig.Plugin { return []schedulerconfig.Plugin{{Name: name}} }
	profiles := []schedulerconfig.KubeSchedulerProfile{
		{},
		{Plugins: &schedulerconfig.Plugins{MultiPoint: schedulerconfig.PluginSet{Enabled: plugin("Fit")}}},
		{Plugins: &schedulerconfig.Plugins{MultiPoint: schedulerconfig.PluginSet{Disabled: plugin("Ours")}}},
		{Plugins: &schedulerconfig.Plugins{MultiPoint: schedulerconfig.PluginSet{Enabled: plugin("Ours")}}},
	}
	for i := range 4 { // one of each again, with a plugin that ours replaces
		profile := *profiles[i].DeepCopy()
		if profile.Plugins == nil {
			profile.Plugins = &schedulerconfig.Plugins{}
		}
		profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, plugin("Theirs")...)
		profiles = append(profiles, profile)
	}
	enable(profiles, []extension{{name: "Ours", replaces: "Theirs"}})
	for i, want := range []int{1, 2, 0, 1, 1, 2, 1, 1} {
		if got := profiles[i].Plugins.MultiPoint.Enabled; len(got) != want || (i < 2 && got[want-1].Name != "Ours") {
			t.Errorf("profile %d: %+v", i, got)
		}
	}
}

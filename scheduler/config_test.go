package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

func TestAddProfiles(t *testing.T) {
	plugins := &schedulerconfig.Plugins{MultiPoint: schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: "Fit"}}}}
	profiles := []schedulerconfig.KubeSchedulerProfile{{SchedulerName: DefaultName, Plugins: plugins}, {SchedulerName: "mine"}}
	got, err := addProfiles(profiles, []string{"volcano", "kube-batch"})
	if err != nil {
		t.Fatal(err)
	}
	enable(got, []extension{{name: "Ours"}})
	if names := fmt.Sprint(profileNames(got)); names != "[gang-scheduler mine volcano kube-batch]" {
		t.Errorf("profiles %s", names)
	}
	for _, profile := range got {
		enabled := fmt.Sprint(profile.Plugins.MultiPoint.Enabled)
		if !strings.Contains(enabled, "Ours") || strings.Contains(enabled, "Fit") != (profile.SchedulerName != "mine") {
			t.Errorf("%s has the plugins %s", profile.SchedulerName, enabled)
		}
	}
	if len(profiles) != 2 {
		t.Error("the configuration was changed")
	}
	for _, tt := range []struct{ names, want string }{
		{"default-scheduler", "two schedulers of one name bind the same pods"},
		{"volcano,volcano", "given twice"},
		{DefaultName, "the configuration has a profile of that name"},
		{"mine", "the configuration has a profile of that name"},
		{"Volcano", `--serve "Volcano"`},
		{"a b", `--serve "a b"`},
	} {
		if _, err := addProfiles(profiles, strings.Split(tt.names, ",")); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("--serve %s: %v, want %q", tt.names, err, tt.want)
		}
	}
}

func TestServeFlagIsChecked(t *testing.T) {
	cmd, _ := under(t)
	_, err := parse(cmd, []string{"--serve", "default-scheduler"})
	if got := failure.From(err); got == nil || got.Code != failure.CodeUsage {
		t.Errorf("--serve default-scheduler: %+v, want a usage error", got)
	}
}

// The engine looks for devices for a short time, or for as long as the configuration says.
func TestSearchForDevicesIsLimited(t *testing.T) {
	for want, given := range map[time.Duration]time.Duration{filterTimeout: schedulerv1.DynamicResourcesFilterTimeoutDefault, 3 * time.Second: 3 * time.Second, 0: 0} {
		a := &schedulerconfig.DynamicResourcesArgs{FilterTimeout: &metav1.Duration{Duration: given}}
		limitDeviceSearch([]schedulerconfig.KubeSchedulerProfile{{PluginConfig: []schedulerconfig.PluginConfig{{Name: "DynamicResources", Args: a}}}})
		if a.FilterTimeout.Duration != want {
			t.Errorf("%s became %s, want %s", given, a.FilterTimeout.Duration, want)
		}
	}
	cfg, err := defaultConfig()
	if err != nil {
		t.Fatal(err)
	}
	limitDeviceSearch(cfg.Profiles)
	for _, c := range cfg.Profiles[0].PluginConfig {
		if a, ok := c.Args.(*schedulerconfig.DynamicResourcesArgs); ok && a.FilterTimeout.Duration == filterTimeout {
			return
		}
	}
	t.Error("the default configuration does not limit the search for devices")
}

package scheduler

import (
	"fmt"
	"strings"
	"testing"

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

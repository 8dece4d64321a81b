package scheduler

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/scheduler/plugins/aging"
	"github.com/gangctl/gangctl/scheduler/plugins/belowmin"
	"github.com/gangctl/gangctl/scheduler/plugins/binding"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/plugins/crossnode"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
	"github.com/gangctl/gangctl/scheduler/plugins/preemption"
	"github.com/gangctl/gangctl/scheduler/plugins/queuesort"
	"github.com/gangctl/gangctl/scheduler/plugins/replacement"
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

// A plugin that ours replaces at Permit stays where the configuration has it there, or has ours not.
func TestReplacedAtPermit(t *testing.T) {
	for name, tt := range map[string]struct {
		set  schedulerconfig.PluginSet
		want bool // it is switched off
	}{
		"as it comes":    {schedulerconfig.PluginSet{}, true},
		"theirs enabled": {schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: "Theirs"}}}, false},
		"ours disabled":  {schedulerconfig.PluginSet{Disabled: []schedulerconfig.Plugin{{Name: "Ours"}}}, false},
		"all disabled":   {schedulerconfig.PluginSet{Disabled: []schedulerconfig.Plugin{{Name: "*"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			profiles := []schedulerconfig.KubeSchedulerProfile{{Plugins: &schedulerconfig.Plugins{Permit: tt.set}}}
			enable(profiles, []extension{{name: "Ours", replacesAt: "Theirs", points: permit}, {name: "Other"}})
			off := slices.ContainsFunc(profiles[0].Plugins.Permit.Disabled, func(q schedulerconfig.Plugin) bool { return q.Name == "Theirs" })
			if off != tt.want {
				t.Errorf("switched off: %t", off)
			}
		})
	}
}

// A plugin that comes right after one of the engine's comes last where it says so.
func TestEnableInPlace(t *testing.T) {
	profiles := []schedulerconfig.KubeSchedulerProfile{{Plugins: &schedulerconfig.Plugins{MultiPoint: schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: "Theirs"}, {Name: "Fit"}}}}}}
	enable(profiles, []extension{{name: "Other"}, {name: "Ours", after: "Theirs", last: preFilter, replacesAt: "Theirs", points: crossnode.Points}, {name: "Lost", after: "Nobody"}})
	p := profiles[0].Plugins
	if got := fmt.Sprint(p.MultiPoint.Enabled); got != "[{Theirs 0} {Ours 0} {Fit 0} {Other 0} {Lost 0}]" {
		t.Errorf("enabled: %s", got)
	}
	if got := fmt.Sprint(p.PreFilter.Enabled, p.PreFilter.Disabled, p.Filter.Enabled, p.Filter.Disabled); got != "[{Ours 0}] [{Theirs 0} {Ours 0}] [] [{Theirs 0}]" {
		t.Errorf("at PreFilter and Filter: %s", got)
	}
}

// Where one of ours comes first it does, unless the configuration has it there, or not.
func TestEnableFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		set  schedulerconfig.PluginSet
		want string
	}{
		"as it comes":  {schedulerconfig.PluginSet{}, "[{Ours 0}]"},
		"with another": {schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: "Theirs"}}}, "[{Ours 0} {Theirs 0}]"},
		"named":        {schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: "Theirs"}, {Name: "Ours"}}}, "[{Theirs 0} {Ours 0}]"},
		"disabled":     {schedulerconfig.PluginSet{Disabled: []schedulerconfig.Plugin{{Name: "Ours"}}}, "[]"},
		"all disabled": {schedulerconfig.PluginSet{Disabled: []schedulerconfig.Plugin{{Name: "*"}}}, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			profiles := []schedulerconfig.KubeSchedulerProfile{{Plugins: &schedulerconfig.Plugins{PreFilter: tt.set}}}
			enable(profiles, []extension{{name: "Ours", first: preFilter}})
			if got := fmt.Sprint(profiles[0].Plugins.PreFilter.Enabled); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Whether a pod is a member of a gang, and has no signature, is known before anybody makes one.
func TestSignatures(t *testing.T) {
	f := newRig(t).startWhole().handle.Framework().(framework.Framework)
	if first := f.ListPlugins().PreFilter.Enabled[0].Name; first != belowmin.Name {
		t.Errorf("the first to sign is %s", first)
	}
}

// profilesOf are the profiles of a configuration file, as kube-scheduler reads it.
func profilesOf(t *testing.T, text string) []schedulerconfig.KubeSchedulerProfile {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := options.LoadConfigFromFile(klog.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Profiles
}

func TestUnknownPluginsAreRefused(t *testing.T) {
	const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: mine\n"
	for name, tt := range map[string]struct{ profile, want string }{
		"no plugins":              {"", ""},
		"arguments of ours":       {"  pluginConfig: [{name: GangReplacement, args: {holdTTL: 1m}}]", ""},
		"arguments of theirs":     {"  pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [example.com/a]}}]", ""},
		"disabled, ours":          {"  plugins: {multiPoint: {disabled: [{name: GangPreemption}]}}", ""},
		"disabled, all":           {"  plugins: {score: {disabled: [{name: '*'}]}}", ""},
		"arguments, former name":  {"  pluginConfig: [{name: GangSlots, args: {holdTTL: 1m}}]", `profile mine: plugin "GangSlots" not found (gangctl has GangAging, GangBelowMinimum, `},
		"arguments, misspelled":   {"  pluginConfig: [{name: GangAgeing}]", `"GangAgeing" not found`},
		"disabled, former name":   {"  plugins: {multiPoint: {disabled: [{name: GangPolicy}]}}", `"GangPolicy" not found`},
		"disabled, at one point":  {"  plugins: {podGroupPostFilter: {disabled: [{name: GangBarrier}]}}", `"GangBarrier" not found`},
		"enabled at one point":    {"  plugins: {score: {enabled: [{name: GangScore}]}}", `"GangScore" not found`},
		"neither ours nor theirs": {"  plugins: {multiPoint: {disabled: [{name: GangNodeAffinity}]}}", `"GangNodeAffinity" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkNames(profilesOf(t, header+tt.profile+"\n"), extensions(parts{}), nil)
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestInstalledConfigurationNamesPlugins(t *testing.T) {
	profiles := installedProfiles(t)
	if err := checkNames(profiles, extensions(parts{}), nil); err != nil {
		t.Error(err)
	}
}

// installedProfiles are the profiles of the configuration that is installed.
func installedProfiles(t *testing.T) []schedulerconfig.KubeSchedulerProfile {
	t.Helper()
	text, err := os.ReadFile("../install/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var installed struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal(text, &installed); err != nil {
		t.Fatal(err)
	}
	profiles := profilesOf(t, installed.Data["scheduler.yaml"])
	if len(profiles) != 1 || profiles[0].SchedulerName != DefaultName {
		t.Fatalf("the configuration has the profiles %+v", profiles)
	}
	return profiles
}

// defaults are the arguments of our plugins where a configuration sets none, as JSON has them.
func defaults(t *testing.T) map[string]map[string]any {
	t.Helper()
	values := map[string]map[string]any{}
	for name, a := range map[string]any{
		replacement.Name: replacement.DefaultArgs(), queuesort.Name: queuesort.DefaultArgs(), aging.Name: aging.DefaultArgs(),
		preemption.Name: preemption.DefaultArgs(), claims.Name: claims.DefaultArgs(), belowmin.Name: belowmin.DefaultArgs(),
		planner.Name: planner.DefaultArgs(), binding.Name: binding.DefaultArgs(),
	} {
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		fields := map[string]any{}
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		values[name] = fields
	}
	return values
}

// equalArgument reports whether two values are the same argument: 60s is 1m0s.
func equalArgument(a, b any) bool {
	text, other := fmt.Sprint(a), fmt.Sprint(b)
	d, err := time.ParseDuration(text)
	e, otherErr := time.ParseDuration(other)
	return text == other || err == nil && otherErr == nil && d == e
}

// A default is in DefaultArgs of its plugin and nowhere else: the installed configuration repeats none, which would win where it is
// installed.
func TestInstalledConfigurationRepeatsNoDefault(t *testing.T) {
	values := defaults(t)
	for _, config := range installedProfiles(t)[0].PluginConfig {
		ours, ok := values[config.Name]
		if !ok {
			continue
		}
		fields := map[string]any{}
		if err := yaml.Unmarshal(config.Args.(*runtime.Unknown).Raw, &fields); err != nil {
			t.Fatal(err)
		}
		for field, value := range fields {
			if equalArgument(value, ours[field]) {
				t.Errorf("install/config.yaml sets %s: %s to its default, %v", config.Name, field, value)
			}
		}
	}
}

// The page on the scheduler has a row for every argument of our plugins, with its default.
func TestArgumentsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/scheduler.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)`: `(\\w+)` \\| `([^`]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		documented[row[1]+": "+row[2]] = row[3]
	}
	for name, fields := range defaults(t) {
		for field, value := range fields {
			if in, ok := documented[name+": "+field]; !ok || !equalArgument(in, value) {
				t.Errorf("docs/scheduler.md has %q for %s: %s, want %v", in, name, field, value)
			}
		}
	}
}

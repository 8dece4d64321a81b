package claims

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
)

// profile has the arguments of the plugin; none if they are empty.
func profile(name, args string) schedulerconfig.KubeSchedulerProfile {
	p := schedulerconfig.KubeSchedulerProfile{SchedulerName: name, PluginConfig: []schedulerconfig.PluginConfig{
		{Name: "GangReplacement", Args: &runtime.Unknown{Raw: []byte(`{"holdTTL":"1m"}`), ContentType: runtime.ContentTypeJSON}},
	}}
	if args != "" {
		p.PluginConfig = append(p.PluginConfig, schedulerconfig.PluginConfig{Name: Name, Args: &runtime.Unknown{Raw: []byte(args), ContentType: runtime.ContentTypeJSON}})
	}
	return p
}

func TestNames(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want audience.Policy
		err  string
	}{
		"no profile":        {nil, audience.Hidden, ""},
		"no arguments":      {[]string{""}, audience.Hidden, ""},
		"empty":             {[]string{`{}`}, audience.Hidden, ""},
		"no":                {[]string{`{"foreignNames":false}`}, audience.Hidden, ""},
		"yes":               {[]string{`{"foreignNames":true}`}, audience.Named, ""},
		"all":               {[]string{`{"foreignNames":true}`, `{"foreignNames":true}`}, audience.Named, ""},
		"one is silent":     {[]string{`{"foreignNames":true}`, ""}, audience.Hidden, ""},
		"another field":     {[]string{`{"foreignName":true}`}, audience.Hidden, `profile p: plugin GangClaims: args: error unmarshaling JSON: while decoding JSON: json: unknown field "foreignName"`},
		"not a truth value": {[]string{`{"foreignNames":"yes"}`}, audience.Hidden, "profile p: plugin GangClaims: args"},
	} {
		var profiles []schedulerconfig.KubeSchedulerProfile
		for _, args := range tt.args {
			profiles = append(profiles, profile("p", args))
		}
		got, err := Names(profiles)
		if got != tt.want || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

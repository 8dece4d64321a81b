package install

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

const someDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// parse runs `install scheduler` up to its options.
func parse(t *testing.T, args ...string) (*SchedulerOptions, error) {
	t.Helper()
	io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	var got *SchedulerOptions
	cmd := NewSchedulerCommand(&cmdutil.Factory{IO: io, Version: version.Info{Version: "v1.2.3"}}, func(_ context.Context, o *SchedulerOptions) error {
		got = o
		return nil
	})
	return got, commandtest.Execute(t.Context(), cmd, args...)
}

func TestSettings(t *testing.T) {
	plain := Settings{Registry: defaultRegistry, Replicas: 1, TakeBack: true, MetricsFrom: []string{"monitoring"}}
	with := func(change func(*Settings)) Settings {
		s := plain
		change(&s)
		return s
	}
	tests := []struct {
		args []string
		want Settings
	}{
		{nil, plain},
		{[]string{"--ha"}, with(func(s *Settings) { s.Replicas = 2 })},
		{[]string{"--replicas", "3", "--take-back=false"}, with(func(s *Settings) { s.Replicas, s.TakeBack = 3, false })},
		{[]string{"--registry", "r.example.com/ml/"}, with(func(s *Settings) { s.Registry = "r.example.com/ml/" })},
		{[]string{"--image", "r.example.com:5000/ml/x@" + someDigest}, with(func(s *Settings) { s.Image = "r.example.com:5000/ml/x@" + someDigest })},
		{[]string{"--image", "x:v1@" + someDigest}, with(func(s *Settings) { s.Image = "x:v1@" + someDigest })},
		{[]string{"--metrics-from", "prometheus,grafana"}, with(func(s *Settings) { s.MetricsFrom = []string{"prometheus", "grafana"} })},
		{[]string{"--metrics-from", ""}, with(func(s *Settings) { s.MetricsFrom = []string{} })},
		{[]string{"--serve", "volcano,kube-batch", "--serve", "a"}, with(func(s *Settings) { s.Serve = []string{"volcano", "kube-batch", "a"} })},
		{[]string{"--image-pull-secret", "a", "--cpu", "2", "--memory", "1Gi"},
			with(func(s *Settings) { s.PullSecrets, s.CPU, s.Memory = []string{"a"}, "2", "1Gi" })},
	}
	for _, tt := range tests {
		o, err := parse(t, tt.args...)
		if err != nil {
			t.Errorf("%q: %v", tt.args, err)
			continue
		}
		if diff := cmp.Diff(tt.want, o.Settings); diff != "" {
			t.Errorf("%q: %s", tt.args, diff)
		}
	}
	if o, err := parse(t, "--toleration", "infra=yes:NoSchedule"); err != nil || len(o.Settings.Tolerations) != 1 {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err := parse(t, "-n", "ml"); err != nil || o.Namespace != "ml" {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestSettingsRefused(t *testing.T) {
	for args, want := range map[string]string{
		"x":                                "scheduler takes no arguments, got \"x\"",
		"--ha --replicas 3":                "--ha and --replicas cannot be used together",
		"--registry r --image i":           "--registry and --image cannot be used together",
		"--registry https://r":             `--registry "https://r": must be a name such as registry.example.com/team, without`,
		"--image https://r/x":              `--image "https://r/x": must be a name such as registry.example.com/team/gangctl:v1.2.3, without`,
		"--image x@sha256:0":               `--image "x@sha256:0": invalid reference format`,
		"--image x@" + someDigest[:70]:     `--image "x@` + someDigest[:70] + `": invalid checksum digest length`,
		"--image x@md5:" + someDigest[7:]:  `unsupported digest algorithm`,
		"--image x/Team":                   `--image "x/Team": `,
		"--image x:":                       `--image "x:": invalid reference format`,
		"--image-pull-secret A":            `--image-pull-secret "A": `,
		"--metrics-from a/b":               `--metrics-from "a/b": `,
		"--serve default-scheduler":        "--serve default-scheduler: kube-scheduler answers to that name",
		"--serve gang-scheduler":           "--serve gang-scheduler: it answers to that name anyway",
		"--serve a,a":                      "--serve a: given twice",
		"--serve A":                        `--serve "A": `,
		"--toleration a:Never":             `--toleration "a:Never": effect "Never": must be`,
		"--replicas 0":                     `must be a whole number from 1 to 9`,
		"--cpu 0":                          "must be a quantity greater than zero",
		"--diff --dry-run server":          "--diff and --dry-run cannot be used together",
		"--dry-run client":                 "must be one of none, server",
		"--wait=false --timeout 1m":        "--timeout has no effect with --wait=false",
		"--timeout 0s":                     "--timeout 0s: must be greater than zero",
		"--export --diff":                  "--diff has no effect with --export",
		"--export --dry-run server":        "--dry-run has no effect with --export",
		"--export --force-conflicts=false": "--force-conflicts has no effect with --export",
	} {
		_, err := parse(t, strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", args, err, want)
		}
	}
}

// An image is that of the version; of a build that is no release there is none.
func TestImage(t *testing.T) {
	settings := Settings{Registry: "r.example.com/ml/"}
	if got, err := settings.image("v1.2.3"); err != nil || got != "r.example.com/ml/gangctl:v1.2.3" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := (Settings{Registry: "r", Image: "i:1"}).image("dev"); err != nil || got != "i:1" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, version := range []string{"dev", "a15627c-dirty", "v1.2.3-4-gabcdef0", "v0.0.0-20260102030405-abcdefabcdef", "v1.2.3-dirty"} {
		_, err := settings.image(version)
		if f := failure.From(err); f == nil || !strings.Contains(f.Message, version) || !strings.Contains(f.Hint, "--image") {
			t.Errorf("%s: got %+v", version, f)
		}
	}
}

func TestOlderThan(t *testing.T) {
	tests := []struct {
		a, b         string
		older, known bool
	}{
		{"v1.2.3", "v1.10.0", true, true}, {"v1.10.0", "v1.2.3", false, true}, {"v1.2.3", "v1.2.3", false, true},
		{"v1.2.3-rc.1", "v1.2.3", true, true}, {"dev", "v1.2.3", false, false}, {"v1.2.3", "a15627c", false, false},
	}
	for _, tt := range tests {
		if older, known := olderThan(tt.a, tt.b); older != tt.older || known != tt.known {
			t.Errorf("%s, %s: got %v, %v", tt.a, tt.b, older, known)
		}
	}
}

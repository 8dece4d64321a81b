package install

import (
	"context"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

func parseOperator(t *testing.T, line string) (*OperatorOptions, error) {
	t.Helper()
	io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	var got *OperatorOptions
	cmd := NewOperatorCommand(&cmdutil.Factory{IO: io}, func(_ context.Context, o *OperatorOptions) error {
		got = o
		return nil
	})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(strings.Fields(line))
	return got, cmd.ExecuteContext(t.Context())
}

func TestOperatorSettings(t *testing.T) {
	for line, want := range map[string]string{
		"":                                       "kubeflow tfjobs",
		"-n ml":                                  "ml tfjobs",
		"--kinds all":                            "kubeflow tfjobs,pytorchjobs,mpijobs,xgboostjobs,paddlejobs,jaxjobs",
		"--kinds pytorchjobs,tfjobs":             "kubeflow tfjobs,pytorchjobs",
		"--kinds jaxjobs --gang-scheduler g":     "kubeflow jaxjobs g",
		"--image x --image-pull-secret a --diff": "kubeflow tfjobs x a",
	} {
		o, err := parseOperator(t, line)
		if err != nil {
			t.Errorf("%q: %v", line, err)
			continue
		}
		s := o.Settings
		got := strings.Join(strings.Fields(strings.Join([]string{s.Namespace, strings.Join(s.Kinds, ","), s.GangScheduler, s.Image, strings.Join(s.PullSecrets, ",")}, " ")), " ")
		if got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

func TestOperatorRefused(t *testing.T) {
	for line, want := range map[string]string{
		"x":                         "operator takes no arguments",
		"--kinds sparkjobs":         `--kinds "sparkjobs": must be all, or some of tfjobs, `,
		"--diff --dry-run server":   "--diff and --dry-run cannot be used together",
		"--release newest":          `--release: release "newest": want MAJOR.MINOR`,
		"--export --yes":            "--yes has no effect with --export",
		"--export --diff":           "--diff has no effect with --export",
		"--wait=false --timeout 5s": "--timeout has no effect with --wait=false",
		"--timeout 0s":              "--timeout 0s: must be greater than zero",
	} {
		_, err := parseOperator(t, line)
		e := failure.From(err)
		if e == nil || e.Code != failure.CodeUsage || !strings.HasPrefix(e.Message, want) {
			t.Errorf("%q: got %v, want %q", line, err, want)
		}
	}
}

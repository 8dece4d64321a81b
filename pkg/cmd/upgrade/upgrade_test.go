package upgrade

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/install"
)

// types runs a command of a gangctl of a version against a store.
func types(t *testing.T, s *kubetest.Store, gangctl string, command func(*cmdutil.Factory) *cobra.Command, args ...string) (stdout, stderr string, failed *failure.Error) {
	t.Helper()
	f, streams := commandtest.Factory("", time.Time{}, 0, s.Client)
	f.Version = version.Info{Version: gangctl}
	return commandtest.Run(t.Context(), command(f), streams, append([]string{"--wait=false"}, args...)...)
}

func upgrade(f *cmdutil.Factory) *cobra.Command   { return NewCommand(f, nil) }
func scheduler(f *cmdutil.Factory) *cobra.Command { return install.NewSchedulerCommand(f, nil) }

// installed is a store on which a version is installed.
func installed(t *testing.T, gangctl string, args ...string) *kubetest.Store {
	t.Helper()
	s := kubetest.NewStore(t)
	if _, _, failed := types(t, s, gangctl, scheduler, append([]string{"--skip-checks"}, args...)...); failed != nil {
		t.Fatal(failed)
	}
	return s
}

// An upgrade keeps the settings of the installation, in the namespace where it is.
func TestKeepsSettings(t *testing.T) {
	s := installed(t, "v1.2.3", "--registry", "r.example.com/ml", "--serve", "volcano", "--ha", "--namespace", "ml")
	out, stderr, failed := types(t, s, "v1.3.0", upgrade, "--memory", "1Gi")
	if failed != nil || !strings.HasPrefix(stderr, "upgrading gang-scheduler in namespace ml from v1.2.3 to v1.3.0\n") ||
		!strings.Contains(out, "deployment.apps/gang-scheduler configured\n") || strings.Contains(out, "pruned") {
		t.Fatalf("%v\n%s%s", failed, out, stderr)
	}
	for _, want := range []string{"-        image: r.example.com/ml/gangctl:v1.2.3\n", "+        image: r.example.com/ml/gangctl:v1.3.0\n", "+            memory: 1Gi\n"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("what changes does not show: %q\n%s", want, stderr)
		}
	}
	for _, kept := range []string{"-  replicas", "-        - --serve", "-      namespace"} {
		if strings.Contains(stderr, kept) {
			t.Errorf("forgotten: %q\n%s", kept, stderr)
		}
	}
	if strings.Contains(stderr, "serviceaccount/") {
		t.Error("objects are shown of which only the version's label changes")
	}
}

// The scheduler is named as it is in `install scheduler`.
func TestNamesTheScheduler(t *testing.T) {
	s := installed(t, "v1.2.3")
	if out, _, failed := types(t, s, "v1.3.0", upgrade, "scheduler"); failed != nil || !strings.Contains(out, "deployment.apps/gang-scheduler configured\n") {
		t.Errorf("%v\n%s", failed, out)
	}
}

// forged is a Deployment that a tenant made to look like the scheduler's.
func forged() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{
		"name": "gang-scheduler", "namespace": "team-a", "labels": map[string]any{"app.kubernetes.io/part-of": "gangctl", "app.kubernetes.io/instance": "gang-scheduler", "app.kubernetes.io/version": "v9.9.9"},
		"annotations": map[string]any{install.SettingsAnnotation: `{"registry":"evil.example.com","replicas":1}`}}}}
}

// Whoever may write Deployments in a namespace neither has the scheduler's rights bound to it nor keeps others from installing.
func TestFindsOnlyTheSchedulerThatIsBound(t *testing.T) {
	const at = "/apis/apps/v1/namespaces/team-a/deployments/gang-scheduler"
	s := kubetest.NewStore(t)
	s.Put(at, forged())
	if _, _, failed := types(t, s, "v1.2.3", upgrade); failed == nil || failed.Message != "the scheduler is not installed on this cluster" {
		t.Errorf("an upgrade of what a tenant made: %+v", failed)
	}
	if _, stderr, failed := types(t, s, "v1.2.3", scheduler, "--skip-checks"); failed != nil || !strings.Contains(stderr, "note: Deployment team-a/gang-scheduler has the labels of the scheduler and is left alone") {
		t.Errorf("with what a tenant made: %v\n%s", failed, stderr)
	}
	out, stderr, failed := types(t, s, "v1.3.0", upgrade)
	if failed != nil || !strings.HasPrefix(stderr, "upgrading gang-scheduler in namespace gangctl-system from v1.2.3 to v1.3.0\n") || strings.Contains(out+stderr, "evil") || strings.Contains(out, "pruned") {
		t.Errorf("%v\n%s%s", failed, out, stderr)
	}
	if !slices.Contains(s.Paths(), at) {
		t.Error("what the tenant made is gone")
	}
}

func TestRefuses(t *testing.T) {
	tests := []struct {
		name          string
		installed     []string // nil for nothing
		gangctl       string
		args          []string
		message, hint string
	}{
		{"nothing installed", nil, "v1.2.3", nil, "the scheduler is not installed on this cluster", "gangctl install scheduler"},
		{"a downgrade", []string{}, "v1.2.2", nil, "the installed scheduler is v1.2.3, newer than this gangctl, which is v1.2.2", "gangctl uninstall"},
		{"an image of then", []string{"--image", "r/gangctl:v1.2.3"}, "v1.3.0", nil,
			"the scheduler was installed with --image r/gangctl:v1.2.3, and which image is that of v1.3.0 is not known", "gangctl upgrade --image"},
		{"no release", []string{}, "dev", nil, "there is no image of this gangctl", "--image"},
		{"another namespace", []string{}, "v1.3.0", []string{"-n", "ml"}, "the scheduler is installed in namespace gangctl-system already", ""},
		{"an argument", []string{}, "v1.3.0", []string{"operator"}, `upgrade "operator": only the scheduler can be named`, "--help"},
		{"two arguments", []string{}, "v1.3.0", []string{"scheduler", "x"}, `upgrade "scheduler x": only the scheduler can be named`, "--help"},
		{"a bad flag", nil, "v1.3.0", []string{"--serve", "a,a"}, "--serve a: given twice", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := kubetest.NewStore(t)
			if tt.installed != nil {
				s = installed(t, "v1.2.3", tt.installed...)
			}
			before := len(s.Requests())
			_, _, failed := types(t, s, tt.gangctl, upgrade, tt.args...)
			if failed == nil || !strings.HasPrefix(failed.Message, tt.message) || !strings.Contains(failed.Hint, tt.hint) {
				t.Errorf("got %+v", failed)
			}
			for _, request := range s.Requests()[before:] {
				if !strings.HasPrefix(request, "GET ") {
					t.Errorf("after a refusal: %s", request)
				}
			}
		})
	}
}

// A server that does not answer is one error, not one for each kind of object.
func TestUnreachable(t *testing.T) {
	for want, client := range kubetest.Away(t) {
		f, streams := commandtest.Factory("", time.Time{}, 0, client)
		f.Version = version.Info{Version: "v1.2.3"}
		if _, _, failed := commandtest.Run(t.Context(), upgrade(f), streams); failed == nil || !strings.Contains(failed.Message, want) || strings.Contains(failed.Message, "\n") {
			t.Errorf("%s: got %+v", want, failed)
		}
	}
}

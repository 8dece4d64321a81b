package install

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	manifests "github.com/gangctl/gangctl/install/operator"
	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
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
	return got, commandtest.Execute(t.Context(), cmd, strings.Fields(line)...)
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
		"--kinds tfjobs,trainjobs":  `--kinds "trainjobs": the training operator does not handle them, and gangctl has no manifests of trainer-controller-manager`,
		"--image x@sha256:0":        `--image "x@sha256:0": invalid reference format`,
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

// runOperator types `install operator` against a store, without waiting.
func runOperator(t *testing.T, s *kubetest.Store, line string) (stdout, stderr string, failed *failure.Error) {
	t.Helper()
	f, streams := commandtest.Factory("", time.Time{}, 0, s.Client)
	return commandtest.Run(t.Context(), NewOperatorCommand(f, nil), streams, append(strings.Fields(line), "--wait=false")...)
}

// An operator that is scaled to 0, as the hint has it, is no rival of one that runs.
func TestStoppedOperator(t *testing.T) {
	put := func(s *kubetest.Store, name string, replicas int64) {
		d := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "kubeflow", "name": name},
			"spec": map[string]any{"replicas": replicas, "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "training-operator", "image": "x/training-operator:v1-93c5489"}}}}}}}
		s.Put("/apis/apps/v1/namespaces/kubeflow/deployments/"+name, d)
	}
	s := kubetest.NewStore(t)
	put(s, "new", 1)
	put(s, "old", 1)
	if _, _, failed := runOperator(t, s, ""); failed == nil || failed.Message != "2 operators act on TFJobs: kubeflow/new and kubeflow/old" {
		t.Errorf("two that run: %+v", failed)
	}
	put(s, "old", 0)
	if _, stderr, failed := runOperator(t, s, ""); failed != nil || !strings.Contains(stderr, "Deployment kubeflow/new runs a training operator") {
		t.Errorf("one that runs: %+v\n%s", failed, stderr)
	}
	put(s, "new", 0)
	if _, _, failed := runOperator(t, s, ""); failed == nil || !strings.Contains(failed.Message, "all are scaled to 0") || !strings.Contains(failed.Hint, "deployment/new --replicas=1") {
		t.Errorf("none that runs: %+v", failed)
	}
}

// Typed again, kinds are only added to the operator that gangctl installed, and what was not typed stays.
func TestOperatorKeepsSettings(t *testing.T) {
	const scheme, gangs = "--enable-scheme=", "--gang-scheduler-name=scheduler-plugins-scheduler"
	for _, tt := range []struct {
		name, first, then string
		want              []string
		never             []string
	}{
		{"another kind", "", "--kinds pytorchjobs", []string{scheme + "tfjob", scheme + "pytorchjob"}, nil},
		{"TFJobs, as the hint of the check has it", "--kinds pytorchjobs", "", []string{scheme + "tfjob", scheme + "pytorchjob"}, nil},
		{"outside of the release's namespace", "-n ml --kinds mpijobs", "-n ml", []string{scheme + "tfjob", scheme + "mpijob"}, nil},
		{"all stay", "--kinds all", "", nil, []string{scheme}},
		{"the rest", "--image x.example/op:1 --image-pull-secret a --gang-scheduler scheduler-plugins-scheduler", "--kinds jaxjobs", []string{`"x.example/op:1"`, `{"name":"a"}`, gangs}, nil},
		{"the rest, typed", "--image x.example/op:1 --image-pull-secret a --gang-scheduler scheduler-plugins-scheduler", "--image x.example/op:2 --image-pull-secret b --gang-scheduler=",
			[]string{`"x.example/op:2"`, `{"name":"b"}`}, []string{`{"name":"a"}`, gangs}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := kubetest.NewStore(t)
			s.Hook(servesPodGroups)
			for _, line := range []string{tt.first, tt.then} {
				if out, stderr, failed := runOperator(t, s, line); failed != nil {
					t.Fatalf("%q: %v\n%s%s", line, failed, out, stderr)
				}
			}
			var applied string
			for n, request := range s.Requests() {
				if strings.HasPrefix(request, "PATCH ") && strings.Contains(request, "/deployments/training-operator") {
					applied = s.Body(n)
				}
			}
			for _, want := range tt.want {
				if !strings.Contains(applied, want) {
					t.Errorf("%s is lost:\n%s", want, applied)
				}
			}
			for _, never := range tt.never {
				if strings.Contains(applied, never) {
					t.Errorf("%s is there:\n%s", never, applied)
				}
			}
		})
	}
	s := kubetest.NewStore(t)
	if _, _, failed := runOperator(t, s, "-n ml --kinds pytorchjobs"); failed != nil {
		t.Fatal(failed)
	}
	if _, _, failed := runOperator(t, s, ""); failed == nil || failed.Message != "gangctl installed the operator in namespace ml" {
		t.Errorf("in another namespace: %+v", failed)
	}
}

// An operator that is no Deployment of this cluster is known by its webhook, and left alone, unless that is to be taken over.
func TestOperatorElsewhere(t *testing.T) {
	s := kubetest.NewStore(t)
	webhook := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": map[string]any{"name": "validator.training-operator.kubeflow.org", "annotations": map[string]any{"meta.helm.sh/release-name": "kf", "meta.helm.sh/release-namespace": "kubeflow"}},
		"webhooks": []any{map[string]any{"rules": []any{map[string]any{"resources": []any{"tfjobs"}}}}}}}
	s.Put("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/validator.training-operator.kubeflow.org", webhook)
	const gone = "the training operator is not installed: ValidatingWebhookConfiguration validator.training-operator.kubeflow.org, made by Helm release kubeflow/kf, is that of another one, which is no Deployment of this cluster, and the cluster does not serve tfjobs.kubeflow.org"
	if out, _, failed := runOperator(t, s, ""); failed == nil || out != "" || failed.Message != gone || !strings.Contains(failed.Hint, "kubectl delete validatingwebhookconfiguration validator.training-operator.kubeflow.org") {
		t.Errorf("a leftover: %+v, %s", failed, out)
	}
	for _, kind := range manifests.Kinds() {
		s.Put("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+kind+".kubeflow.org", other("CustomResourceDefinition", kind+".kubeflow.org", serving("v1")))
	}
	out, stderr, failed := runOperator(t, s, "")
	if failed != nil || out != "" || !strings.Contains(stderr, "made by Helm release kubeflow/kf, is that of a training operator that is there already, and no Deployment of this cluster\nit is left alone") {
		t.Errorf("%v\n%s%s", failed, out, stderr)
	}
	if _, _, failed = runOperator(t, s, "--kinds all"); failed == nil || !strings.Contains(failed.Message, "--kinds has no effect") || !strings.Contains(failed.Hint, "kubectl delete validatingwebhookconfiguration ") {
		t.Errorf("got %+v", failed)
	}
	for _, request := range s.Requests() {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("it is not left alone: %s", request)
		}
	}
	if out, _, failed = runOperator(t, s, "--force-conflicts"); failed != nil || !strings.Contains(out, "deployment.apps/training-operator created\n") {
		t.Errorf("taken over: %v\n%s", failed, out)
	}
}

// What others own is found before anything is written: half an operator is worse than none.
func TestOperatorConflicts(t *testing.T) {
	const theirs = "/apis/rbac.authorization.k8s.io/v1/clusterroles/training-operator"
	s := kubetest.NewStore(t)
	s.Put(theirs, other("ClusterRole", "training-operator", nil))
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/clusterroles/") || r.URL.Query().Get("force") == "true" {
			return false
		}
		kubetest.Write(w, 409, kubetest.Status(409, metav1.StatusReasonConflict, "Apply failed with 1 conflict", &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "helm" using rbac.authorization.k8s.io/v1`, Field: ".rules"}}}))
		return true
	})
	out, _, failed := runOperator(t, s, "")
	want := "the training operator is not installed, and nothing is changed: apply ClusterRole training-operator: others own what would be changed: .rules is owned by helm"
	if failed == nil || failed.Message != want || !strings.Contains(failed.Hint, "--force-conflicts") || out != "" || !slices.Equal(s.Paths(), []string{theirs}) {
		t.Errorf("got %+v, %s, %q", failed, out, s.Paths())
	}
	if out, _, failed = runOperator(t, s, "--force-conflicts"); failed != nil || !strings.Contains(out, "clusterrole.rbac.authorization.k8s.io/training-operator configured\n") {
		t.Errorf("taken over: %v\n%s", failed, out)
	}
}

// servesPodGroups is the hook of a server that serves the groups that an operator makes.
func servesPodGroups(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/apis" {
		return false
	}
	kubetest.Write(w, 200, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}, Groups: []metav1.APIGroup{{Name: "scheduling.x-k8s.io"}}})
	return true
}

// A Deployment that anybody may make who has a namespace neither keeps an administrator from installing the operator nor is granted rights.
func TestTenantsOperator(t *testing.T) {
	for _, args := range []string{"", "--gang-scheduler gang-scheduler --yes"} {
		s := kubetest.NewStore(t)
		theirs := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "team-a", "name": "training-operator"},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "training-operator", "image": "x/training-operator:v1-93c5489"}}}}}}}
		const at = "/apis/apps/v1/namespaces/team-a/deployments/training-operator"
		s.Put(at, theirs)
		s.Hook(servesPodGroups)
		io, _, out, errOut := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
		cmd := NewOperatorCommand(&cmdutil.Factory{IO: io, Client: s.Client}, nil)
		if err := commandtest.Execute(t.Context(), cmd, append(strings.Fields(args), "--wait=false")...); err != nil || !strings.Contains(out.String(), "deployment.apps/training-operator created\n") {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
		if !strings.Contains(errOut.String(), "note: Deployment team-a/training-operator looks like a training operator and is left alone") {
			t.Errorf("%q: it is not reported:\n%s", args, errOut)
		}
		for _, request := range s.Requests() {
			if strings.Contains(request, at) && !strings.HasPrefix(request, "GET ") || strings.Contains(request, "gangctl:training-operator:gangs") {
				t.Errorf("%q: %s", args, request)
			}
		}
	}
}

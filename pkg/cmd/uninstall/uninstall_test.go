package uninstall

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/internal/prompttest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/install"
)

const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.x-k8s.io"

// installed is a store with the scheduler.
func installed(t *testing.T, args ...string) *kubetest.Store {
	t.Helper()
	s := kubetest.NewStore(t)
	if err := installInto(t, s, args...); err != nil {
		t.Fatal(err)
	}
	return s
}

// installInto types `install scheduler` against a store.
func installInto(t *testing.T, s *kubetest.Store, args ...string) error {
	t.Helper()
	io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	cmd := install.NewSchedulerCommand(&cmdutil.Factory{IO: io, Client: s.Client, Version: version.Info{Version: "v1.2.3"}}, nil)
	cmd.SetArgs(append([]string{"--wait=false", "--skip-checks"}, args...))
	return cmd.ExecuteContext(t.Context())
}

// run types `uninstall` against a store, with a user who answers; without answers there is none.
func run(t *testing.T, s *kubetest.Store, answers *prompttest.Fake, args ...string) (stdout, stderr string, failed *failure.Error) {
	t.Helper()
	f, streams := commandtest.Factory("", time.Time{}, 0, s.Client)
	return commandtest.Run(t.Context(), newCommand(f, answers, nil), streams, args...)
}

func thing(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	if content == nil {
		o.Object = map[string]any{}
	}
	o.Object["apiVersion"], o.Object["kind"] = apiVersion, kind
	o.SetName(name)
	return o
}

func putPod(s *kubetest.Store, name, scheduler, phase string) {
	pod := thing("v1", "Pod", name, map[string]any{"spec": map[string]any{"schedulerName": scheduler}, "status": map[string]any{"phase": phase}})
	pod.SetNamespace("ml")
	s.Put("/api/v1/namespaces/ml/pods/"+name, pod)
}

// Everything goes, in reverse, and the definition stays; the second time there is nothing to do.
func TestUninstall(t *testing.T) {
	s := installed(t)
	putPod(s, "over", "gang-scheduler", "Succeeded")
	putPod(s, "theirs", "default-scheduler", "Running")
	out, stderr, failed := run(t, s, nil)
	if failed != nil {
		t.Fatal(failed)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if lines[0] != "deployment.apps/gang-scheduler deleted" || lines[len(lines)-1] != "namespace/gangctl-system deleted" || len(lines) != 27 {
		t.Errorf("got %q", lines)
	}
	if want := []string{"/api/v1/namespaces/ml/pods/over", "/api/v1/namespaces/ml/pods/theirs", crdPath}; !slices.Equal(s.Paths(), want) {
		t.Errorf("left: %q", s.Paths())
	}
	if !strings.Contains(stderr, "stay; to delete them: gangctl uninstall --delete-crds\n27 objects deleted; nothing labelled ") {
		t.Errorf("stderr: %s", stderr)
	}
	out, stderr, failed = run(t, s, nil)
	if failed != nil || out != "" || !strings.HasPrefix(stderr, "nothing of gangctl is installed on this cluster, except for CustomResourceDefinition podgroups") {
		t.Errorf("%v\n%s%s", failed, out, stderr)
	}
}

// What the scheduler wrote itself goes from a namespace that stays, and nothing of the same name that is another user's.
func TestDeletesItsKey(t *testing.T) {
	const in = "/api/v1/namespaces/ml/"
	for _, labels := range []map[string]string{{"app.kubernetes.io/part-of": "gangctl"}, {"owner": "me"}} {
		s := kubetest.NewStore(t)
		s.Put("/api/v1/namespaces/ml", thing("v1", "Namespace", "ml", nil))
		if err := installInto(t, s, "--namespace", "ml"); err != nil {
			t.Fatal(err)
		}
		for at, kind := range map[string]string{"secrets/": "Secret", "configmaps/": "ConfigMap"} {
			key := thing("v1", kind, "gang-scheduler-answers", nil)
			key.SetNamespace("ml")
			key.SetLabels(labels)
			s.Put(in+at+"gang-scheduler-answers", key)
		}
		out, _, failed := run(t, s, nil)
		theirs := labels["owner"] != ""
		if failed != nil || strings.Contains(out, "secret/gang-scheduler-answers deleted\n") == theirs || strings.Contains(out, "configmap/gang-scheduler-answers deleted\n") == theirs ||
			slices.Contains(s.Paths(), in+"secrets/gang-scheduler-answers") != theirs || slices.Contains(s.Paths(), in+"configmaps/gang-scheduler-answers") != theirs {
			t.Errorf("%v: %v\n%s\nleft: %q", labels, failed, out, s.Paths())
		}
	}
}

// Whatever an interrupted install or uninstall has left goes, also from a namespace that gangctl did not make, and that only the binding names.
func TestAfterAnInterruption(t *testing.T) {
	const namespacePath = "/api/v1/namespaces/ml"
	for _, method := range []string{http.MethodPatch, http.MethodDelete} {
		for done, interrupted := 0, true; interrupted; done++ {
			s, left := kubetest.NewStore(t), done
			s.Put(namespacePath, thing("v1", "Namespace", "ml", nil))
			interrupt := func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != method {
					return false
				}
				if left--; left < 0 {
					kubetest.Write(w, 401, kubetest.Status(401, metav1.StatusReasonUnauthorized, "the login has ended", nil))
				}
				return left < 0
			}
			if method == http.MethodPatch {
				s.Hook(interrupt)
				interrupted = installInto(t, s, "--namespace", "ml") != nil
			} else {
				if err := installInto(t, s, "--namespace", "ml"); err != nil {
					t.Fatal(err)
				}
				s.Hook(interrupt)
				_, _, failed := run(t, s, nil)
				interrupted = failed != nil
			}
			s.Hook(nil)
			if _, _, failed := run(t, s, nil); failed != nil {
				t.Fatalf("%s, after %d: %+v", method, done, failed)
			}
			if rest := slices.DeleteFunc(s.Paths(), func(at string) bool { return at == crdPath }); !slices.Equal(rest, []string{namespacePath}) {
				t.Errorf("%s, after %d: left: %q", method, done, rest)
			}
		}
	}
}

// What any user may have made is left, a few are named, and how each is taken away.
func TestForeignObjectsStay(t *testing.T) {
	s := kubetest.NewStore(t)
	for i := range 12 {
		name := fmt.Sprintf("theirs-%02d", i)
		theirs := thing("v1", "ServiceAccount", name, nil)
		theirs.SetNamespace("team")
		theirs.SetLabels(map[string]string{"app.kubernetes.io/part-of": "gangctl", "app.kubernetes.io/instance": "gang-scheduler"})
		s.Put("/api/v1/namespaces/team/serviceaccounts/"+name, theirs)
	}
	_, stderr, failed := run(t, s, nil)
	if failed != nil || len(s.Paths()) != 12 || strings.Count(stderr, "note: ") != 11 ||
		!strings.Contains(stderr, "; if it is left of an installation: kubectl -n team delete serviceaccount/theirs-09\nnote: 2 more have the labels") {
		t.Errorf("%+v\n%s", failed, stderr)
	}
}

func TestDryRun(t *testing.T) {
	s := installed(t)
	before := s.Paths()
	out, _, failed := run(t, s, nil, "--dry-run=server", "--delete-crds")
	if failed != nil || strings.Count(out, " deleted (server dry run)\n") != 28 || !slices.Equal(before, s.Paths()) {
		t.Errorf("%v\n%s", failed, out)
	}
}

// Pods of any name that it answers to are users of it, until they have ended.
func TestRefusesWhileInUse(t *testing.T) {
	s := installed(t, "--serve", "volcano")
	for i := range 12 {
		putPod(s, fmt.Sprintf("worker-%02d", i), "gang-scheduler", "Running")
	}
	putPod(s, "waits", "volcano", "Pending")
	before := s.Paths()
	_, _, failed := run(t, s, nil)
	if failed == nil || !strings.HasPrefix(failed.Message, "13 pods use the scheduler: ml/worker-00 (Running, schedulerName gang-scheduler), ") ||
		!strings.HasSuffix(failed.Message, " and 3 more") || !slices.Equal(before, s.Paths()) {
		t.Errorf("got %+v", failed)
	}
	s.Remove("/api/v1/namespaces/ml/pods/worker")
	if _, _, failed = run(t, s, nil); failed == nil || failed.Message != "1 pod uses the scheduler: ml/waits (Pending, schedulerName volcano)" || !strings.HasSuffix(failed.Hint, "\npods of no job: kubectl -n ml delete pod waits") {
		t.Errorf("got %+v", failed)
	}
	yes := true
	owned := thing("v1", "Pod", "waits", map[string]any{"spec": map[string]any{"schedulerName": "volcano"}, "status": map[string]any{"phase": "Pending"}})
	owned.SetNamespace("ml")
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Name: "llama", UID: "u", Controller: &yes}})
	s.Put("/api/v1/namespaces/ml/pods/waits", owned)
	if _, _, failed = run(t, s, nil); failed == nil || strings.Contains(failed.Hint, "kubectl") {
		t.Errorf("of a job: %+v", failed)
	}
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/pods" {
			return false
		}
		kubetest.Write(w, 403, kubetest.Status(403, metav1.StatusReasonForbidden, `User "bob" cannot list resource "pods" in API group ""`, nil))
		return true
	})
	if _, _, failed = run(t, s, nil); failed == nil || !strings.HasPrefix(failed.Message, "list Pods in all namespaces: ") || !slices.Contains(s.Paths(), crdPath) {
		t.Errorf("users that cannot be seen pass for none: %+v", failed)
	}
}

// Of the definition, its name must be typed: on the command line or at the prompt.
func TestDeletesDefinition(t *testing.T) {
	const name = "podgroups.scheduling.x-k8s.io"
	tests := []struct {
		name    string
		answers *prompttest.Fake
		args    []string
		message string // empty if it goes
	}{
		{"by flag", nil, []string{"--confirm", name}, ""},
		{"typed", &prompttest.Fake{Texts: []string{name}}, nil, ""},
		{"no terminal", nil, nil, "deleting CustomResourceDefinition " + name + " deletes 1 PodGroup in all namespaces; cannot prompt: stdin and stderr must be terminals"},
		{"another name", nil, []string{"--confirm", "yes"}, `--confirm "yes": the definition that would be deleted is ` + name},
		{"typed wrong", &prompttest.Fake{Texts: []string{"yes"}}, nil, `"yes" is not ` + name + ": nothing was deleted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := installed(t)
			s.Put("/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ml/podgroups/g", thing("scheduling.x-k8s.io/v1alpha1", "PodGroup", "g", nil))
			before := s.Paths()
			_, _, failed := run(t, s, tt.answers, append([]string{"--delete-crds"}, tt.args...)...)
			switch {
			case tt.message == "":
				if failed != nil || slices.Contains(s.Paths(), crdPath) {
					t.Errorf("%+v; left: %q", failed, s.Paths())
				}
			case failed == nil || failed.Message != tt.message || !slices.Equal(before, s.Paths()):
				t.Errorf("got %+v; left: %q", failed, s.Paths())
			}
			if tt.answers != nil && (len(tt.answers.Prompts) != 1 || !strings.Contains(tt.answers.Prompts[0], "deletes 1 PodGroup in all namespaces; type its name")) {
				t.Errorf("asked: %q", tt.answers.Prompts)
			}
		})
	}
}

// A definition that gangctl did not make is not deleted, whatever the flags.
func TestForeignDefinitionStays(t *testing.T) {
	s := installed(t)
	s.Remove(crdPath)
	theirs := thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", "podgroups.scheduling.x-k8s.io", nil)
	theirs.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
	s.Put(crdPath, theirs)
	_, stderr, failed := run(t, s, nil, "--delete-crds", "--confirm", "podgroups.scheduling.x-k8s.io")
	if failed != nil || !slices.Equal(s.Paths(), []string{crdPath}) || !strings.Contains(stderr, "was made by Helm, not by gangctl: it stays\n") {
		t.Errorf("%+v; left: %q\n%s", failed, s.Paths(), stderr)
	}
}

// A namespace that holds other objects is left, and is reported as left.
func TestSparesNamespace(t *testing.T) {
	s := installed(t)
	for _, name := range []string{"kube-root-ca.crt", "thesis"} {
		s.Put("/api/v1/namespaces/gangctl-system/configmaps/"+name, thing("v1", "ConfigMap", name, nil))
	}
	_, stderr, failed := run(t, s, nil)
	if failed == nil || failed.Message != "Namespace gangctl-system is still there, because it holds what is not the scheduler's" ||
		!strings.Contains(stderr, "note: Namespace gangctl-system stays: it holds what is not the scheduler's: ConfigMap thesis\n") {
		t.Errorf("%+v\n%s", failed, stderr)
	}
	if !slices.Contains(s.Paths(), "/api/v1/namespaces/gangctl-system/configmaps/thesis") || slices.Contains(s.Paths(), "/apis/apps/v1/namespaces/gangctl-system/deployments/gang-scheduler") {
		t.Errorf("left: %q", s.Paths())
	}
}

// A namespace that holds the training operator is left, although gangctl installed that: its webhook has no one behind it otherwise. What the
// scheduler wrote itself keeps nothing.
func TestSparesOperatorsNamespace(t *testing.T) {
	s := installed(t)
	f, streams := commandtest.Factory("", time.Time{}, 0, s.Client)
	if _, _, failed := commandtest.Run(t.Context(), install.NewOperatorCommand(f, nil), streams, "--namespace", "gangctl-system", "--wait=false"); failed != nil {
		t.Fatal(failed)
	}
	key := thing("v1", "Secret", "key", nil)
	key.SetLabels(map[string]string{"app.kubernetes.io/part-of": "gangctl"})
	s.Put("/api/v1/namespaces/gangctl-system/secrets/key", key)
	out, stderr, failed := run(t, s, nil)
	if failed == nil || failed.Message != "Namespace gangctl-system is still there, because it holds what is not the scheduler's" ||
		!strings.Contains(stderr, "Deployment training-operator") || strings.Contains(stderr, "Secret key") || strings.Contains(out, "namespace/gangctl-system deleted") {
		t.Errorf("%+v\n%s%s", failed, stderr, out)
	}
	for path, stays := range map[string]bool{
		"/api/v1/namespaces/gangctl-system":                                     true,
		"/apis/apps/v1/namespaces/gangctl-system/deployments/training-operator": true,
		"/apis/apps/v1/namespaces/gangctl-system/deployments/gang-scheduler":    false,
	} {
		if slices.Contains(s.Paths(), path) != stays {
			t.Errorf("%s: left: %q", path, s.Paths())
		}
	}
}

// What counts may be on a later page: a store gives two objects a page, and reports nothing about what remains.
func TestSecondPages(t *testing.T) {
	s := installed(t)
	for i := range 5 {
		name := fmt.Sprintf("g%d", i)
		s.Put("/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ml/podgroups/"+name, thing("scheduling.x-k8s.io/v1alpha1", "PodGroup", name, nil))
	}
	if _, _, failed := run(t, s, nil, "--delete-crds"); failed == nil || !strings.Contains(failed.Message, " deletes 5 PodGroups in all namespaces; ") {
		t.Errorf("got %+v", failed)
	}
	s.Put("/api/v1/namespaces/gangctl-system/configmaps/kube-root-ca.crt", thing("v1", "ConfigMap", "kube-root-ca.crt", nil))
	for i := range 12 {
		name := fmt.Sprintf("thesis-%02d", i)
		s.Put("/api/v1/namespaces/gangctl-system/configmaps/"+name, thing("v1", "ConfigMap", name, nil))
	}
	_, stderr, failed := run(t, s, nil)
	if failed == nil || !strings.Contains(stderr, "ConfigMap thesis-00, ") || !strings.Contains(stderr, "ConfigMap thesis-09, 2 more of kind ConfigMap\n") {
		t.Errorf("%+v\n%s", failed, stderr)
	}
}

// Whatever kind it is of: what is served is looked through.
func TestSparesWhateverIsServed(t *testing.T) {
	s := installed(t)
	s.Put("/apis/example.com/v1/namespaces/gangctl-system/trainings/thesis", thing("example.com/v1", "Training", "thesis", nil))
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/apis":
			v := metav1.GroupVersionForDiscovery{GroupVersion: "example.com/v1", Version: "v1"}
			kubetest.Write(w, 200, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"},
				Groups: []metav1.APIGroup{{Name: "example.com", Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}}})
		case "/apis/example.com/v1":
			kubetest.Write(w, 200, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "example.com/v1",
				APIResources: []metav1.APIResource{{Name: "trainings", Kind: "Training", Namespaced: true, Verbs: metav1.Verbs{"list", "delete"}},
					{Name: "reports", Kind: "Report", Namespaced: true, Verbs: metav1.Verbs{"create"}}, {Name: "sites", Kind: "Site", Verbs: metav1.Verbs{"list", "delete"}}}})
		default:
			return false
		}
		return true
	})
	_, stderr, failed := run(t, s, nil)
	if failed == nil || !strings.Contains(stderr, "note: Namespace gangctl-system stays: it holds what is not the scheduler's: Training thesis\n") {
		t.Errorf("%+v\n%s", failed, stderr)
	}
	if slices.ContainsFunc(s.Requests(), func(r string) bool { return strings.Contains(r, "/reports") || strings.Contains(r, "/sites") }) {
		t.Error("kinds are listed that cannot be, or that no namespace holds")
	}
}

// An aggregated API server that is away may have objects in the namespace, which its deletion would take along.
func TestSparesWhatCannotBeListed(t *testing.T) {
	s := installed(t)
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/apis":
			v := metav1.GroupVersionForDiscovery{GroupVersion: "example.com/v1", Version: "v1"}
			kubetest.Write(w, 200, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"},
				Groups: []metav1.APIGroup{{Name: "example.com", Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}}})
		case "/apis/example.com/v1":
			kubetest.Write(w, 503, kubetest.Status(503, metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request", nil))
		default:
			return false
		}
		return true
	})
	out, stderr, failed := run(t, s, nil)
	if failed == nil || !strings.Contains(stderr, "note: Namespace gangctl-system stays: it may hold what is not the scheduler's: the kinds of example.com/v1, which cannot be listed (") || strings.Contains(out, "namespace/gangctl-system deleted") {
		t.Errorf("%+v\n%s%s", failed, stderr, out)
	}
}

// Every object is tried, and every failure reported.
func TestAllFailuresAreReported(t *testing.T) {
	s := installed(t)
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete || !strings.Contains(r.URL.Path, "/clusterroles/") {
			return false
		}
		kubetest.Write(w, 403, kubetest.Status(403, metav1.StatusReasonForbidden, `User "bob" cannot delete resource "clusterroles" in API group "rbac.authorization.k8s.io"`, nil))
		return true
	})
	out, _, failed := run(t, s, nil)
	if failed == nil || strings.Count(failed.Message, "delete ClusterRole gangctl:") < 5 || !strings.Contains(out, "namespace/gangctl-system deleted\n") {
		t.Errorf("%+v\n%s", failed, out)
	}
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"operator":           `uninstall "operator": only the scheduler can be named`,
		"--confirm x":        "--confirm has no effect without --delete-crds",
		"--timeout 0s":       "--timeout 0s: must be greater than zero",
		"--dry-run nonsense": "must be one of none, server",
	} {
		_, _, failed := run(t, kubetest.NewStore(t), nil, strings.Fields(args)...)
		if failed == nil || !strings.Contains(failed.Message, want) {
			t.Errorf("%s: got %+v", args, failed)
		}
	}
}

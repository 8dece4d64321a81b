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

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
)

const (
	crdPath       = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.x-k8s.io"
	namespacePath = "/api/v1/namespaces/gangctl-system"
)

// run types `install scheduler` with a gangctl of a version against a store, without waiting.
func run(t *testing.T, s *kubetest.Store, gangctl string, args ...string) (stdout, stderr string, failed *failure.Error) {
	t.Helper()
	f, streams := commandtest.Factory("", time.Time{}, 0, s.Client)
	f.Version = version.Info{Version: gangctl}
	args = append([]string{"--wait=false", "--skip-checks"}, args...) // a store answers no access reviews
	return commandtest.Run(t.Context(), NewSchedulerCommand(f, nil), streams, args...)
}

// installed is a store on which a version is installed.
func installed(t *testing.T, gangctl string, args ...string) *kubetest.Store {
	t.Helper()
	s := kubetest.NewStore(t)
	if _, _, failed := run(t, s, gangctl, args...); failed != nil {
		t.Fatal(failed)
	}
	return s
}

// other is a definition or namespace that gangctl did not make.
func other(kind, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "spec": content}}
	o.SetName(name)
	o.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "sched", "meta.helm.sh/release-namespace": "kube-system"})
	return o
}

func serving(version string) map[string]any {
	return map[string]any{"versions": []any{map[string]any{"name": version, "served": true}}}
}

// What gangctl did not make is used and not touched, and its owner is named.
func TestLeavesOthers(t *testing.T) {
	s := kubetest.NewStore(t)
	s.Put(crdPath, other("CustomResourceDefinition", "podgroups.scheduling.x-k8s.io", serving("v1alpha1")))
	s.Put(namespacePath, other("Namespace", "gangctl-system", nil))
	out, stderr, failed := run(t, s, "v1.2.3")
	if failed != nil || strings.Contains(out, "namespace/") || strings.Contains(out, "customresourcedefinition") {
		t.Fatalf("%v\n%s", failed, out)
	}
	for _, want := range []string{
		"note: Namespace gangctl-system is there already, made by Helm release kube-system/sched: it is used as it is\n",
		"note: CustomResourceDefinition podgroups.scheduling.x-k8s.io is there already, made by Helm release kube-system/sched: it is used as it is\n",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("missing: %s", want)
		}
	}
	s.Put(crdPath, other("CustomResourceDefinition", "podgroups.scheduling.x-k8s.io", serving("v2")))
	_, _, failed = run(t, s, "v1.2.3")
	if failed == nil || !strings.Contains(failed.Message, "made by Helm release kube-system/sched, and does not serve v1alpha1, which training operators write (it serves v2)") {
		t.Errorf("got %+v", failed)
	}
}

// Objects of others that have the name of ours are refused, all of them, before anything is written: an uninstall would delete them.
func TestRefusesOthersObjects(t *testing.T) {
	theirs := map[string]string{
		"/api/v1/namespaces/gangctl-system/serviceaccounts/gang-scheduler":                    "ServiceAccount",
		"/api/v1/namespaces/gangctl-system/configmaps/gang-scheduler":                         "ConfigMap",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/gangctl:gang-scheduler":              "ClusterRole",
		"/apis/scheduling.k8s.io/v1/priorityclasses/gangctl-scheduler":                        "PriorityClass",
		"/apis/apps/v1/namespaces/gangctl-system/deployments/gang-scheduler":                  "Deployment",
		"/apis/networking.k8s.io/v1/namespaces/gangctl-system/networkpolicies/gang-scheduler": "NetworkPolicy",
	}
	for at, kind := range theirs {
		for _, args := range [][]string{nil, {"--force-conflicts"}, {"--dry-run=server"}} {
			s := kubetest.NewStore(t)
			s.Put(at, other(kind, at[strings.LastIndex(at, "/")+1:], nil))
			_, _, failed := run(t, s, "v1.2.3", args...)
			if failed == nil || !strings.HasPrefix(failed.Message, "the gang scheduler is not installed, and nothing is changed: "+kind+" ") ||
				!strings.Contains(failed.Message, " is there already, made by Helm release kube-system/sched") || !strings.Contains(failed.Hint, "kubectl ") ||
				!slices.Equal(s.Paths(), []string{at}) {
				t.Errorf("%s %q: got %+v; there: %q", kind, args, failed, s.Paths())
			}
		}
	}
	s := kubetest.NewStore(t)
	for at, kind := range theirs {
		s.Put(at, other(kind, at[strings.LastIndex(at, "/")+1:], nil))
	}
	if _, _, failed := run(t, s, "v1.2.3"); failed == nil || strings.Count(failed.Message, "is there already") != len(theirs) || len(s.Paths()) != len(theirs) {
		t.Errorf("got %+v", failed)
	}
}

// A conflict is found before anything is written; where taking over cannot help, the way out is another.
func TestConflictChangesNothing(t *testing.T) {
	s := installed(t, "v1.2.3")
	before := len(s.Requests())
	immutable := false
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/priorityclasses/"):
			return false
		case r.URL.Query().Get("force") == "false":
			kubetest.Write(w, 409, kubetest.Status(409, metav1.StatusReasonConflict, "Apply failed with 1 conflict", &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "kubectl-edit"`, Field: ".value"}}}))
			return true
		case immutable:
			kubetest.Write(w, 422, kubetest.Status(422, metav1.StatusReasonInvalid, `PriorityClass "gangctl-scheduler" is invalid: value: Forbidden: may not be changed in an update.`, nil))
		}
		return immutable
	})
	_, _, failed := run(t, s, "v1.2.3", "--serve", "volcano")
	if failed == nil || !strings.HasPrefix(failed.Message, "the gang scheduler stays as it is: apply PriorityClass gangctl-scheduler: others own what would be changed: .value") ||
		!strings.Contains(failed.Hint, "--force-conflicts") {
		t.Errorf("got %+v", failed)
	}
	immutable = true
	for _, args := range [][]string{nil, {"--force-conflicts"}} {
		_, _, failed = run(t, s, "v1.2.3", append([]string{"--serve", "volcano"}, args...)...)
		if failed == nil || !strings.Contains(failed.Message, "may not be changed") || strings.Contains(failed.Hint, "--force-conflicts") ||
			!strings.Contains(failed.Hint, "kubectl delete priorityclass.scheduling.k8s.io/gangctl-scheduler") {
			t.Errorf("%q: got %+v", args, failed)
		}
	}
	for _, request := range s.Requests()[before:] {
		if !strings.HasPrefix(request, "GET ") && !strings.Contains(request, "dryRun=All") {
			t.Errorf("written: %s", request)
		}
	}
}

// What another command has set meanwhile is not lost, and its loss is not passed over: the settings are those that were read.
func TestTwoAtATime(t *testing.T) {
	const deploymentPath = "/apis/apps/v1/namespaces/gangctl-system/deployments/gang-scheduler"
	s := installed(t, "v1.2.3")
	of := installed(t, "v1.2.3", "--serve", "a")
	client, err := of.Client()
	if err != nil {
		t.Fatal(err)
	}
	found, err := Find(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	deployment := found.Objects[len(found.Objects)-1]
	meanwhile := false
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if meanwhile = meanwhile || r.Method == http.MethodPatch && !r.URL.Query().Has("dryRun"); meanwhile && r.URL.Path == deploymentPath {
			kubetest.Write(w, 200, deployment)
			return true
		}
		return false
	})
	_, _, failed := run(t, s, "v1.2.3", "--serve", "b")
	if failed == nil || !strings.Contains(failed.Message, "was changed meanwhile by another command") {
		t.Errorf("got %+v", failed)
	}
	s.Hook(nil)
	s.Put(deploymentPath, deployment)
	if out, _, failed := run(t, s, "v1.2.3", "--serve", "b", "--diff"); failed != nil || !strings.Contains(out, "--serve=a,b\n") {
		t.Errorf("got %+v\n%s", failed, out)
	}
}

// The image that was typed is kept, also where there is none of this gangctl.
func TestKeepsImage(t *testing.T) {
	s := installed(t, "c3aba946", "--image", "gangctl:local")
	out, stderr, failed := run(t, s, "c3aba946", "--serve", "volcano")
	if failed != nil || !strings.Contains(out, "deployment.apps/gang-scheduler configured\n") || !strings.Contains(stderr, "keeps what is not typed: --image=gangctl:local\n") {
		t.Errorf("%v\n%s%s", failed, out, stderr)
	}
	if _, _, failed = run(t, s, "c3aba946", "-n", "other"); failed == nil || !strings.Contains(failed.Message, "is installed in namespace gangctl-system already") {
		t.Errorf("got %+v", failed)
	}
	if _, _, failed = run(t, kubetest.NewStore(t), "c3aba946"); failed == nil || !strings.HasPrefix(failed.Message, "there is no image of this gangctl") {
		t.Errorf("nothing installed: got %+v", failed)
	}
}

// A namespace that gangctl made for the operator gets neither the labels nor the pod security of the scheduler's: an uninstall would delete it.
func TestLeavesOperatorsNamespace(t *testing.T) {
	s := kubetest.NewStore(t)
	if _, _, failed := runOperator(t, s, ""); failed != nil {
		t.Fatal(failed)
	}
	for range 2 {
		out, stderr, failed := run(t, s, "v1.2.3", "--namespace", "kubeflow")
		if failed != nil || strings.Contains(out, "namespace/") || !strings.Contains(stderr, "note: Namespace kubeflow is there already, made by gangctl: it is used as it is\n") {
			t.Fatalf("%v\n%s%s", failed, out, stderr)
		}
	}
	if out, stderr, failed := runOperator(t, s, ""); failed != nil || !strings.Contains(out, "namespace/kubeflow unchanged\n") {
		t.Errorf("%v\n%s%s", failed, out, stderr)
	}
}

func TestNamesNeighbours(t *testing.T) {
	s := kubetest.NewStore(t)
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/apis" {
			return false
		}
		kubetest.Write(w, 200, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"},
			Groups: []metav1.APIGroup{{Name: "scheduling.volcano.sh"}, {Name: "scheduling.incubator.k8s.io"}}})
		return true
	})
	_, stderr, failed := run(t, s, "v1.2.3", "--serve", "kube-batch")
	if failed != nil {
		t.Fatal(failed)
	}
	for _, want := range []string{
		"note: the cluster has the PodGroups of kube-batch (scheduling.incubator.k8s.io): pods with schedulerName kube-batch are scheduled by gang-scheduler from now on; stop",
		"note: the cluster has the PodGroups of Volcano (scheduling.volcano.sh): its pods stay its own; to take over those with schedulerName volcano: --serve volcano\n",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("missing: %s\n%s", want, stderr)
		}
	}
}

// One cluster has one scheduler, and an older gangctl leaves a newer one alone, before anything is changed.
func TestRefuses(t *testing.T) {
	s := installed(t, "v1.10.0")
	before := len(s.Requests())
	_, _, failed := run(t, s, "v1.10.0", "--namespace", "other")
	if failed == nil || failed.Message != "the scheduler is installed in namespace gangctl-system already, and a cluster has one" ||
		!strings.Contains(failed.Hint, "--namespace gangctl-system") {
		t.Errorf("got %+v", failed)
	}
	_, _, failed = run(t, s, "v1.9.0")
	if failed == nil || failed.Message != "the installed scheduler is v1.10.0, newer than this gangctl, which is v1.9.0" {
		t.Errorf("got %+v", failed)
	}
	for _, request := range s.Requests()[before:] {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("after a refusal: %s", request)
		}
	}
	if _, _, failed = run(t, s, "v1.11.0"); failed != nil {
		t.Errorf("a newer one: %v", failed)
	}
	if _, _, failed = run(t, s, "dev", "--image", "x"); failed != nil {
		t.Errorf("one that cannot be compared: %v", failed)
	}
}

// What a flag requested and that of the next run does not is removed again.
func TestPrunes(t *testing.T) {
	s := installed(t, "v1.2.3", "--ha")
	out, stderr, failed := run(t, s, "v1.2.3", "--ha=false")
	if failed != nil || !strings.Contains(out, "poddisruptionbudget.policy/gang-scheduler pruned\n") || !strings.Contains(out, "deployment.apps/gang-scheduler configured\n") ||
		!strings.Contains(stderr, "0 created, 1 configured, 27 unchanged, 1 pruned\n") {
		t.Errorf("%v\n%s%s", failed, out, stderr)
	}
}

// What is not typed again stays, and that is noted; scheduler names, by which pods live, are only added.
func TestKeepsSettings(t *testing.T) {
	s := installed(t, "v1.2.3", "--ha", "--serve", "volcano", "--cpu", "200m", "--take-back=false")
	out, stderr, failed := run(t, s, "v1.2.3", "--serve", "kube-batch,volcano", "--diff")
	const note = "note: the scheduler is installed already, and keeps what is not typed: --replicas=2 --serve=volcano,kube-batch --cpu=200m --take-back=false\n"
	if failed != nil || !strings.Contains(out, "\n+        - --serve=volcano,kube-batch\n") || strings.Contains(out, "pruned") ||
		!strings.Contains(stderr, note) || !strings.Contains(stderr, "0 created, 1 configured, ") || !strings.Contains(stderr, ", 0 pruned") {
		t.Errorf("%v\n%s%s", failed, out, stderr)
	}
	if out, _, failed = run(t, s, "v1.2.3"); failed != nil || strings.Contains(out, "configured") || strings.Contains(out, "pruned") {
		t.Errorf("nothing typed: %v\n%s", failed, out)
	}
	s = installed(t, "v1.2.3")
	if _, stderr, _ = run(t, s, "v1.2.3", "--serve", "volcano"); strings.Contains(stderr, "keeps") {
		t.Errorf("nothing to keep: %s", stderr)
	}
	s = installed(t, "v1.2.3", "--image", "r/gangctl:v1.2.3")
	if _, _, failed = run(t, s, "v1.3.0"); failed == nil || !strings.Contains(failed.Message, "which image is that of v1.3.0 is not known") || !strings.Contains(failed.Hint, "install scheduler --image") {
		t.Errorf("an image of then: %+v", failed)
	}
}

// --diff shows what changes and nothing else, and changes nothing.
func TestDiff(t *testing.T) {
	s := installed(t, "v1.2.3")
	out, stderr, failed := run(t, s, "v1.2.3", "--diff", "--serve", "volcano")
	if failed != nil || !strings.Contains(out, "\n+        - --serve=volcano\n") || strings.Contains(out, "configmap/") || strings.Contains(out, "unchanged") ||
		!strings.Contains(stderr, "0 created, 1 configured, 27 unchanged, 0 pruned (server dry run)\n") {
		t.Errorf("%v\n%s%s", failed, out, stderr)
	}
	out, _, failed = run(t, s, "v1.2.3", "--dry-run=server", "--serve", "volcano")
	if failed != nil || !strings.Contains(out, "deployment.apps/gang-scheduler configured (server dry run)\n") {
		t.Errorf("%v\n%s", failed, out)
	}
	if out, _, failed = run(t, s, "v1.2.3"); failed != nil || strings.Count(out, " unchanged\n") != 28 {
		t.Errorf("something was changed: %v\n%s", failed, out)
	}
}

// A user who lacks a right gets it named, and where to see all that are missing; a refusal of another sort is no matter of rights.
func TestForbidden(t *testing.T) {
	for message, want := range map[string]bool{
		`User "bob" cannot patch resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope`: true,
		`admission webhook "no.example.com" denied the request: no`:                                                     false,
	} {
		s := kubetest.NewStore(t)
		s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/clusterroles/") {
				return false
			}
			kubetest.Write(w, 403, kubetest.Status(403, metav1.StatusReasonForbidden, message, nil))
			return true
		})
		out, _, failed := run(t, s, "v1.2.3")
		if failed == nil || !strings.Contains(failed.Message, message) || strings.Contains(failed.Hint, "gangctl check --pre") != want ||
			!strings.Contains(out, "deployment.apps/gang-scheduler created\n") {
			t.Errorf("got %+v", failed)
		}
	}
}

// Its settings are found again.
func TestFind(t *testing.T) {
	s := installed(t, "v1.2.3", "--serve", "volcano", "--replicas", "3", "--memory", "1Gi", "--namespace", "ml")
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	found, err := Find(context.Background(), client)
	if err != nil || found.Namespace != "ml" || found.Version != "v1.2.3" || found.Settings.Memory != "1Gi" || found.Settings.Replicas != 3 {
		t.Fatalf("got %+v, %v", found, err)
	}
	if names := strings.Join(found.Names(), " "); names != install.SchedulerInstance+" volcano" {
		t.Errorf("names: %s", names)
	}
	second := found.Objects[len(found.Objects)-1].DeepCopy()
	second.SetNamespace("elsewhere")
	s.Put("/apis/apps/v1/namespaces/elsewhere/deployments/gang-scheduler", second)
	if found, err = Find(context.Background(), client); err != nil || found.Namespace != "ml" || len(found.Foreign) != 1 {
		t.Errorf("one that no binding names: got %+v, %v", found, err)
	}
	for _, o := range found.Objects {
		if o.GetKind() != "ClusterRoleBinding" || o.GetName() != install.SchedulerBinding {
			continue
		}
		subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
		subjects = append(subjects, map[string]any{"kind": "ServiceAccount", "name": "gang-scheduler", "namespace": "elsewhere"})
		if err := unstructured.SetNestedSlice(o.Object, subjects, "subjects"); err != nil {
			t.Fatal(err)
		}
		s.Put("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/"+install.SchedulerBinding, o)
	}
	if _, err := Find(context.Background(), client); err == nil || !strings.Contains(err.Error(), "two installations of the scheduler") {
		t.Errorf("got %v", err)
	}
}

// A server that does not serve what limits the scheduler's account gets the rest, and a note.
func TestLeavesUnserved(t *testing.T) {
	s := kubetest.NewStore(t)
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/apis/admissionregistration.k8s.io/") {
			return false
		}
		kubetest.Write(w, 404, kubetest.Status(404, metav1.StatusReasonNotFound, "the server could not find the requested resource", nil))
		return true
	})
	out, stderr, failed := run(t, s, "v1.2.3")
	if failed != nil || strings.Contains(out, "validatingadmission") || !strings.Contains(out, "deployment.apps/gang-scheduler created\n") {
		t.Fatalf("%v\n%s", failed, out)
	}
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		if !strings.Contains(stderr, "note: "+kind+" gang-scheduler.gangctl.dev is left out: the API server does not serve its kind, so what the scheduler may change of jobs") {
			t.Errorf("%s is not reported:\n%s", kind, stderr)
		}
	}
}

// What is shipped is of a kind that later versions look for, or it would never be pruned.
func TestEveryKindIsLookedFor(t *testing.T) {
	objects, err := install.Scheduler{Version: "v1.2.3", Namespace: "ml", Image: "x", Replicas: 2, TakeBack: true}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if !slices.ContainsFunc(apply.ShippedKinds(), func(k apply.Kind) bool { return k.Kind == o.GetKind() }) {
			t.Errorf("%s is not", apply.Describe(o))
		}
	}
}

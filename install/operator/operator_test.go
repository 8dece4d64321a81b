package operator

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/install"
	known "github.com/gangctl/gangctl/pkg/setup/operator"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// limit is what API servers take of annotations, among which client-side apply
// keeps the whole object.
const limit = 262144

func objects(t *testing.T, o Operator) []*unstructured.Unstructured {
	t.Helper()
	all, err := o.Objects()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func standard() Operator { return Operator{Namespace: DefaultNamespace, Kinds: []string{"tfjobs"}} }

func find[T any](t *testing.T, all []*unstructured.Unstructured, kind string) *T {
	t.Helper()
	for _, o := range all {
		if o.GetKind() == kind {
			typed := new(T)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, typed, true); err != nil {
				t.Fatal(err)
			}
			return typed
		}
	}
	t.Fatalf("no %s", kind)
	return nil
}

// Everything is labelled, nothing is too large for client-side apply, no rule has a wildcard.
func TestObjects(t *testing.T) {
	for _, o := range []Operator{standard(), {Namespace: "jobs", Kinds: Kinds(), GangScheduler: "gang-scheduler"}} {
		for _, object := range objects(t, o) {
			name := object.GetKind() + " " + object.GetName()
			if labels := object.GetLabels(); labels[install.LabelPartOf] != install.PartOf || labels[install.LabelInstance] != Name || labels[install.LabelVersion] != Version {
				t.Errorf("%s: labels %v", name, labels)
			}
			data, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if len(data) > limit/2 {
				t.Errorf("%s has %d bytes", name, len(data))
			}
			if namespace := object.GetNamespace(); namespace != "" && namespace != o.Namespace {
				t.Errorf("%s is in %s", name, namespace)
			}
			if strings.Contains(object.GetKind(), "Role") && strings.Contains(string(data), `"*"`) {
				t.Errorf("%s has a wildcard", name)
			}
			if o.Namespace != DefaultNamespace && strings.Contains(string(data), `"kubeflow"`) {
				t.Errorf("%s names the default namespace:\n%s", name, data)
			}
		}
	}
}

func TestDefinitions(t *testing.T) {
	for _, object := range objects(t, Operator{Namespace: DefaultNamespace, Kinds: Kinds()}) {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, crd, true); err != nil {
			t.Fatal(err)
		}
		if len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Name != "v1" {
			t.Fatalf("%s: versions %v", crd.Name, crd.Spec.Versions)
		}
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		if schema.Description != "" || len(schema.Properties["spec"].Properties["runPolicy"].Properties) < 5 {
			t.Errorf("%s: described, or without its run policy", crd.Name)
		}
	}
}

// An installation for TFJobs brings no more than TFJobs need.
func TestTFJobsOnly(t *testing.T) {
	all := objects(t, standard())
	var names []string
	for _, o := range all {
		names = append(names, o.GetKind()+" "+o.GetName())
	}
	slices.Sort(names)
	want := []string{
		"ClusterRole training-operator", "ClusterRoleBinding training-operator", "CustomResourceDefinition tfjobs.kubeflow.org", "Deployment training-operator",
		"Namespace kubeflow", "Role training-operator-webhook-cert", "RoleBinding training-operator-webhook-cert", "Secret training-operator-webhook-cert",
		"Service training-operator", "ServiceAccount training-operator", "ValidatingWebhookConfiguration validator.training-operator.kubeflow.org",
	}
	if !slices.Equal(names, want) {
		t.Errorf("got %q", names)
	}
	role := find[rbacv1.ClusterRole](t, all, "ClusterRole")
	text, err := json.Marshal(role.Rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, never := range []string{"secrets", "podgroups", "pytorchjobs", "pods/exec", "roles", "configmaps", "horizontalpodautoscalers"} {
		if strings.Contains(string(text), `"`+never+`"`) {
			t.Errorf("it may use %s", never)
		}
	}
	d := find[appsv1.Deployment](t, all, "Deployment")
	if got := strings.Join(d.Spec.Template.Spec.Containers[0].Args, " "); got != "--enable-scheme=tfjob" {
		t.Errorf("arguments %q", got)
	}
	for _, o := range all {
		hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		if o.GetKind() == "ValidatingWebhookConfiguration" && len(hooks) != 1 {
			t.Errorf("%d webhooks", len(hooks))
		}
	}
}

func TestSettings(t *testing.T) {
	all := objects(t, Operator{Namespace: "jobs", Image: "mirror.example/training-operator:v1.9.4", PullSecrets: []string{"pull"}, Kinds: Kinds(), GangScheduler: "gang-scheduler"})
	d := find[appsv1.Deployment](t, all, "Deployment")
	pod := d.Spec.Template.Spec
	c := pod.Containers[0]
	if c.Image != "mirror.example/training-operator:v1.9.4" || pod.ImagePullSecrets[0].Name != "pull" || strings.Join(c.Args, " ") != "--gang-scheduler-name=gang-scheduler" {
		t.Errorf("got %s %v %v", c.Image, pod.ImagePullSecrets, c.Args)
	}
	if _, err := (Operator{Kinds: []string{"sparkjobs"}}).Objects(); err == nil || !strings.Contains(err.Error(), "sparkjobs") {
		t.Errorf("got %v", err)
	}
}

// What is installed is recognised as what it is, and may do all that it uses.
func TestIsRecognised(t *testing.T) {
	image, err := Image()
	if err != nil {
		t.Fatal(err)
	}
	for _, scheduler := range []string{"", "gang-scheduler", "volcano"} {
		o := standard()
		o.GangScheduler = scheduler
		all := objects(t, o)
		found := known.Find([]*appsv1.Deployment{find[appsv1.Deployment](t, all, "Deployment")})
		if len(found) != 1 || found[0].Release.String() != Version || found[0].Container().Image != image {
			t.Fatalf("found %+v", found)
		}
		if m := found[0].Mode(); m.On != (scheduler != "") || m.Scheduler != scheduler {
			t.Errorf("mode %+v", m)
		}
		cluster, own := find[rbacv1.ClusterRole](t, all, "ClusterRole").Rules, find[rbacv1.Role](t, all, "Role").Rules
		for _, need := range found[0].Needs() {
			held := cluster
			if need.Namespaced {
				held = slices.Concat(cluster, own)
			}
			if missing := rbac.Missing(held, need.Rules); len(missing) > 0 {
				t.Errorf("with scheduler %q it cannot %s: %v", scheduler, need.Purpose, missing)
			}
		}
		if s := find[corev1.Secret](t, all, "Secret"); len(s.Data) > 0 {
			t.Error("the Secret is not empty: applying it again would take the certificate away")
		}
	}
}

// The files are what the generator makes of the module that go.mod names.
func TestIsGenerated(t *testing.T) {
	if _, err := os.ReadDir("generate"); err != nil { // what only another process reads does not count for the cache of test results
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "generate")
	if out, err := exec.Command("go", "build", "-o", program, "./generate").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	// go list needs to stand in a module; the temporary one borrows our go.mod.
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(strings.TrimSpace(string(module))), name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fresh, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := manifests.ReadDir(".")
	if err != nil || len(shipped) != len(fresh) {
		t.Errorf("%d files are shipped, %d are generated: %v", len(shipped), len(fresh), err)
	}
	for _, path := range fresh {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := manifests.ReadFile(filepath.Base(path))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s is stale: make generate", filepath.Base(path))
		}
	}
}

package crd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func TestTFJobs(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(TFJobs(), crd); err != nil {
		t.Fatal(err)
	}
	if crd.Name != "tfjobs.kubeflow.org" || len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Name != "v1" {
		t.Fatalf("got %s %v", crd.Name, crd.Spec.Versions)
	}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	if schema.Description != "" {
		t.Error("descriptions are not stripped")
	}
	template := schema.Properties["spec"].Properties["tfReplicaSpecs"].AdditionalProperties.Schema.Properties["template"]
	if len(template.Properties["spec"].Properties["containers"].Items.Schema.Properties) < 10 {
		t.Error("fields of containers are missing")
	}
	if policy := schema.Properties["spec"].Properties["runPolicy"].Properties["schedulingPolicy"]; len(policy.Properties) == 0 {
		t.Error("the scheduling policy is missing")
	}
}

// The file is what the generator makes of the module that go.mod names.
func TestTFJobsIsGenerated(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "generate")
	if out, err := exec.Command("go", "build", "-o", program, "./generate").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Dir = dir
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
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fresh, err := os.ReadFile(filepath.Join(dir, "tfjobs.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if string(fresh) != string(TFJobs()) {
		t.Error("tfjobs.yaml is stale: run go generate ./sandbox/crd")
	}
}

package whatif_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
)

// What an object leaves out is added whole, and what does not differ is in no step.
func TestWritten(t *testing.T) {
	const group = "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nspec: {replicatedJobs: [{name: w, template: {spec: {template: {spec: {unknown: 1, containers: [{name: c}]}}}}}]}"
	const train = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nspec: {runtimeRef: {name: torch}}"
	at := "/spec/replicatedJobs/0"
	for name, tt := range map[string]struct {
		reader gang.JobReader
		object string
		edit   func(*whatif.Spec)
		want   []command.Patch
	}{
		"nothing": {jobset.Reader(), group, func(*whatif.Spec) {}, nil},
		"a number": {jobset.Reader(), group, func(s *whatif.Spec) { s.Roles[0].Replicas = 3 },
			[]command.Patch{{Op: "add", Path: at + "/template/spec/parallelism", Value: int64(3)}}},
		"a label": {jobset.Reader(), group, func(s *whatif.Spec) { s.Roles[0].Template.Labels = map[string]string{"a/b": "c"} },
			[]command.Patch{{Op: "add", Path: at + "/template/spec/template/metadata", Value: map[string]any{"labels": map[string]any{"a/b": "c"}}}}},
		"a request": {jobset.Reader(), group, func(s *whatif.Spec) { s.Roles[0].Template.Spec.Containers[0].Image = "x" },
			[]command.Patch{{Op: "add", Path: at + "/template/spec/template/spec/containers/0/image", Value: "x"}}},
		"what it is in is missing": {trainjob.Reader(), train, func(s *whatif.Spec) { s.Roles[0].Replicas = 2 },
			[]command.Patch{{Op: "add", Path: "/spec/trainer", Value: map[string]any{"numNodes": int64(2)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tt.object), &u.Object); err != nil {
				t.Fatal(err)
			}
			job, err := tt.reader.Job(u)
			if err != nil {
				t.Fatal(err)
			}
			g := &gang.Gang{Job: job}
			steps, err := whatif.Written(g, u, whatif.Revise(g, tt.edit))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, steps); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

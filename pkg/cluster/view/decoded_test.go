package view

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
)

// A later view decodes no object again that is the same, and holds on to nothing that is gone. Which names several jobs have is of its own moment.
func TestDecodedOnce(t *testing.T) {
	s := someJobs(t)
	homonym := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": map[string]any{"namespace": "team", "name": "job1", "uid": "other"},
		"spec": map[string]any{"pytorchReplicaSpecs": map[string]any{}}}}
	if err := s.Put(homonym); err != nil {
		t.Fatal(err)
	}
	s.Finish()
	first := New(s)
	before := slices.Clone(first.Jobs())
	later := s.Clone()
	for kind, list := range later.Custom {
		later.Custom[kind] = slices.DeleteFunc(list, func(u *unstructured.Unstructured) bool { return u == homonym || u.GetName() == "job7" })
	}
	changed := later.Custom[tfjob.Reader().GroupKind][2].DeepCopy()
	later.Custom[tfjob.Reader().GroupKind][2] = changed
	first.Groups()
	second := After(first.Known(), later)
	jobs := second.Jobs()
	if len(jobs) != 7 || len(before) != 9 {
		t.Fatalf("%d jobs, and %d later", len(before), len(jobs))
	}
	for _, job := range jobs {
		at := slices.IndexFunc(before, func(b *gang.Job) bool { return b.Meta.UID == job.Meta.UID })
		same := &before[at].Roles[0] == &job.Roles[0]
		if want := job.Meta.Name != changed.GetName(); same != want || job.SharesName || before[at].SharesName != (job.Meta.Name == "job1") {
			t.Errorf("%s is what was decoded before: %t, want %t; it shares its name: %t, before %t", job.Meta.Name, same, want, job.SharesName, before[at].SharesName)
		}
	}
	if third := After(second.Known(), later); len(third.Jobs()) != 7 || len(third.decoded.earlier.jobs) != 7 || len(second.Groups()) != 7 || third.decoded.earlier.earlier != nil {
		t.Errorf("%d jobs and %d groups are kept of %d", len(third.decoded.earlier.jobs), len(second.Groups()), len(third.Jobs()))
	}
}

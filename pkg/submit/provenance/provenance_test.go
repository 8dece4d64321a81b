package provenance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(json); err != nil {
		t.Fatal(err)
	}
	return u
}

// A change of the spec counts. Fields that change by themselves, or that only suspend the job, do not.
func TestChanged(t *testing.T) {
	stored := read(t, "{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: a}, spec: {runPolicy: {suspend: false, backoffLimit: 3}}}")
	batch := read(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {suspend: false, selector: {matchLabels: {u: x}}, template: {metadata: {labels: {controller-uid: x, a: b}}, spec: {restartPolicy: Never}}}}")
	queued := batch.DeepCopy()
	queued.SetLabels(map[string]string{"kueue.x-k8s.io/queue-name": "research"})
	for name, tt := range map[string]struct {
		of     *unstructured.Unstructured
		change func(map[string]any)
		want   bool
	}{
		"nothing": {stored, func(map[string]any) {}, false},
		"suspended": {stored, func(o map[string]any) {
			must(t, unstructured.SetNestedField(o, true, "spec", "runPolicy", "suspend"))
		}, false},
		"status": {stored, func(o map[string]any) {
			must(t, unstructured.SetNestedField(o, "x", "status", "startTime"))
		}, false},
		"a limit": {stored, func(o map[string]any) {
			must(t, unstructured.SetNestedField(o, int64(4), "spec", "runPolicy", "backoffLimit"))
		}, true},
		"another field": {stored, func(o map[string]any) { must(t, unstructured.SetNestedField(o, "AllWorkers", "spec", "successPolicy")) }, true},
		"another uid": {batch, func(o map[string]any) {
			must(t, unstructured.SetNestedField(o, "y", "spec", "selector", "matchLabels", "u"))
			must(t, unstructured.SetNestedField(o, "y", "spec", "template", "metadata", "labels", "controller-uid"))
		}, false},
		"a label": {batch, func(o map[string]any) {
			must(t, unstructured.SetNestedField(o, "c", "spec", "template", "metadata", "labels", "a"))
		}, true},
		"Kueue admits it": {queued, func(o map[string]any) {
			must(t, unstructured.SetNestedField(o, "main", "spec", "template", "metadata", "labels", "kueue.x-k8s.io/podset"))
			must(t, unstructured.SetNestedField(o, "a100", "spec", "template", "spec", "nodeSelector", "pool"))
		}, false},
		"a label of one in a queue": {queued, func(o map[string]any) {
			must(t, unstructured.SetNestedField(o, "c", "spec", "template", "metadata", "labels", "a"))
		}, true},
		"nodes of one in no queue": {batch, func(o map[string]any) {
			must(t, unstructured.SetNestedField(o, "a100", "spec", "template", "spec", "nodeSelector", "pool"))
		}, true},
	} {
		job := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(tt.of.Object)}
		Stamp(job, tt.of)
		tt.change(job.Object)
		if changed, known := Changed(job); changed != tt.want || !known {
			t.Errorf("%s: got %v, %v", name, changed, known)
		}
	}
	if _, known := Changed(stored); known {
		t.Error("it is known of a job that keeps no hash")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What is left is what a user could have written, and the argument is not changed.
func TestBare(t *testing.T) {
	const text = `
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: ns, uid: u, generation: 2, resourceVersion: "1", finalizers: [f], ownerReferences: [{kind: CronJob, name: c, uid: v, apiVersion: batch/v1}],
  labels: {team: vision, job-name: a, gangctl.dev/suspended-by: s}, annotations: {gangctl.dev/command: x, gangctl.dev/spec-hash: h, gangctl.dev/submitted-by: ann, keep: z}}
spec: {parallelism: 2}
status: {active: 2}
`
	job := read(t, text)
	got := Bare(job)
	want := read(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: ns, labels: {team: vision}, annotations: {keep: z}}, spec: {parallelism: 2}}")
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(read(t, text).Object, job.Object); diff != "" {
		t.Errorf("what was given is changed: %s", diff)
	}
	if User(job) != "ann" || User(got) != "" {
		t.Errorf("users: %q, %q", User(job), User(got))
	}
	if SetUser(got, ""); got.GetAnnotations()[UserAnnotation] != "" || len(got.GetAnnotations()) != 1 {
		t.Errorf("an empty user is kept: %v", got.GetAnnotations())
	}
	if SetUser(got, "eve"); User(got) != "eve" || got.GetAnnotations()["keep"] != "z" {
		t.Errorf("got %v", got.GetAnnotations())
	}
	if CommandLine(job) != "x" || CommandLine(got) != "" {
		t.Errorf("command lines: %q, %q", CommandLine(job), CommandLine(got))
	}
}

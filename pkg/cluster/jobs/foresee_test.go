package jobs

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
)

// A TrainJob without a JobSet has the members, the gang and the scheduler that its runtime and its patches give them; runtimes are read once.
func TestForesee(t *testing.T) {
	parse := func(text string) map[string]any {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	s := kubetest.New(t)
	s.Answer("GET /apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainingruntimes/r", 200, parse(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: r, namespace: team}
spec:
  mlPolicy: {numNodes: 3}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {schedulerName: gang-scheduler, containers: [{name: node, image: i}]}}}
`))
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	of := func(runtime string) *gang.Job {
		job, err := trainjob.Reader().Job(&unstructured.Unstructured{Object: parse(fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: llama, namespace: team, uid: t}
spec:
  runtimeRef: {kind: TrainingRuntime, name: %s}
  runtimePatches:
  - manager: gangctl.dev/submit
    trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {metadata: {labels: {scheduling.x-k8s.io/pod-group: llama}}}}}}]}}}
`, runtime))})
		if err != nil {
			t.Fatal(err)
		}
		return job
	}
	if kept, err := (Selection{Foresee: true}).read(of("r").Object); err != nil || kept.job.Object == nil {
		t.Fatalf("a list that needs no objects does not keep what a TrainJob is foreseen from: %v", err)
	}
	all := []*gang.Job{of("r"), of("r"), of("absent")}
	Foresee(t.Context(), client, all)
	for _, job := range all[:2] {
		key, ok := dialect.OfTemplate(job)
		if !ok || key.Name != "llama" || job.Total() != 3 || job.Made != nil || job.Roles[0].Template.Spec.SchedulerName != "gang-scheduler" {
			t.Errorf("%v: %d members: %+v", key, job.Total(), job.Roles)
		}
	}
	if all[2].Total() != 1 {
		t.Errorf("of a runtime that is not there: %+v", all[2].Roles)
	}
	n := 0
	for _, request := range s.Requests() {
		if strings.Contains(request, "trainingruntimes") {
			n++
		}
	}
	if n != 2 {
		t.Errorf("got %q", s.Requests())
	}
}

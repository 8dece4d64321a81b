package kueue

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// What Kueue writes into a job that it admits is forgotten, in each kind of job, and nothing else.
func TestForget(t *testing.T) {
	for name, tt := range map[string]struct{ before, after string }{
		"a Job": {
			"{parallelism: 2, template: {metadata: {labels: {kueue.x-k8s.io/podset: main, app: x}, annotations: {kueue.x-k8s.io/workload: job-a-1}}, spec: {nodeSelector: {pool: a}, tolerations: [{key: spot}], containers: [{name: c}]}}}",
			"{parallelism: 2, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c}]}}}",
		},
		"nothing but Kueue's": {
			"{template: {metadata: {labels: {kueue.x-k8s.io/podset: main}}, spec: {containers: [{name: c}]}}}",
			"{template: {spec: {containers: [{name: c}]}}}",
		},
		"a TFJob": {
			"{runPolicy: {}, tfReplicaSpecs: {Worker: {replicas: 2, template: {spec: {nodeSelector: {pool: a}}}}}}",
			"{runPolicy: {}, tfReplicaSpecs: {Worker: {replicas: 2, template: {spec: {}}}}}",
		},
		"a JobSet": {
			"{replicatedJobs: [{name: w, template: {metadata: {labels: {a: b}}, spec: {template: {spec: {schedulingGates: [{name: kueue.x-k8s.io/topology}]}}}}}]}",
			"{replicatedJobs: [{name: w, template: {metadata: {labels: {a: b}}, spec: {template: {spec: {}}}}}]}",
		},
		"a TrainJob": {
			"{runtimeRef: {name: torch}, runtimePatches: [{manager: kueue.x-k8s.io/manager, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node}]}}}}, {manager: gangctl.dev}]}",
			"{runtimeRef: {name: torch}, runtimePatches: [{manager: gangctl.dev}]}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := map[string]any{}, map[string]any{}
			for text, to := range map[string]*map[string]any{tt.before: &got, tt.after: &want} {
				if err := yaml.Unmarshal([]byte(text), to); err != nil {
					t.Fatal(err)
				}
			}
			if Forget(got); !cmp.Equal(want, got) {
				t.Error(cmp.Diff(want, got))
			}
		})
	}
}

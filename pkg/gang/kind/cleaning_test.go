package kind

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Pods that do not end by themselves stay with the defaults of today, and not with those of the first operators.
func TestStays(t *testing.T) {
	type fields = map[string]any
	for name, tt := range map[string]struct {
		kind, version string
		policy, spec  fields // of spec.runPolicy, and of spec
		stays         string
		leftFor       time.Duration
	}{
		"TFJob":                                    {kind: "TFJob", version: "v1", policy: fields{}, stays: "PS"},
		"TFJob without a run policy":               {kind: "TFJob", version: "v1", stays: "PS"},
		"TFJob that cleans":                        {kind: "TFJob", version: "v1", policy: fields{"cleanPodPolicy": "Running"}},
		"TFJob that cleans all":                    {kind: "TFJob", version: "v1", policy: fields{"cleanPodPolicy": "All"}},
		"TFJob with a time to live":                {kind: "TFJob", version: "v1", policy: fields{"ttlSecondsAfterFinished": int64(60)}, stays: "PS", leftFor: time.Minute},
		"TFJob that is deleted at once":            {kind: "TFJob", version: "v1", policy: fields{"ttlSecondsAfterFinished": int64(0)}},
		"TFJob with a time to live of nothing":     {kind: "TFJob", version: "v1", policy: fields{"ttlSecondsAfterFinished": nil}, stays: "PS"},
		"TFJob that cleans, with a time to live":   {kind: "TFJob", version: "v1", policy: fields{"cleanPodPolicy": "Running", "ttlSecondsAfterFinished": int64(60)}},
		"early TFJob":                              {kind: "TFJob", version: "v1beta2"},
		"early TFJob that leaves":                  {kind: "TFJob", version: "v1beta2", spec: fields{"cleanPodPolicy": "None"}, stays: "PS"},
		"MPIJob":                                   {kind: "MPIJob", version: "v2beta1", policy: fields{}, stays: "Worker"},
		"MPIJob that cleans":                       {kind: "MPIJob", version: "v2beta1", policy: fields{"cleanPodPolicy": "Running"}},
		"MPIJob with a time to live":               {kind: "MPIJob", version: "v2beta1", policy: fields{"ttlSecondsAfterFinished": int64(60)}, stays: "Worker"},
		"MPIJob of v1":                             {kind: "MPIJob", version: "v1", policy: fields{}, stays: "Worker"},
		"MPIJob of v1 that cleans by its spec":     {kind: "MPIJob", version: "v1", policy: fields{}, spec: fields{"cleanPodPolicy": "Running"}},
		"MPIJob of v1 with a time to live":         {kind: "MPIJob", version: "v1", policy: fields{"ttlSecondsAfterFinished": int64(60)}, stays: "Worker", leftFor: time.Minute},
		"PyTorchJob, whose pods end by themselves": {kind: "PyTorchJob", version: "v1", policy: fields{}},
	} {
		t.Run(name, func(t *testing.T) {
			containers := fields{"template": fields{"spec": fields{"containers": []any{fields{"name": "x"}}}}}
			spec := fields{}
			switch tt.kind {
			case "TFJob":
				spec["tfReplicaSpecs"] = fields{"PS": containers, "Worker": containers}
			case "MPIJob":
				spec["mpiReplicaSpecs"] = fields{"Launcher": containers, "Worker": containers}
			default:
				spec["pytorchReplicaSpecs"] = fields{"Master": containers, "Worker": containers}
			}
			for key, value := range tt.spec {
				spec[key] = value
			}
			if tt.policy != nil {
				spec["runPolicy"] = tt.policy
			}
			u := &unstructured.Unstructured{Object: fields{"apiVersion": "kubeflow.org/" + tt.version, "kind": tt.kind, "spec": spec}}
			reader, ok := ByKind(u.GroupVersionKind().GroupKind())
			if !ok {
				t.Fatal("no reader")
			}
			job, err := reader.Read(u)
			if err != nil {
				t.Fatal(err)
			}
			if got := staying(job); got != tt.stays || job.LeftFor != tt.leftFor {
				t.Errorf("stays %q, left for %s, want %q and %s", got, job.LeftFor, tt.stays, tt.leftFor)
			}
		})
	}
}

func staying(job gang.Job) (role string) {
	for _, r := range job.Roles {
		if r.Stays {
			role += r.Name
		}
	}
	return role
}

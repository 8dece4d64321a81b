package render

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
)

const trainFile = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: llama, namespace: research}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 4, resourcesPerNode: {limits: {nvidia.com/gpu: 8}}}
`

// torch is a runtime. %POLICY% and %POD% are for what it has besides.
const torch = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch-distributed, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
%POLICY%
  template:
%METADATA%
    spec:
      replicatedJobs:
%FIRST%
      - name: node
%DEPENDS%
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
%POD%
                containers: [{name: node, image: i}]
`

func torchRuntime(t *testing.T, parts ...string) *unstructured.Unstructured {
	text := torch
	for i := 0; i+1 < len(parts); i += 2 {
		text = strings.ReplaceAll(text, "%"+parts[i]+"%", parts[i+1])
	}
	for _, part := range []string{"POLICY", "METADATA", "FIRST", "DEPENDS", "POD"} {
		text = strings.ReplaceAll(text, "%"+part+"%\n", "")
	}
	return object(t, text)
}

const (
	initializer = "      - {name: data, template: {spec: {template: {spec: {containers: [{name: data, image: i}]}}}}}"
	afterData   = "        dependsOn: [{name: data, status: Complete}]"
	ready       = "        dependsOn: [{name: data, status: Ready}]"
	policy      = "  podGroupPolicy: {coscheduling: {}}"
	scheduled   = "                schedulerName: gang-scheduler"
)

// A TrainJob becomes a gang whatever its runtime has, or the reason why not is reported.
func TestCompleteTrainJob(t *testing.T) {
	type result struct {
		runtime         string // what the TrainJob refers to
		patched, copied bool
		group           int64 // its minimum, or those of all together; 0 for no group of ours
		notes, refused  string
		cause           error
		contradicted    string
	}
	itsName := torchRuntime(t)
	itsName.SetKind("TrainingRuntime")
	itsName.SetNamespace("research")
	itsName.SetName("llama")
	another := torchRuntime(t, "POD", scheduled)
	another.SetKind("TrainingRuntime")
	another.SetName("alpaca")
	another.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: "TrainJob", Name: "alpaca", UID: "u"}})
	for name, tt := range map[string]struct {
		runtime *unstructured.Unstructured
		spec    FileSpec
		want    result
	}{
		"the runtime of another job":     {another, fileSpec(), result{runtime: "TrainingRuntime/llama", patched: true, copied: true, group: 4, notes: "TrainingRuntime llama of its own is a copy of alpaca, which goes when TrainJob alpaca goes"}},
		"a runtime of the job's name":    {itsName, fileSpec(), result{runtime: "TrainingRuntime/llama-gang", patched: true, copied: true, group: 4, notes: "TrainingRuntime llama-gang of its own is a copy of llama with schedulerName"}},
		"a rack for each job":            {torchRuntime(t, "METADATA", "    metadata: {annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack}}"), fileSpec(), result{cause: ErrSequential, refused: "only when its first has a node"}},
		"a runtime that ships":           {torchRuntime(t), fileSpec(), result{runtime: "TrainingRuntime/llama", patched: true, copied: true, group: 4, notes: "a copy of torch-distributed with schedulerName"}},
		"one that names the scheduler":   {torchRuntime(t, "POD", scheduled), fileSpec(), result{runtime: "/torch-distributed", patched: true, group: 4}},
		"initializers are no members":    {torchRuntime(t, "FIRST", initializer, "DEPENDS", afterData), fileSpec(), result{runtime: "TrainingRuntime/llama", patched: true, copied: true, group: 4}},
		"a job that is made when ready":  {torchRuntime(t, "FIRST", initializer, "DEPENDS", ready), fileSpec(), result{runtime: "TrainingRuntime/llama", patched: true, copied: true, group: 5, notes: "node starts only after data (dependsOn): each of them is a gang of its own"}},
		"no gang, on request":            {torchRuntime(t), fileSpec(func(s *FileSpec) { s.Dialect, s.DialectSet, s.Scheduler = gang.None, true, "" }), result{runtime: "/torch-distributed"}},
		"a minimum":                      {torchRuntime(t, "POD", scheduled), fileSpec(func(s *FileSpec) { s.MinAvailable = 3 }), result{runtime: "/torch-distributed", patched: true, group: 3}},
		"a runtime that makes the group": {torchRuntime(t, "POLICY", policy), fileSpec(), result{runtime: "TrainingRuntime/llama", copied: true, notes: "no other one is added"}},
		"one that does all":              {torchRuntime(t, "POLICY", policy, "POD", scheduled), fileSpec(), result{runtime: "/torch-distributed", notes: "no other one is added"}},
		"its group waits for itself":     {torchRuntime(t, "POLICY", policy, "FIRST", initializer, "DEPENDS", afterData), fileSpec(), result{cause: ErrSequential, refused: "waits for data"}},
		"its group waits, too":           {torchRuntime(t, "POLICY", policy, "FIRST", initializer, "DEPENDS", ready), fileSpec(), result{cause: ErrSequential, refused: "node starts only after data"}},
		"its group is all members":       {torchRuntime(t, "POLICY", policy), fileSpec(func(s *FileSpec) { s.MinAvailable = 3 }), result{contradicted: "min-available"}},
		"its group is not served":        {torchRuntime(t, "POLICY", policy), fileSpec(func(s *FileSpec) { s.Serves = func(string) bool { return false } }), result{cause: ErrNoPods, refused: "in dialect scheduler-plugins, and the cluster serves none"}},
		"its group is of a dialect":      {torchRuntime(t, "POLICY", policy), fileSpec(func(s *FileSpec) { s.Dialect, s.DialectSet = gang.Volcano, true }), result{contradicted: "dialect"}},
		"a runtime that is not known":    {nil, fileSpec(), result{runtime: "/torch-distributed", patched: true, group: 4, notes: "its runtime was not read"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := object(t, trainFile)
			c, err := CompleteTrainJob(before, tt.runtime, nil, tt.spec)
			var contradiction *ContradictionError
			switch {
			case tt.want.contradicted != "":
				if !errors.As(err, &contradiction) || contradiction.Flag != tt.want.contradicted {
					t.Fatalf("got %v", err)
				}
				return
			case tt.want.cause != nil:
				if !errors.Is(err, tt.want.cause) || !strings.Contains(err.Error(), tt.want.refused) {
					t.Fatalf("got %v", err)
				}
				return
			case err != nil:
				t.Fatal(err)
			}
			kind, _, _ := unstructured.NestedString(c.Job.Object, "spec", "runtimeRef", "kind")
			runtime, _, _ := unstructured.NestedString(c.Job.Object, "spec", "runtimeRef", "name")
			patches, _, _ := unstructured.NestedSlice(c.Job.Object, "spec", "runtimePatches")
			o := c.Objects()
			got := result{runtime: kind + "/" + runtime, patched: len(patches) == 1, copied: len(o.Needed) == 1}
			for _, group := range c.PodGroups {
				n, _, _ := unstructured.NestedInt64(group.Object, "spec", "minMember")
				got.group += n
			}
			notes := strings.Join(c.Notes, "; ")
			if got.runtime != tt.want.runtime || got.patched != tt.want.patched || got.copied != tt.want.copied || got.group != tt.want.group || !strings.Contains(notes, tt.want.notes) || tt.want.notes == "" && notes != "" && !got.copied {
				t.Errorf("got %+v, %q", got, notes)
			}
			if (o.Trial != nil) != got.copied || o.Trial != nil && strings.Contains(string(mustJSON(t, o.Trial)), `"kind":"TrainingRuntime"`) {
				t.Errorf("it is checked as %v", o.Trial)
			}
			if len(o.All()) != len(o.Needed)+1+len(o.Owned) || got.copied && o.All()[0].GetKind() != "TrainingRuntime" {
				t.Errorf("created in the order %v", o.All())
			}
			if label := `"scheduling.x-k8s.io/pod-group":"llama`; tt.want.group > 0 && (!strings.Contains(string(mustJSON(t, c.Job)), label) || !strings.Contains(string(mustJSON(t, o.Made)), label)) {
				t.Errorf("no label in %s, or in %s", mustJSON(t, c.Job), mustJSON(t, o.Made))
			}
			if scheduler := `"schedulerName":"gang-scheduler"`; got.copied && !strings.Contains(string(mustJSON(t, o.Needed[0])), scheduler) {
				t.Errorf("no scheduler in %s", mustJSON(t, o.Needed[0]))
			}
			if _, found, _ := unstructured.NestedSlice(before.Object, "spec", "runtimePatches"); found {
				t.Error("the object given was changed")
			}
		})
	}
}

// The API server refuses two patches of one manager: a job that has one already, as one that is read from a cluster, keeps it, with what is added.
func TestCompleteTrainJobTwice(t *testing.T) {
	once, err := CompleteTrainJob(object(t, trainFile), torchRuntime(t, "POD", scheduled), nil, fileSpec())
	if err != nil {
		t.Fatal(err)
	}
	job := once.Job
	patches, _, _ := unstructured.NestedSlice(job.Object, "spec", "runtimePatches")
	own := patches[0].(map[string]any)
	own["time"] = "2026-11-21T14:00:00Z"
	jobs, _, _ := unstructured.NestedSlice(own, "trainingRuntimeSpec", "template", "spec", "replicatedJobs")
	pods := map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "vision"}}} // the gang was taken out
	jobs[0].(map[string]any)["template"] = map[string]any{"spec": map[string]any{"template": pods}}
	own["trainingRuntimeSpec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"replicatedJobs": jobs}}}
	patches = []any{map[string]any{"manager": "another"}, own}
	set(job, patches, "spec", "runtimePatches")
	job.SetName("llama-2")
	twice, err := CompleteTrainJob(job, torchRuntime(t, "POD", scheduled), nil, fileSpec())
	if err != nil {
		t.Fatal(err)
	}
	patches, _, _ = unstructured.NestedSlice(twice.Job.Object, "spec", "runtimePatches")
	text := string(mustJSON(t, twice.Job))
	if len(patches) != 2 || !strings.Contains(text, `"labels":{"scheduling.x-k8s.io/pod-group":"llama-2","team":"vision"}`) || strings.Contains(text, "2026") {
		t.Errorf("got %s", text)
	}
}

func mustJSON(t *testing.T, u *unstructured.Unstructured) []byte {
	t.Helper()
	text, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

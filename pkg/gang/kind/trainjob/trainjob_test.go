package trainjob

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

const header = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: llama, namespace: team, uid: t}\n"

func train(t *testing.T, rest string) *unstructured.Unstructured { return parse(t, header+rest) }

// step is a replicated job of a runtime.
func step(name, ancestor, more string) string {
	return fmt.Sprintf("      - {name: %s, %stemplate: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: %s}}, spec: {template: {spec: {containers: [{name: node, image: theirs}]}}}}}\n", name, more, ancestor)
}

func runtimeOf(t *testing.T, policy string, steps ...string) *unstructured.Unstructured {
	return parse(t, "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: ClusterTrainingRuntime\nmetadata: {name: r}\nspec:\n"+policy+"  template:\n    spec:\n      replicatedJobs:\n"+strings.Join(steps, ""))
}

func TestRead(t *testing.T) {
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		text  string
		check func(gang.Job) bool
	}{
		"a runtime alone":  {"spec: {runtimeRef: {name: r}}", func(j gang.Job) bool { return j.Total() == 1 && len(j.Problems) == 0 && !j.Seen }},
		"no runtime":       {"spec: {}", func(j gang.Job) bool { return len(j.Problems) == 1 }},
		"nodes":            {"spec: {runtimeRef: {name: r}, trainer: {numNodes: 4}}", func(j gang.Job) bool { return j.Total() == 4 && j.Roles[0].Name == "node" }},
		"suspended":        {"spec: {runtimeRef: {name: r}, suspend: true}", func(j gang.Job) bool { return j.Suspended && j.Started.IsZero() }},
		"a deadline":       {"spec: {runtimeRef: {name: r}, activeDeadlineSeconds: 60}", func(j gang.Job) bool { return j.Deadline == time.Minute }},
		"a negative count": {"spec: {runtimeRef: {name: r}, trainer: {numNodes: -1}}", func(j gang.Job) bool { return len(j.Problems) == 1 && j.Roles[0].PartSize == 0 }},
		"resumed": {"spec: {runtimeRef: {name: r}}\nstatus: {conditions: [{type: Suspended, status: 'False', lastTransitionTime: '2026-11-21T14:00:00Z'}]}",
			func(j gang.Job) bool { return j.Started.Equal(at) && j.Seen }},
		"complete": {"spec: {runtimeRef: {name: r}}\nstatus: {conditions: [{type: Complete, status: 'True', reason: R}]}", func(j gang.Job) bool { return j.End != nil && !j.End.Failed && j.End.Reason == "R" }},
		"failed":   {"spec: {runtimeRef: {name: r}}\nstatus: {conditions: [{type: Failed, status: 'True'}]}", func(j gang.Job) bool { return j.End != nil && j.End.Failed }},
		"progress": {"spec: {runtimeRef: {name: r}}\nstatus: {trainerStatus: {progressPercentage: 42, estimatedRemainingSeconds: 60, lastUpdatedTime: '2026-11-21T14:00:00Z'}}",
			func(j gang.Job) bool { return *j.Progress.Percent == 42 && j.Progress.End.Equal(at.Add(time.Minute)) }},
		"an end of no date": {"spec: {runtimeRef: {name: r}}\nstatus: {trainerStatus: {progressPercentage: 999, estimatedRemainingSeconds: 60}}",
			func(j gang.Job) bool { return *j.Progress.Percent == 100 && j.Progress.End.IsZero() }},
	} {
		job, err := Reader().Job(train(t, tt.text))
		if err != nil || !tt.check(*job) {
			t.Errorf("%s: %+v, %v", name, job, err)
		}
	}
	if _, err := Reader().Job(train(t, "spec: {trainer: {numNodes: many}}")); err == nil {
		t.Error("a text is a number")
	}
}

func roles(j *gang.Job) string {
	var all []string
	for _, r := range j.Roles {
		c := r.Template.Spec.Containers[0]
		gpus := c.Resources.Limits["nvidia.com/gpu"]
		all = append(all, fmt.Sprintf("%s=%d %s %s %s", r.Name, r.Replicas, c.Image, gpus.String(), strings.Join(c.Command, " ")))
	}
	return strings.Join(all, ", ")
}

// What the controller will make is known before it does: the numbers, the requests and the images of the pods.
func TestExpected(t *testing.T) {
	const job = "spec: {runtimeRef: {name: r}, trainer: {numNodes: 4, image: mine, command: [a, b], resourcesPerNode: {limits: {nvidia.com/gpu: 8}}}}"
	for name, tt := range map[string]struct{ policy, job, steps, want, sequential string }{
		"the runtime's number":  {"  mlPolicy: {numNodes: 3, torch: {}}\n", "spec: {runtimeRef: {name: r}}", step("node", "trainer", ""), "node=3 theirs 0 ", ""},
		"the job's":             {"  mlPolicy: {numNodes: 3, torch: {}}\n", job, step("node", "trainer", ""), "node=4 mine 8 a b", ""},
		"no policy of learning": {"", job, step("node", "trainer", ""), "node=1 theirs 0 ", ""},
		"after an initializer":  {"  mlPolicy: {torch: {}}\n", job, step("model-initializer", "model-initializer", "") + step("node", "trainer", "dependsOn: [{name: model-initializer, status: Complete}], "), "node=4 mine 8 a b", ""},
		"a launcher is a node":  {"  mlPolicy: {mpi: {runLauncherAsNode: true}}\n", job, step("node", "none", "") + step("launcher", "trainer", ""), "node=3 theirs 8 , launcher=1 mine 8 a b", ""},
		"a launcher that waits": {"  mlPolicy: {mpi: {}}\n", job, step("node", "none", "") + step("launcher", "trainer", "dependsOn: [{name: node, status: Ready}], "), "node=4 theirs 0 , launcher=1 mine 8 a b", "launcher starts only after node"},
	} {
		set, err := Expected(train(t, tt.job), runtimeOf(t, tt.policy, tt.steps))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		made, err := jobset.Reader().Job(set)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		whole, err := Reader().Job(train(t, tt.job))
		if err != nil {
			t.Fatal(err)
		}
		Reader().Join(whole, made)
		if roles(whole) != tt.want || !strings.Contains(whole.Sequential, tt.sequential) || (tt.sequential == "") != (whole.Sequential == "") {
			t.Errorf("%s: %s, %q", name, roles(whole), whole.Sequential)
		}
		if first := whole.Before; (first != "") != strings.Contains(tt.steps, "initializer") {
			t.Errorf("%s: %q", name, first)
		}
	}
}

// Patches are merged by the names of items, and what the runtime has else stays.
func TestExpectedPatches(t *testing.T) {
	set, err := Expected(train(t, `
spec:
  runtimeRef: {name: r}
  runtimePatches:
  - {manager: a.io/a, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {metadata: {labels: {x: set}}, spec: {nodeSelector: {pool: a}, containers: [{name: node, env: []}]}}}}}]}}}}
  - {manager: b.io/b, trainingRuntimeSpec: {template: {metadata: {annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack}}}}}
`), runtimeOf(t, "  mlPolicy: {}\n", step("node", "trainer", "")))
	if err != nil {
		t.Fatal(err)
	}
	job, err := jobset.Reader().Job(set)
	if err != nil {
		t.Fatal(err)
	}
	pod := job.Roles[0].Template
	if pod.Labels["x"] != "set" || pod.Spec.NodeSelector["pool"] != "a" || pod.Spec.Containers[0].Image != "theirs" {
		t.Errorf("got %+v", pod)
	}
	if key := "alpha.jobset.sigs.k8s.io/exclusive-topology"; set.GetAnnotations()[key] != "rack" {
		t.Errorf("the JobSet has the annotations %v", set.GetAnnotations())
	}
}

// A patch for a replicated job that the runtime has not is refused, as Trainer's webhook does; of a runtime that was not read nothing is known.
func TestPatchesOfWhatIsNot(t *testing.T) {
	job := train(t, "spec: {runtimeRef: {name: r}, runtimePatches: [{manager: a.io/a, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: trainer, template: {}}]}}}}]}")
	runtime := runtimeOf(t, "  mlPolicy: {}\n", step("node", "trainer", ""))
	if _, err := Expected(job, runtime); err == nil || !strings.Contains(err.Error(), `spec.runtimePatches is about replicated job "trainer", and `) || !strings.HasSuffix(err.Error(), "has node") {
		t.Errorf("got %v", err)
	}
	if _, err := Expected(job, Assumed()); err != nil {
		t.Errorf("of a runtime that is not known: %v", err)
	}
}

// The members of a TrainJob are those of its JobSet, and the pods of another JobSet of the name are none of its.
func TestJoin(t *testing.T) {
	set, err := Expected(train(t, "spec: {runtimeRef: {name: r}, trainer: {numNodes: 2}}"), runtimeOf(t, "  mlPolicy: {}\n", step("node", "trainer", "")))
	if err != nil {
		t.Fatal(err)
	}
	set.SetUID("s")
	made, err := jobset.Reader().Job(set)
	if err != nil {
		t.Fatal(err)
	}
	job, err := Reader().Job(train(t, "spec: {runtimeRef: {name: r}}"))
	if err != nil {
		t.Fatal(err)
	}
	pod := func(uid string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "llama-node-0-1-abcde", Labels: map[string]string{
			"jobset.sigs.k8s.io/jobset-name": "llama", "jobset.sigs.k8s.io/jobset-uid": uid, "jobset.sigs.k8s.io/replicatedjob-name": "node",
			"jobset.sigs.k8s.io/job-index": "0", "batch.kubernetes.io/job-completion-index": "1",
		}, OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "llama-node-0", UID: "j", Controller: new(true)}}}}
	}
	if !job.Owns(pod("x")) {
		t.Error("a JobSet that is not known has no pods")
	}
	volcano := pod("x")
	if volcano.OwnerReferences[0].APIVersion = "batch.volcano.sh/v1alpha1"; job.Owns(volcano) {
		t.Error("a Job of Volcano is no part of a JobSet")
	}
	Reader().Join(job, made)
	if !job.Owns(pod("s")) || job.Owns(pod("x")) {
		t.Error("the pods are not those of the JobSet")
	}
	members, _ := gang.Assemble(job, []*corev1.Pod{pod("s")}, nil)
	if len(members) != 2 || members[0].Pod != nil || members[1].Pod == nil || members[1].Name() != "node-1" {
		t.Errorf("members are %+v", members)
	}
}

// Initializers are waited for until they have succeeded.
func TestBefore(t *testing.T) {
	steps := []string{step("dataset-initializer", "dataset-initializer", ""), step("node", "trainer", "dependsOn: [{name: dataset-initializer, status: Complete}], ")}
	for succeeded, want := range map[int64]string{0: "dataset-initializer of it must complete first", 1: ""} {
		set, err := Expected(train(t, "spec: {runtimeRef: {name: r}}"), runtimeOf(t, "  mlPolicy: {}\n", steps...))
		if err != nil {
			t.Fatal(err)
		}
		set.Object["status"] = map[string]any{"replicatedJobsStatus": []any{map[string]any{"name": "dataset-initializer", "succeeded": succeeded}}}
		made, err := jobset.Reader().Job(set)
		if err != nil {
			t.Fatal(err)
		}
		job, _ := Reader().Job(train(t, "spec: {runtimeRef: {name: r}}"))
		Reader().Join(job, made)
		if job.Before != want || len(job.Roles) != 1 || job.Sequential != "" {
			t.Errorf("%d: %q, %d roles, %q", succeeded, job.Before, len(job.Roles), job.Sequential)
		}
	}
}

// A patch keeps the time of its first try, by which the job that is stored is compared with the one that was tried. One that another client,
// such as Kueue, adds whenever a job is posted is not repeated: the API server refuses two of a manager.
func TestKeepTimes(t *testing.T) {
	const at = "2026-11-21T14:00:00Z"
	job := train(t, "spec: {runtimeRef: {name: r}, runtimePatches: [{manager: a.io/a}]}")
	if err := KeepTimes(job, train(t, "spec: {runtimeRef: {name: r}, runtimePatches: [{manager: a.io/a, time: '"+at+"'}, {manager: kueue.x-k8s.io/manager}]}")); err != nil {
		t.Fatal(err)
	}
	patches, _, _ := unstructured.NestedSlice(job.Object, "spec", "runtimePatches")
	if len(patches) != 1 || patches[0].(map[string]any)["time"] != at {
		t.Errorf("got %v", patches)
	}
}

func TestRuntimes(t *testing.T) {
	for text, want := range map[string]string{
		"{name: r}": "ClusterTrainingRuntime/r", "{name: r, kind: TrainingRuntime}": "TrainingRuntime/r", "{name: r, apiGroup: example.com}": "no runtime", "{name: r, kind: Pod}": "no runtime",
	} {
		kind, name, err := RuntimeOf(train(t, "spec: {runtimeRef: "+text+"}"))
		if got := kind + "/" + name; got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for text, want := range map[string]gang.Dialect{"": "", "  podGroupPolicy: {coscheduling: {}}\n": gang.SchedulerPlugins, "  podGroupPolicy: {volcano: {}}\n": gang.Volcano} {
		if got := GroupOf(runtimeOf(t, text, step("node", "trainer", ""))); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

package suspend

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

const (
	jobsPath = "/apis/kubeflow.org/v1/namespaces/research/tfjobs"
	podsPath = "/api/v1/namespaces/research/pods"
)

// run runs `suspend` or `resume`.
func run(ctx context.Context, s *kubetest.Server, args ...string) (stdout, stderr string, failed *failure.Error) {
	f, streams := commandtest.Factory("research", time.Time{}, 0, s.Client)
	cmd := NewCommand(f, nil)
	if args[0] == "resume" {
		cmd = NewResumeCommand(f, nil)
	}
	return commandtest.Run(ctx, cmd, streams, args[1:]...)
}

type change func(*kubeflowv1.TFJob)

func asIs(*kubeflowv1.TFJob) {}

func set(suspend bool) change {
	return func(j *kubeflowv1.TFJob) { j.Spec.RunPolicy.Suspend = &suspend }
}

func preempted(j *kubeflowv1.TFJob) {
	set(true)(j)
	j.Labels = map[string]string{"gangctl.dev/suspended-by": "gang-scheduler", "team": "nlp"}
	j.Annotations = map[string]string{"gangctl.dev/suspended-because": "it made room for mistral"}
}

// keep serves a job; before and after a patch it is as the changes make it.
func keep(s *kubetest.Server, name string, before, after change) {
	stored, patched := kubetest.Job("research", name, 2), kubetest.Job("research", name, 2)
	before(stored)
	after(patched)
	s.Answer("GET "+jobsPath+"/"+name, 200, stored)
	s.Answer("PATCH "+jobsPath+"/"+name, 200, patched)
}

func TestChange(t *testing.T) {
	tests := []struct {
		name, verb    string
		before, after change
		stdout, patch string
		note          string
	}{
		{"suspend", "suspend", asIs, set(true), "suspended", `{"metadata":{"uid":"research-llama"},"spec":{"runPolicy":{"suspend":true}}}`, ""},
		{"resume", "resume", set(true), set(false), "resumed", `{"metadata":{"uid":"research-llama"},"spec":{"runPolicy":{"suspend":false}}}`, ""},
		{"resume what the scheduler suspended", "resume", preempted, asIs, "resumed", `{"metadata":{"annotations":{"gangctl.dev/suspended-because":null},` +
			`"labels":{"gangctl.dev/suspended-by":null},"uid":"research-llama"},"spec":{"runPolicy":{"suspend":false}}}`, ""},
		{"suspended already", "suspend", set(true), asIs, "unchanged", "", ""},
		{"never suspended", "resume", asIs, asIs, "unchanged", "", ""},
		{"the scheduler was first", "suspend", preempted, asIs, "unchanged", "",
			"note: gang-scheduler has suspended llama, and resumes it itself: it made room for mistral\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := kubetest.New(t)
			keep(s, "llama", tt.before, tt.after)
			s.Answer("GET "+podsPath, 200, kubetest.PodList())
			stdout, stderr, failed := run(t.Context(), s, tt.verb, "llama")
			if failed != nil || stdout != "tfjob.kubeflow.org/llama "+tt.stdout+"\n" || stderr != tt.note {
				t.Fatalf("got %+v, %q, %q", failed, stdout, stderr)
			}
			patch := ""
			if n := len(s.Requests()); n > 1 {
				patch = s.Body(n - 1)
			}
			if diff := cmp.Diff(tt.patch, patch); diff != "" {
				t.Errorf("patch: -want +got\n%s", diff)
			}
		})
	}
}

// condition adds a condition of the job's operator.
func condition(kind kubeflowv1.JobConditionType) change {
	return func(j *kubeflowv1.TFJob) {
		j.Status.Conditions = []kubeflowv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue}}
	}
}

func TestRefusals(t *testing.T) {
	queued := func(j *kubeflowv1.TFJob) { j.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "gpus"} }
	elsewhere := func(j *kubeflowv1.TFJob) {
		by := "kueue.x-k8s.io/multikueue"
		j.Spec.RunPolicy.ManagedBy = &by
	}
	resizing := func(j *kubeflowv1.TFJob) {
		set(true)(j)
		j.Annotations = map[string]string{"gangctl.dev/resize": "{}"}
	}
	going := func(j *kubeflowv1.TFJob) { j.DeletionTimestamp = &kubetest.Created }
	tests := []struct {
		name, verb    string
		before, after change
		requests      int
		message, hint string
	}{
		{"Kueue, suspend", "suspend", queued, asIs, 1, "Kueue decides when it runs, by its queue gpus", "set spec.active: false of its Workload"},
		{"Kueue, resume", "resume", queued, asIs, 1, "Kueue decides when it runs, by its queue gpus", "set spec.active: true of its Workload"},
		{"in the middle of a change", "resume", resizing, asIs, 1, "it is in the middle of a change: as it is, it may not start", "gangctl resize tfjob/llama -n research --abort"},
		{"another controller", "suspend", elsewhere, asIs, 1, "it is managed by kueue.x-k8s.io/multikueue, not by its own operator (spec.runPolicy.managedBy)", ""},
		{"being deleted", "suspend", going, asIs, 1, "it is being deleted", ""},
		{"succeeded", "suspend", condition(kubeflowv1.JobSucceeded), asIs, 1, "it has finished: Succeeded", "gangctl get tfjob/llama -n research"},
		{"failed", "resume", condition(kubeflowv1.JobFailed), asIs, 1, "it has finished: Failed", "gangctl get tfjob/llama -n research"},
		{"no such field", "suspend", asIs, asIs, 2, "the cluster does not keep spec.runPolicy.suspend, and nothing is changed: its Training Operator is older than 1.7", "gangctl delete tfjob/llama"},
		{"set back", "resume", set(true), set(true), 3, "the cluster keeps spec.runPolicy.suspend: true, whatever is requested: something in it, such as Kueue, decides on the job", "mutatingwebhook"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := kubetest.New(t)
			keep(s, "llama", tt.before, tt.after)
			s.Answer("GET "+podsPath, 200, kubetest.PodList())
			stdout, _, failed := run(t.Context(), s, tt.verb, "llama")
			if want := tt.verb + " TFJob research/llama: " + tt.message; failed == nil || failed.Message != want || failed.Code != failure.CodeError || stdout != "" {
				t.Fatalf("got %+v, %q; want %s", failed, stdout, want)
			}
			if !strings.Contains(failed.Hint, tt.hint) || len(s.AboutTFJobs()) != tt.requests {
				t.Errorf("hint %q, requests %q", failed.Hint, s.Requests())
			}
		})
	}
}

// A RayJob is suspended by itself, its RayCluster through it, and one that KubeRay would not suspend not at all.
func TestRay(t *testing.T) {
	pods := map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "ray"}}}}}
	job := func(shutdown bool) map[string]any {
		return map[string]any{"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": map[string]any{"namespace": "research", "name": "llama", "uid": "u"},
			"spec": map[string]any{"shutdownAfterJobFinishes": shutdown, "rayClusterSpec": map[string]any{"headGroupSpec": pods}}}
	}
	const path = "/apis/ray.io/v1/namespaces/research/rayjobs/llama"
	s := kubetest.New(t)
	s.Answer("GET "+path, 200, job(false))
	_, _, failed := run(t.Context(), s, "suspend", "rayjob/llama")
	if failed == nil || failed.Message != "suspend RayJob research/llama: KubeRay suspends no RayJob without shutdownAfterJobFinishes: true" || !strings.Contains(failed.Hint, "gangctl delete rayjob/llama -n research") {
		t.Errorf("got %+v", failed)
	}
	s = kubetest.New(t)
	s.Answer("GET "+path, 200, job(true))
	suspended := job(true)
	suspended["spec"].(map[string]any)["suspend"] = true
	s.Answer("PATCH "+path, 200, suspended)
	if stdout, _, failed := run(t.Context(), s, "suspend", "ray/llama"); failed != nil || stdout != "rayjob.ray.io/llama suspended\n" {
		t.Errorf("got %q, %v", stdout, failed)
	}
	s = kubetest.New(t)
	s.Answer("GET /apis/ray.io/v1/namespaces/research/rayclusters/llama-x7k2p", 200, map[string]any{"apiVersion": "ray.io/v1", "kind": "RayCluster",
		"metadata": map[string]any{"namespace": "research", "name": "llama-x7k2p", "uid": "c", "ownerReferences": []any{map[string]any{"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "llama", "uid": "u", "controller": true}}},
		"spec":     map[string]any{"headGroupSpec": pods}})
	_, _, failed = run(t.Context(), s, "suspend", "raycluster/llama-x7k2p")
	if failed == nil || failed.Message != "suspend RayCluster research/llama-x7k2p: RayJob llama made it, and decides whether it runs" || failed.Hint != "suspend that: gangctl suspend rayjob/llama -n research" {
		t.Errorf("got %+v", failed)
	}
}

// A Job of Volcano has no field that suspends it.
func TestVolcanoJob(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET /apis/batch.volcano.sh/v1alpha1/namespaces/research/jobs/llama", 200, map[string]any{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": map[string]any{"namespace": "research", "name": "llama", "uid": "u"},
		"spec": map[string]any{"tasks": []any{map[string]any{"name": "worker", "replicas": 2}}}})
	_, _, failed := run(t.Context(), s, "suspend", "vcjob/llama")
	if failed == nil || failed.Message != "suspend Job research/llama: a Volcano Job has no field to suspend it: Volcano's controller takes a command for that" ||
		failed.Hint != "vcctl job suspend --namespace research --name llama" {
		t.Errorf("got %+v", failed)
	}
}

// Every name is tried, once, and the failures are reported together.
// A JobSet is suspended by its own field, unless it was made of something that would take that back.
func TestJobSet(t *testing.T) {
	object := func(suspended bool, owners ...any) map[string]any {
		template := map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main"}}}}}}
		return map[string]any{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
			"metadata": map[string]any{"namespace": "research", "name": "llama", "uid": "u", "ownerReferences": owners},
			"spec":     map[string]any{"suspend": suspended, "managedBy": "jobset.sigs.k8s.io/jobset-controller", "replicatedJobs": []any{map[string]any{"name": "workers", "template": template}}}}
	}
	const path = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/research/jobsets/llama"
	s := kubetest.New(t)
	s.Answer("GET "+path, 200, object(false))
	s.Answer("PATCH "+path, 200, object(true))
	stdout, _, failed := run(t.Context(), s, "suspend", "jobset/llama")
	if failed != nil || stdout != "jobset.jobset.x-k8s.io/llama suspended\n" || s.Body(len(s.Requests())-1) != `{"metadata":{"uid":"u"},"spec":{"suspend":true}}` {
		t.Errorf("got %q, %v, %v", stdout, failed, s.Requests())
	}
	s = kubetest.New(t)
	s.Answer("GET "+path, 200, object(false, map[string]any{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "llama", "uid": "t", "controller": true}))
	_, _, failed = run(t.Context(), s, "suspend", "jobset/llama")
	if failed == nil || failed.Message != "suspend JobSet research/llama: TrainJob llama made it, and decides whether it runs" ||
		failed.Hint != "suspend that: gangctl suspend trainjob/llama -n research" {
		t.Errorf("got %+v", failed)
	}
}

func TestEachIsTried(t *testing.T) {
	s := kubetest.New(t)
	keep(s, "c", asIs, set(true))
	keep(s, "d", asIs, set(true))
	s.Answer("GET "+jobsPath, 200, kubetest.JobList("", kubetest.Job("research", "a-2", 1)))
	s.Refuse("GET "+jobsPath+"/a", 404, metav1.StatusReasonNotFound, "no", &metav1.StatusDetails{Name: "a"})
	s.Answer("GET "+jobsPath+"/b", 200, kubetest.Job("research", "b", 1))
	s.Refuse("PATCH "+jobsPath+"/b", 403, metav1.StatusReasonForbidden, `User "bob" cannot patch resource "tfjobs" in API group`, nil)
	stdout, _, failed := run(t.Context(), s, "suspend", "d", "c", "b", "a", "c")
	if want := "tfjob.kubeflow.org/c suspended\ntfjob.kubeflow.org/d suspended\n"; stdout != want {
		t.Errorf("stdout: %q", stdout)
	}
	want := "get job research/a: not found\n" + `suspend TFJob research/b: User "bob" cannot patch resource "tfjobs" in API group`
	if failed == nil || failed.Message != want || failed.Code != failure.CodeError || failed.Hint != "did you mean a-2?" {
		t.Errorf("got %+v", failed)
	}
}

// A job that took the place of the one that was seen is left alone: the uid in the patch makes the server refuse.
func TestAnotherJobOfTheName(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath+"/llama", 200, kubetest.Job("research", "llama", 1))
	s.HandleFunc("PATCH "+jobsPath+"/llama", func(w http.ResponseWriter, r *http.Request) {
		var patch metav1.PartialObjectMetadata
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil || patch.UID != "research-llama" || patch.ResourceVersion != "" {
			t.Errorf("patch: %v, %+v", err, patch)
		}
		kubetest.Write(w, 409, kubetest.Status(409, metav1.StatusReasonConflict, "Precondition failed: UID in precondition: research-llama", &metav1.StatusDetails{Name: "llama"}))
	})
	stdout, _, failed := run(t.Context(), s, "suspend", "llama")
	if failed == nil || failed.Message != "suspend TFJob research/llama: Precondition failed: UID in precondition: research-llama" || stdout != "" {
		t.Errorf("got %+v, %q", failed, stdout)
	}
}

// What was not tried is reported.
func TestInterrupted(t *testing.T) {
	s := kubetest.New(t)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	_, _, failed := run(ctx, s, "resume", "b", "a")
	if failed == nil || failed.Message != "interrupted; not tried: a, b" || failed.Code != failure.CodeInterrupted || len(s.Requests()) != 0 {
		t.Errorf("got %+v, %q", failed, s.Requests())
	}
}

// A request that was interrupted may have had its effect.
func TestInterruptedRequest(t *testing.T) {
	s := kubetest.New(t)
	ctx, interrupt := context.WithCancel(t.Context())
	s.Answer("GET "+jobsPath+"/a", 200, kubetest.Job("research", "a", 2))
	s.HandleFunc("PATCH "+jobsPath+"/a", func(http.ResponseWriter, *http.Request) { interrupt(); <-ctx.Done() })
	_, _, failed := run(ctx, s, "suspend", "a", "b")
	if failed == nil || failed.Message != "suspend TFJob research/a: interrupted; it may have been done\ninterrupted; not tried: b" || failed.Code != failure.CodeInterrupted {
		t.Errorf("got %+v", failed)
	}
}

// The operator counts a pod that ends as one that failed: the job waits for those of an earlier life.
func TestPodsThatStillEnd(t *testing.T) {
	s := kubetest.New(t)
	keep(s, "llama", set(true), set(false))
	s.Answer("GET "+podsPath, 200, kubetest.PodList(kubetest.Pod("research", "llama", 0, "n1", "")))
	stdout, _, failed := run(t.Context(), s, "resume", "llama")
	if failed == nil || failed.Message != "resume TFJob research/llama: pods of it that still end: 1; resumed now it would fail" || stdout != "" || len(s.AboutTFJobs()) != 2 {
		t.Errorf("got %+v, %q, %q", failed, stdout, s.Requests())
	}
}

package submit

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

const (
	trainJobsPath       = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/research/trainjobs"
	runtimesPath        = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/research/trainingruntimes"
	clusterRuntimesPath = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"
)

// clusterRuntime is a runtime of one step, which names a scheduler if it is not empty.
func clusterRuntime(name, scheduler string) map[string]any {
	pod := map[string]any{"containers": []any{map[string]any{"name": "node", "image": "theirs"}}}
	if scheduler != "" {
		pod["schedulerName"] = scheduler
	}
	step := map[string]any{"name": "node", "template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
		"spec":     map[string]any{"template": map[string]any{"spec": pod}},
	}}
	return map[string]any{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": map[string]any{"name": name, "uid": "r"},
		"spec": map[string]any{"mlPolicy": map[string]any{"torch": map[string]any{}}, "template": map[string]any{"spec": map[string]any{"replicatedJobs": []any{step}}}}}
}

// trainServer is a cluster with Trainer and one runtime, whose webhook refuses a TrainJob before its own runtime is there, and any that one of refuse
// answers.
func trainServer(t *testing.T, scheduler string, refuse ...func(http.ResponseWriter, *http.Request) bool) *kubetest.Server {
	s := kubetest.New(t)
	s.Answer("GET "+clusterRuntimesPath+"/torch-distributed", 200, clusterRuntime("torch-distributed", scheduler))
	s.Answer("GET "+clusterRuntimesPath, 200, map[string]any{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntimeList",
		"metadata": map[string]any{}, "items": []any{clusterRuntime("torch-distributed", scheduler), clusterRuntime("jax-distributed", "")}})
	s.HandleFunc("POST "+trainJobsPath, func(w http.ResponseWriter, r *http.Request) {
		made := slices.ContainsFunc(writes(s), func(r string) bool { return strings.HasPrefix(r, "POST "+runtimesPath) })
		own := strings.Contains(s.Body(len(s.Requests())-1), `"kind":"TrainingRuntime"`)
		if own && !made {
			kubetest.Write(w, 422, kubetest.Status(422, metav1.StatusReasonInvalid, "specified trainingRuntime must be created before the TrainJob is created", nil))
			return
		}
		if !slices.ContainsFunc(refuse, func(answers func(http.ResponseWriter, *http.Request) bool) bool { return answers(w, r) }) {
			echo("uid-1")(w, r)
		}
	})
	s.HandleFunc("POST "+groupsPath, echo("uid-2"))
	return s
}

// train types `gangctl submit train llama`.
func train(t *testing.T, s *kubetest.Server, args ...string) (stdout, stderr string, failed *failure.Error) {
	t.Helper()
	return typeLine(t.Context(), s.Client, "", append([]string{"submit", "train", "llama", "--nodes", "4", "--gpus", "8", "--dialect", "scheduler-plugins"}, args...)...)
}

// writes are the requests that are no dry runs and change something.
func writes(s *kubetest.Server) []string {
	return slices.DeleteFunc(s.Requests(), func(r string) bool {
		return strings.HasPrefix(r, "GET ") || strings.Contains(r, "dryRun=All") || strings.Contains(r, whoAmI)
	})
}

func starts(requests []string, with ...string) bool {
	return slices.EqualFunc(requests, with, func(r, prefix string) bool { return strings.HasPrefix(r, prefix) })
}

// The runtime of its own is created before the job, which owns it, and checked while it is not there.
func TestTrainGetsARuntime(t *testing.T) {
	s := trainServer(t, "")
	s.HandleFunc("POST "+runtimesPath, echo("uid-3"))
	s.Answer("PATCH "+runtimesPath+"/llama", 200, map[string]any{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime", "metadata": map[string]any{"namespace": "research", "name": "llama", "uid": "uid-3"}})
	stdout, stderr, failed := train(t, s)
	if failed != nil || !strings.Contains(stderr, "note: TrainingRuntime llama of its own is a copy of torch-distributed with schedulerName") {
		t.Fatalf("%v\n%s%s", failed, stdout, stderr)
	}
	if got := writes(s); !starts(got, "POST "+runtimesPath, "POST "+trainJobsPath, "PATCH "+runtimesPath+"/llama", "POST "+groupsPath) {
		t.Errorf("got %q", got)
	}
	if want := "trainingruntime.trainer.kubeflow.org/llama created\ntrainjob.trainer.kubeflow.org/llama created\npodgroup.scheduling.x-k8s.io/llama created\n"; stdout != want {
		t.Errorf("got %q", stdout)
	}
}

// Webhooks read caches: while one has not seen the runtime that was created a moment before, the job is tried again. What else it is refused for is
// reported at once, and nothing is left.
func TestTrainWhoseRuntimeIsNotSeenYet(t *testing.T) {
	for refusal, again := range map[string]bool{
		`admission webhook "vtrainjob.kb.io" denied the request: runtime 'llama' not found`: true, `admission webhook "quota.example.com" denied the request: no budget`: false,
	} {
		refused := 0
		s := trainServer(t, "", func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Has("dryRun") || refused == 2 {
				return false
			}
			refused++
			kubetest.Write(w, 403, kubetest.Status(403, metav1.StatusReasonForbidden, refusal, nil))
			return true
		})
		s.HandleFunc("POST "+runtimesPath, echo("uid-3"))
		s.Answer("DELETE "+runtimesPath+"/llama", 200, map[string]any{})
		s.Answer("PATCH "+runtimesPath+"/llama", 200, map[string]any{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime", "metadata": map[string]any{"namespace": "research", "name": "llama", "uid": "uid-3"}})
		stdout, _, failed := train(t, s)
		if made := failed == nil; made != again || again != (refused == 2) {
			t.Errorf("%s: refused %d times: %v\n%s\n%q", refusal, refused, failed, stdout, writes(s))
		}
		if last := writes(s)[len(writes(s))-1]; !again && !strings.HasPrefix(last, "DELETE "+runtimesPath) {
			t.Errorf("%s: left behind: %q", refusal, writes(s))
		}
	}
}

// With --dry-run=server nothing is stored, and what the job owns names it all the same.
func TestTrainServerDryRun(t *testing.T) {
	s := trainServer(t, "")
	s.HandleFunc("POST "+runtimesPath, echo("uid-3"))
	stdout, _, failed := train(t, s, "--dry-run=server", "-o", "yaml")
	if failed != nil || len(writes(s)) > 0 || !strings.Contains(stdout, "kind: TrainingRuntime\n    name: llama") || !strings.Contains(stdout, "uid: uid-1") {
		t.Errorf("%v, %q\n%s", failed, writes(s), stdout)
	}
}

// A runtime that names the scheduler costs nothing more.
func TestTrainWithARuntimeForGangs(t *testing.T) {
	s := trainServer(t, "gang-scheduler")
	stdout, stderr, failed := train(t, s)
	if got := writes(s); failed != nil || stderr != "" || !starts(got, "POST "+trainJobsPath, "POST "+groupsPath) {
		t.Errorf("%v, %q\n%s%s", failed, got, stdout, stderr)
	}
}

// While the runtime of its own is not there, the job is checked with another: in its queue, too, or Kueue would not hold what is checked.
func TestTrainInAQueue(t *testing.T) {
	s := offering(t, spGroups, localQueues)
	running(s, "gang-scheduler=gangctl")
	s.with("GET "+clusterRuntimesPath+"/torch-distributed", 200, clusterRuntime("torch-distributed", ""))
	s.on("POST "+trainJobsPath, func(w http.ResponseWriter, r *http.Request) {
		var object map[string]any
		if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
			t.Error(err)
		}
		metadata := object["metadata"].(map[string]any)
		metadata["uid"] = "uid-1"
		labels, _ := metadata["labels"].(map[string]any)
		object["spec"].(map[string]any)["suspend"] = labels["kueue.x-k8s.io/queue-name"] == "research"
		kubetest.Write(w, 201, object)
	})
	s.on("POST "+runtimesPath, echo("uid-3"))
	s.with("PATCH "+runtimesPath+"/llama", 200, map[string]any{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime", "metadata": map[string]any{"namespace": "research", "name": "llama", "uid": "uid-3"}})
	stdout, stderr, failed := typeLine(t.Context(), s.Client, "", "submit", "train", "llama", "--nodes", "4", "--queue", "research", "-o", "yaml")
	if failed != nil || !strings.Contains(stdout, "kueue.x-k8s.io/queue-name: research\n") {
		t.Errorf("got %v\n%s%s", failed, stdout, stderr)
	}
}

// Nothing is left, and nothing is silent.
func TestTrainFails(t *testing.T) {
	for name, tt := range map[string]struct {
		server        func(*kubetest.Server)
		args          []string
		message, hint string
		writes        []string
	}{
		"no runtime": {func(s *kubetest.Server) {
			s.Refuse("GET "+clusterRuntimesPath+"/torch-distribted", 404, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Name: "torch-distribted", Kind: "clustertrainingruntimes"})
		}, []string{"--runtime", "torch-distribted"}, "there is no ClusterTrainingRuntime torch-distribted", "did you mean torch-distributed? the runtimes of the cluster are: torch-distributed, jax-distributed", nil},
		"no right to a runtime": {func(s *kubetest.Server) {
			s.Refuse("POST "+runtimesPath, 403, metav1.StatusReasonForbidden, "no", nil)
		}, nil, "create TrainingRuntime research/llama: no", "", nil},
		"another one of the name": {func(s *kubetest.Server) {
			s.Refuse("POST "+runtimesPath, 409, metav1.StatusReasonAlreadyExists, "exists", &metav1.StatusDetails{Name: "llama", Kind: "trainingruntimes"})
		}, nil, "create TrainingRuntime research/llama: exists", "choose another name; whose the TrainingRuntime is", nil},
		"the runtime cannot be owned": {func(s *kubetest.Server) {
			s.HandleFunc("POST "+runtimesPath, echo("uid-3"))
			s.Refuse("PATCH "+runtimesPath+"/llama", 403, metav1.StatusReasonForbidden, "no", nil)
			s.Answer("DELETE "+runtimesPath+"/llama", 200, map[string]any{})
			s.Answer("DELETE "+trainJobsPath+"/llama", 200, map[string]any{})
		}, nil, "patch TrainingRuntime research/llama: no; TrainJob research/llama was deleted again", "",
			[]string{"POST " + runtimesPath, "POST " + trainJobsPath, "PATCH " + runtimesPath, "DELETE " + runtimesPath, "DELETE " + trainJobsPath}},
		"a variable twice": {func(*kubetest.Server) {}, []string{"--env", "A=1", "--env", "A=2"}, "--env A is set twice", "", nil},
		"two names":        {func(*kubetest.Server) {}, []string{"--name", "bert"}, "--name bert contradicts NAME llama", "leave out one", nil},
		"an empty runtime": {func(*kubetest.Server) {}, []string{"--runtime", ""}, "--runtime is empty", "kubectl get clustertrainingruntimes", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := trainServer(t, "")
			tt.server(s)
			stdout, _, failed := train(t, s, tt.args...)
			if failed == nil || !strings.Contains(failed.Message, tt.message) || !strings.Contains(failed.Hint, tt.hint) || stdout != "" {
				t.Fatalf("got %+v, %q", failed, stdout)
			}
			if got := writes(s); !starts(got, tt.writes...) {
				t.Errorf("got %q", got)
			}
		})
	}
}

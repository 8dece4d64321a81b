package events

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/diagnose/published"
)

const (
	jobPath    = "/apis/kubeflow.org/v1/namespaces/research/tfjobs/llama"
	podsPath   = "/api/v1/namespaces/research/pods"
	eventsPath = "/api/v1/namespaces/research/events"
)

// run runs the command line ten minutes after the job was made; width 0 is a pipe.
func run(t *testing.T, client func() (*kube.Client, error), width int, args ...string) (stdout, stderr string, failed *failure.Error) {
	t.Helper()
	f, streams := commandtest.Factory("research", kubetest.Created.Add(10*time.Minute), width, client)
	return commandtest.Run(t.Context(), NewCommand(f, nil), streams, args...)
}

// event happened some time after the job was made.
func event(kind, name, uid, reason string, after time.Duration, change ...func(*corev1.Event)) corev1.Event {
	at := metav1.NewTime(kubetest.Created.Add(after))
	e := corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name + "." + reason}, InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name, UID: types.UID(uid)},
		Reason: reason, Message: "it was " + reason, Type: corev1.EventTypeNormal, FirstTimestamp: at, LastTimestamp: at, Count: 1, Source: corev1.EventSource{Component: "kubelet"}}
	for _, c := range change {
		c(&e)
	}
	return e
}

func warning(e *corev1.Event) { e.Type = corev1.EventTypeWarning }

// happened serves a job and the events of its namespace.
func happened(t *testing.T, events ...corev1.Event) *kubetest.Server {
	t.Helper()
	s := kubetest.New(t)
	s.Answer("GET "+jobPath, 200, kubetest.Job("research", "llama", 2))
	pod := kubetest.Pod("research", "llama", 0, "n1", "")
	pod.UID, pod.Labels["scheduling.x-k8s.io/pod-group"] = "pod-0", "crew"
	s.Answer("GET "+podsPath, 200, kubetest.PodList(pod))
	s.Answer("GET "+eventsPath, 200, corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}, Items: events})
	return s
}

func story(t *testing.T) *kubetest.Server {
	return happened(t,
		event("Pod", "llama-worker-0", "pod-0", "Started", 3*time.Minute),
		event("TFJob", "llama", "research-llama", "Created", 0),
		event("Pod", "llama-worker-1", "gone-long-ago", "Killed", 2*time.Minute, warning),
		event("PodGroup", "crew", "group", "Unschedulable", time.Minute, warning, func(e *corev1.Event) {
			e.FirstTimestamp, e.LastTimestamp, e.Source = metav1.Time{}, metav1.Time{}, corev1.EventSource{}
			e.EventTime = metav1.NewMicroTime(kubetest.Created.Add(30 * time.Second))
			e.Series = &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(kubetest.Created.Add(time.Minute))}
			e.ReportingController = "gang-scheduler"
		}),
		event("Workload", "tfjob-llama-6f2c1", "w", "Pending", 90*time.Second),
		// Those are of others.
		event("Pod", "llama2-worker-0", "other", "Started", time.Minute),
		event("TFJob", "mistral", "mistral", "Created", time.Minute),
		event("PodGroup", "other-crew", "x", "Scheduled", time.Minute),
		event("Pod", "llama-worker-0", "of-a-job-before", "Old", -time.Hour),
		event("TFJob", "llama", "of-a-job-before", "Old", -time.Hour),
		event("TFJob", "llama", "research-llama", "WhyPending", time.Minute, func(e *corev1.Event) { e.Name = published.EventName("research-llama") }),
	)
}

func TestEvents(t *testing.T) {
	tests := map[string]struct {
		width int
		want  []string
	}{
		"": {0, []string{
			"LAST                   TYPE      OBJECT                       REASON          COUNT   MESSAGE",
			"2026-01-02T03:04:05Z   Normal    TFJob/llama                  Created         1       it was Created",
			"2026-01-02T03:05:05Z   Warning   PodGroup/crew                Unschedulable   7       it was Unschedulable",
			"2026-01-02T03:05:35Z   Normal    Workload/tfjob-llama-6f2c1   Pending         1       it was Pending",
			"2026-01-02T03:06:05Z   Warning   Pod/llama-worker-1           Killed          1       it was Killed",
			"2026-01-02T03:07:05Z   Normal    Pod/llama-worker-0           Started         1       it was Started"}},
		"--types Warning --no-headers": {100, []string{
			"9m    Warning   PodGroup/crew        Unschedulable   7     it was Unschedulable",
			"8m    Warning   Pod/llama-worker-1   Killed          1     it was Killed"}},
		"--types Warning -o wide": {120, []string{
			"LAST   TYPE      OBJECT               REASON          COUNT   FIRST   FROM             MESSAGE",
			"9m     Warning   PodGroup/crew        Unschedulable   7       9m30s   gang-scheduler   it was Unschedulable",
			"8m     Warning   Pod/llama-worker-1   Killed          1       8m      kubelet          it was Killed"}},
	}
	for args, tt := range tests {
		t.Run(args, func(t *testing.T) {
			stdout, stderr, failed := run(t, story(t).Client, tt.width, append([]string{"llama"}, strings.Fields(args)...)...)
			if failed != nil || stderr != "" {
				t.Fatalf("got %+v, %q", failed, stderr)
			}
			if diff := cmp.Diff(tt.want, strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	stdout, _, failed := run(t, story(t).Client, 0, "llama", "-o", "json")
	var list corev1.EventList
	if err := json.Unmarshal([]byte(stdout), &list); failed != nil || err != nil || len(list.Items) != 5 || list.Kind != "EventList" && list.Kind != "List" {
		t.Errorf("got %+v, %v, %d events of %s", failed, err, len(list.Items), list.Kind)
	}
}

func TestNoEvents(t *testing.T) {
	stdout, stderr, failed := run(t, happened(t).Client, 0, "llama")
	if failed != nil || stdout != "" || stderr != "no events of llama in namespace research: the API server keeps them for a time only\n" {
		t.Errorf("got %+v, %q, %q", failed, stdout, stderr)
	}
	if stdout, _, failed := run(t, happened(t).Client, 0, "llama", "-o", "json"); failed != nil || !strings.Contains(stdout, `"items": []`) {
		t.Errorf("got %+v, %s", failed, stdout)
	}
}

// That there are none of a type does not pass for none at all.
func TestNoEventsOfAType(t *testing.T) {
	s := happened(t, event("TFJob", "llama", "research-llama", "Created", 0))
	stdout, stderr, failed := run(t, s.Client, 0, "llama", "--types", "Warning")
	if failed != nil || stdout != "" || stderr != "no events of type Warning of llama in namespace research; of other types: 1\n" {
		t.Errorf("got %+v, %q, %q", failed, stdout, stderr)
	}
}

func TestValidate(t *testing.T) {
	for args, want := range map[string]string{
		"":                       "events needs the name of one job, got 0",
		"a --types warning":      `--types "warning": must be Normal or Warning`,
		"a -o json --no-headers": "--no-headers has no effect with -o json",
		"a -o name":              `--output "name": must be one of json, yaml, wide, jsonpath=, jsonpath-as-json=, go-template=`,
	} {
		_, _, failed := run(t, nil, 0, strings.Fields(args)...)
		if failed == nil || failed.Message != want || failed.Code != failure.CodeUsage {
			t.Errorf("%s: got %+v", args, failed)
		}
	}
}

// A list that failed is an error, never an empty table.
func TestFailures(t *testing.T) {
	job := func(s *kubetest.Server) { s.Answer("GET "+jobPath, 200, kubetest.Job("research", "llama", 1)) }
	pods := func(s *kubetest.Server) { s.Answer("GET "+podsPath, 200, kubetest.PodList()) }
	tests := map[string]struct {
		prepare       func(*kubetest.Server)
		message, hint string
	}{
		"404 of everything": {func(*kubetest.Server) {}, "get Job research/llama: what answers is no Kubernetes API server: it does not know what each of them serves (404)", "kubectl config view"},
		"404 of the kind":   {func(s *kubetest.Server) { s.NoJobs() }, "get TFJob research/llama: the cluster does not serve tfjobs.kubeflow.org (v1)", "Training Operator"},
		"401": {func(s *kubetest.Server) {
			s.Refuse("GET "+jobPath, 401, metav1.StatusReasonUnauthorized, "Unauthorized", nil)
		},
			"get TFJob research/llama: the API server does not accept your credentials (401 Unauthorized)", "log in"},
		"403 on pods": {func(s *kubetest.Server) {
			job(s)
			s.Refuse("GET "+podsPath, 403, metav1.StatusReasonForbidden, `User "bob" cannot list resource "pods"`, nil)
		}, `list pods in namespace research: User "bob" cannot list resource "pods"`, `resources: ["pods"]`},
		"403 on events": {func(s *kubetest.Server) {
			job(s)
			pods(s)
			s.Refuse("GET "+eventsPath, 403, metav1.StatusReasonForbidden, `User "bob" cannot list resource "events"`, nil)
		}, `list events in namespace research: User "bob" cannot list resource "events"`, `resources: ["events"]`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := kubetest.New(t)
			tt.prepare(s)
			stdout, _, failed := run(t, s.Client, 0, "llama")
			if stdout != "" || failed == nil || failed.Message != tt.message || !strings.Contains(failed.Hint, tt.hint) || failed.Code != failure.CodeError {
				t.Errorf("got %+v, %q", failed, stdout)
			}
		})
	}
	for want, client := range kubetest.Away(t) {
		stdout, _, failed := run(t, client, 0, "llama")
		if stdout != "" || failed == nil || !strings.Contains(failed.Message, want) || failed.Hint == "" {
			t.Errorf("got %+v, %q", failed, stdout)
		}
	}
}

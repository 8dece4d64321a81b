package cmdutil

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

const podsPath = "/api/v1/namespaces/research/pods"

// crew serves a job of two workers, one of which was replaced, and pods that are of no job.
func crew(t *testing.T) *kubetest.Server {
	t.Helper()
	s := kubetest.New(t)
	pods := []*corev1.Pod{kubetest.Pod("research", "llama", 0, "n1", ""), kubetest.Pod("research", "llama", 1, "", "no room")}
	old := kubetest.Pod("research", "llama", 1, "n1", "")
	old.Name, old.UID = "llama-worker-1-old", "old"
	lonely, served := kubetest.Pod("research", "llama", 0, "n1", ""), kubetest.Pod("research", "llama", 0, "n1", "")
	lonely.Name, lonely.OwnerReferences = "lonely", nil
	served.Name, served.OwnerReferences[0].Kind, served.OwnerReferences[0].APIVersion, served.OwnerReferences[0].Name = "api-1", "ReplicaSet", "apps/v1", "api"
	launched, yes := kubetest.Pod("research", "llama", 0, "n1", ""), true
	launched.Name, launched.OwnerReferences = "llama-launcher-x", []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "llama-launcher", Controller: &yes}}
	for _, p := range append(pods, old, lonely, served, launched) {
		s.Answer("GET "+podsPath+"/"+p.Name, 200, p)
	}
	s.Answer("GET /apis/batch/v1/namespaces/research/jobs/llama-launcher", 200, batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: "llama-launcher", Namespace: "research", OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Name: "llama", Controller: &yes}}}})
	s.Answer("GET "+jobsPath, 200, kubetest.JobList("", kubetest.Job("research", "llama", 2)))
	s.Answer("GET "+jobsPath+"/llama", 200, kubetest.Job("research", "llama", 2))
	for _, name := range []string{"llama-worker-1", "lonely", "api-1", "zephyr", "secret"} {
		s.Refuse("GET "+jobsPath+"/"+name, 404, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Name: name, Kind: "tfjobs"})
	}
	s.Refuse("GET "+podsPath+"/zephyr", 404, metav1.StatusReasonNotFound, `pods "zephyr" not found`, &metav1.StatusDetails{Name: "zephyr", Kind: "pods"})
	s.Refuse("GET "+podsPath+"/secret", 403, metav1.StatusReasonForbidden, `User "bob" cannot get resource "pods"`, &metav1.StatusDetails{Name: "secret", Kind: "pods"})
	s.Answer("GET "+podsPath, 200, kubetest.PodList(pods...))
	return s
}

func TestResolveTarget(t *testing.T) {
	client, err := crew(t).Client()
	if err != nil {
		t.Fatal(err)
	}
	for arg, want := range map[string]string{"llama": "", "tfjob/llama": "", "pod/llama-worker-0": "worker-0", "pods/llama-worker-1": "worker-1", "po/llama-worker-1": "worker-1", "llama-worker-1": "worker-1"} {
		m, err := ResolveTarget(t.Context(), client, "research", arg)
		if err != nil {
			t.Errorf("%s: %v", arg, err)
			continue
		}
		got := ""
		if m.Member != nil {
			got = m.Member.Name()
		}
		if got != want || m.Job.Meta.Name != "llama" || len(m.Pods) != 2 {
			t.Errorf("%s: got %q of %s with %d pods", arg, got, m.Job, len(m.Pods))
		}
	}
	for arg, want := range map[string][2]string{
		"pod/lonely":             {"pod research/lonely is no member of a job: it has no owner", "gangctl list -n research"},
		"lonely":                 {"pod research/lonely is no member of a job: it has no owner", "gangctl list -n research"},
		"pod/api-1":              {"pod research/api-1 is no member of a job: its owner is ReplicaSet api", "gangctl list -n research"},
		"pod/llama-worker-1-old": {"pod research/llama-worker-1-old is no member of TFJob research/llama any more", "gangctl get tfjob/llama -n research"},
		"pod/llama-launcher-x":   {"pod research/llama-launcher-x is no member of TFJob research/llama any more", "gangctl get tfjob/llama"}, // its Job was found to be of a job
		"pod/zephyr":             {"get pod research/zephyr: not found", ""},
		"zephyr":                 {"get job research/zephyr: not found", "gangctl list -A"},
		"pod/secret":             {`get pod research/secret: User "bob" cannot get resource "pods"`, ""},
		"secret":                 {"get job research/secret: not found", "gangctl list -A"},
	} {
		_, err := ResolveTarget(t.Context(), client, "research", arg)
		if got := failure.From(err); got == nil || got.Message != want[0] || !strings.Contains(got.Hint, want[1]) {
			t.Errorf("%s: got %+v", arg, got)
		}
	}
}

func TestCompleteMembers(t *testing.T) {
	s := crew(t)
	f := &Factory{Client: s.Client, Namespace: func() (string, error) { return "research", nil }}
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	for prefix, want := range map[string][]string{
		"":             {"llama\tDegraded"},
		"lla":          {"llama\tDegraded"},
		"llama-":       {"llama-worker-0\tRunning", "llama-worker-1\tPending"},
		"pod/":         {"pod/llama-worker-0\tRunning", "pod/llama-worker-1\tPending"},
		"po/llama-w":   {"po/llama-worker-0\tRunning", "po/llama-worker-1\tPending"},
		"pod/mistral-": nil,
	} {
		if got, directive := CompleteMembers(f)(cmd, nil, prefix); !slices.Equal(got, want) || directive != cobra.ShellCompDirectiveNoFileComp {
			t.Errorf("%q: got %q", prefix, got)
		}
	}
	if got, _ := CompleteMembers(f)(cmd, []string{"llama"}, ""); got != nil {
		t.Errorf("got %q", got)
	}
	if got, _ := CompleteRoles(f)(cmd, []string{"pod/llama-worker-0"}, ""); got != nil {
		t.Errorf("got %q", got)
	}
}

package cmdutil

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

const pods = "/api/v1/namespaces/research/pods"

// Which member is meant: the one that leads the job, the one that flags name, or the one whose pod is named.
func TestRunningMember(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET /apis/kubeflow.org/v1/namespaces/research/tfjobs/llama", 200, kubetest.Job("research", "llama", 3))
	all := kubetest.PodList(kubetest.Pod("research", "llama", 0, "n1", ""), kubetest.Pod("research", "llama", 1, "n1", ""), kubetest.Pod("research", "llama", 2, "", "no room"))
	s.Answer("GET "+pods, 200, all)
	for i := range all.Items {
		s.Answer("GET "+pods+"/"+all.Items[i].Name, 200, all.Items[i])
	}
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		arg   string
		flags []string
		want  string
		code  failure.Code
	}{
		{"llama", nil, "worker-0", 0},
		{"llama", []string{"--index", "1"}, "worker-1", 0},
		{"pod/llama-worker-1", nil, "worker-1", 0},
		{"llama-worker-1", nil, "", failure.CodeError}, // the server does not report that there is no such job
		{"pod/llama-worker-2", nil, "worker-2 of llama does not run: it is Pending: no room", failure.CodeError},
		{"pod/llama-worker-1", []string{"--index", "1"}, "pod/llama-worker-1 is a member already: --role and --index have no effect", failure.CodeUsage},
		{"pod/llama-worker-1", []string{"--role", "worker"}, "pod/llama-worker-1 is a member already: --role and --index have no effect", failure.CodeUsage},
		{"llama", []string{"--index", "7"}, "llama has no member worker-7", failure.CodeError},
	} {
		var c MemberFlags
		cmd := &cobra.Command{}
		c.AddFlags(cmd)
		if err := cmd.ParseFlags(tt.flags); err != nil {
			t.Fatal(err)
		}
		m, err := c.Running(t.Context(), client, "research", tt.arg)
		switch failed := failure.From(err); {
		case failed != nil && (failed.Code != tt.code || tt.want != "" && failed.Message != tt.want), failed == nil && (tt.code != 0 || m.Name() != tt.want):
			t.Errorf("%s %q: got %v, %+v", tt.arg, tt.flags, m, failed)
		}
	}
}

// Without flags it is the member that leads the job, whatever its kind calls that one.
func TestLeaderIsPicked(t *testing.T) {
	for roles, want := range map[string]string{
		"ps worker":         "worker-0",
		"chief ps worker":   "chief-0",
		"master worker":     "master-0",
		"launcher worker":   "launcher-0",
		"head worker":       "head-0",   // a RayJob
		"leader worker":     "leader-0", // a LeaderWorkerSet
		"driver executors":  "driver-0",
		"worker evaluator":  "worker-0",
		"worker head extra": "head-0",
	} {
		var members []summary.Row
		for _, role := range strings.Fields(roles) {
			members = append(members, summary.Row{Member: gang.Member{Role: role}}, summary.Row{Member: gang.Member{Role: role, Index: 1}})
		}
		if m, err := (&MemberFlags{}).pick("llama", "research", members); err != nil || m.Name() != want {
			t.Errorf("%s: got %v, %v", roles, m, err)
		}
	}
}

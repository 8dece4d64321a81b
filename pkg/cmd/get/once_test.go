package get

import (
	"strings"
	"testing"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
)

// The scheduler's message on several members is shown once; rows alone have it each.
func TestReasonsAreReportedOnce(t *testing.T) {
	const why = "0 of the 3 members that its gang needs fit: it needs 3 workers with 2 GPUs each"
	const other = "0/2 nodes are available: 2 node(s) had untolerated taint(s), as an old scheduler says."
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath+"/llama", 200, kubetest.Job("research", "llama", 3))
	own := "0/2 nodes are available: " + why + "."
	s.Answer("GET "+podsPath, 200, kubetest.PodList(kubetest.Pod("research", "llama", 0, "", own), kubetest.Pod("research", "llama", 1, "", own), kubetest.Pod("research", "llama", 2, "", own)))
	stdout, err := run(t, s, iostreams.ColorAuto, "llama")
	if err != nil || strings.Count(stdout, why) != 1 || !strings.Contains(stdout, "Reason:    "+why+"\n") || strings.Count(stdout, "   as above\n") != 3 || strings.Contains(stdout, "nodes are available") {
		t.Errorf("got %v\n%s", err, stdout)
	}
	if stdout, err = run(t, s, iostreams.ColorAuto, "llama", "--no-headers"); err != nil || strings.Count(stdout, why) != 3 {
		t.Errorf("got %v\n%s", err, stdout)
	}
	s = kubetest.New(t)
	s.Answer("GET "+jobsPath+"/llama", 200, kubetest.Job("research", "llama", 3))
	s.Answer("GET "+podsPath, 200, kubetest.PodList(kubetest.Pod("research", "llama", 0, "", "gang cannot start"), kubetest.Pod("research", "llama", 1, "", other), kubetest.Pod("research", "llama", 2, "", other)))
	stdout, err = run(t, s, iostreams.ColorAuto, "llama")
	if err != nil || !strings.Contains(stdout, "Reason:    worker-1: "+other) || strings.Count(stdout, other) != 2 || !strings.Contains(stdout, "   as worker-1\n") || !strings.Contains(stdout, "   gang cannot start\n") {
		t.Errorf("got %v\n%s", err, stdout)
	}
}

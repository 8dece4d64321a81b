package events

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/kubetest"
)

// The name of a member's pod stands for the events of that pod, not of one that had its name before.
func TestOneMember(t *testing.T) {
	s := happened(t, event("Pod", "llama-worker-0", "pod-0", "Started", 3), event("Pod", "llama-worker-0", "before", "Killed", 2),
		event("Pod", "llama-worker-1", "pod-1", "Pulled", 1), event("TFJob", "llama", "research-llama", "Created", 0))
	pod := kubetest.Pod("research", "llama", 0, "n1", "")
	pod.UID = "pod-0"
	s.Answer("GET "+podsPath+"/llama-worker-0", 200, pod)
	s.Refuse("GET "+strings.Replace(jobPath, "llama", "llama-worker-0", 1), 404, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Name: "llama-worker-0", Kind: "tfjobs"})
	for _, arg := range []string{"pod/llama-worker-0", "llama-worker-0"} {
		stdout, _, failed := run(t, s.Client, 0, arg, "--no-headers")
		if failed != nil || strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, "Started") {
			t.Errorf("%s: got %+v\n%s", arg, failed, stdout)
		}
	}
}

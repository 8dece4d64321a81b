package logs

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// A pod that is not there is looked for among the pods of a job.
func TestNoSuchPod(t *testing.T) {
	s := gangServer(t)
	s.Refuse("GET "+podsPath+"/absent", 404, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Name: "absent", Kind: "pods"})
	_, _, failed := run(t, s.Client, 0, "pod/absent")
	if failed == nil || failed.Message != "get pod research/absent: not found" || !strings.Contains(failed.Hint, "gangctl get NAME -n research") {
		t.Errorf("got %+v", failed)
	}
}

// The name of a member's pod stands for that member, and takes no other choice.
func TestOneMember(t *testing.T) {
	s := gangServer(t)
	s.Answer("GET "+podsPath+"/llama-worker-1", 200, worker(1, running(), nil))
	s.Refuse("GET "+strings.Replace(jobPath, "llama", "llama-worker-1", 1), 404, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Name: "llama-worker-1", Kind: "tfjobs"})
	for _, arg := range []string{"pod/llama-worker-1", "llama-worker-1"} {
		stdout, stderr, failed := run(t, s.Client, 0, arg)
		if failed != nil || stdout != "[worker-1] two\n" {
			t.Errorf("%s: got %+v, %q, %q", arg, failed, stdout, stderr)
		}
		if strings.Contains(stderr, "have not started") {
			t.Errorf("%s: others are spoken of: %s", arg, stderr)
		}
	}
	for _, flag := range []string{"--role=worker", "--index=0"} {
		stdout, _, failed := run(t, s.Client, 0, "pod/llama-worker-1", flag)
		if failed == nil || failed.Code != failure.CodeUsage || failed.Message != "pod/llama-worker-1 is a member already: --role and --index have no effect" || failed.Hint != "leave them out, or name the job: llama" || stdout != "" {
			t.Errorf("%s: got %+v, %q", flag, failed, stdout)
		}
	}
}

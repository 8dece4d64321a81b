package submit

import (
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// What keeps pods from being made is noted once, if it is known; the job is created.
func TestMissingIsNoted(t *testing.T) {
	s := kubetest.New(t)
	s.HandleFunc("POST "+jobsPath, echo("uid-1"))
	gone := func(path, name string) {
		s.Refuse("GET "+path+"/"+name, 404, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Name: name})
	}
	const classes, accounts = "/apis/scheduling.k8s.io/v1/priorityclasses", "/api/v1/namespaces/research/serviceaccounts"
	gone(classes, "absent")
	gone(accounts, "absent")
	s.Answer("GET "+classes+"/high", 200, &schedulingv1.PriorityClass{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}})
	s.Refuse("GET "+accounts+"/secret", 403, metav1.StatusReasonForbidden, "no", nil)
	for args, want := range map[string][]string{
		"--priority-class high --service-account secret": nil,
		"--priority-class absent --service-account absent --ps 1": {
			`note: PriorityClass "absent" does not exist: TFJob research/llama has no pods until it does`,
			`note: ServiceAccount "absent" does not exist: TFJob research/llama has no pods until it does`},
	} {
		out, errOut, err := submit(t.Context(), s, append(strings.Fields(args), "--dialect", "labels")...)
		if err != nil || !strings.Contains(out, "created") {
			t.Fatalf("%s: got %v, %q", args, err, out)
		}
		var got []string
		for line := range strings.Lines(errOut) {
			if strings.Contains(line, "does not exist") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: got %q", args, errOut)
		}
	}
}

// Memory that is mounted counts as memory: more of it than a member may use is noted.
func TestShmNote(t *testing.T) {
	for args, noted := range map[string]bool{
		"--shm 2Gi --memory 1Gi": true, "--shm 2Gi --memory 2Gi": false, "--shm 2Gi": false, "--shm 2Gi --memory 1Gi --limit-memory 4Gi": false,
	} {
		_, errOut, failed := typeLine(t.Context(), noCluster, "", append([]string{"submit", "tf", "llama", "--image", "i", "--dry-run=client", "-o", "yaml"}, strings.Fields(args)...)...)
		if failed != nil || strings.Contains(errOut, "note: /dev/shm may hold 2Gi, and counts as memory, of which its member may use 1Gi") != noted {
			t.Errorf("%s: got %v, %q", args, failed, errOut)
		}
	}
}

// An image that no kubelet can pull is refused, whichever flag names it.
func TestImagesRefused(t *testing.T) {
	for _, args := range []string{"--image|Bad Image", "--image|a@sha256:0", "--image|i|--worker-image|a:", "--image|i|--tensorboard|/logs|--tensorboard-image|X", "--image|i|--sync-git|https://e.com/a|--sync-image|X"} {
		_, _, failed := typeLine(t.Context(), noCluster, "", append([]string{"submit", "tf", "llama", "--dry-run=client"}, strings.Split(args, "|")...)...)
		flags := strings.Split(args, "|")
		if failed == nil || failed.Code != failure.CodeUsage || !strings.HasPrefix(failed.Message, flags[len(flags)-2]+" ") {
			t.Errorf("%s: got %+v", args, failed)
		}
	}
}

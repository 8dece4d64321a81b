package submit

import (
	"strings"
	"testing"
)

// What --follow cannot do is refused before anything is sent.
func TestFollowIsRefused(t *testing.T) {
	two := jobFile + "---\n" + strings.ReplaceAll(jobFile, "llama", "mistral")
	for _, tt := range []struct{ args, want string }{
		{"submit tf llama --image i --follow --dry-run=client", "--follow has no effect with --dry-run=client: nothing is created"},
		{"submit tf llama --image i --follow --wait", "--wait has no effect with --follow, which goes on until the job ends"},
		{"submit tf llama --image i --follow -o json", "--follow and --output json cannot be used together: what members print would come after the object"},
		{"submit -f job.yaml --follow -o name", "--follow and --output name cannot be used together: what members print would come after the object"},
		{"submit -f " + file(t, two) + " --follow", "--follow is for one job, and the file holds 2"},
	} {
		if _, _, failed := typeLine(t.Context(), noCluster, "", strings.Fields(tt.args)...); failed == nil || failed.Code != 2 || failed.Message != tt.want {
			t.Errorf("%s: got %+v", tt.args, failed)
		}
	}
}

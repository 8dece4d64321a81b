package resize

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// What a Secret keeps is shown before it is made, down to the command, as another user may have written it; and no value of a variable is.
func TestWhatIsKeptIsShown(t *testing.T) {
	io, _, _, errOut := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "team", "name": "board"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"serviceAccountName": "admin", "containers": []any{map[string]any{
			"image": "evil.example/miner", "env": []any{map[string]any{"name": "TOKEN", "value": "s3cret-marker"}}}}}}},
	}}
	if err := (&Options{JobOptions: cmdutil.JobOptions{IO: io}}).showKept("gangctl-resize-job-llama", []*unstructured.Unstructured{u}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Secret gangctl-resize-job-llama keeps what is to be made again:", "image: evil.example/miner", "serviceAccountName: admin", "name: TOKEN"} {
		if !strings.Contains(errOut.String(), want) {
			t.Errorf("%q is not shown:\n%s", want, errOut)
		}
	}
	if strings.Contains(errOut.String(), "s3cret-marker") {
		t.Errorf("a secret is shown:\n%s", errOut)
	}
}

package job

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
)

// Restarts of a JobSet that its rules leave out of account do not bring it nearer to its end; releases without rules count all of them.
func TestAttemptsOfJobSet(t *testing.T) {
	for name, test := range map[string]struct {
		policy, status map[string]any
		want           int64
	}{
		"no rules":      {map[string]any{"maxRestarts": int64(3)}, map[string]any{"restarts": int64(2)}, 2},
		"some count":    {map[string]any{"maxRestarts": int64(3)}, map[string]any{"restarts": int64(5), "restartsCountTowardsMax": int64(1)}, 1},
		"none counts":   {map[string]any{"maxRestarts": int64(3), "rules": []any{}}, map[string]any{"restarts": int64(5)}, 0},
		"without limit": {map[string]any{}, map[string]any{"restarts": int64(5)}, 0},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"failurePolicy": test.policy}, "status": test.status}}
		g := &gang.Gang{Job: &gang.Job{Kind: jobset.Reader().WithVersion(jobset.Version), Object: u}}
		if used, _, _ := attempts(g); used != test.want {
			t.Errorf("%s: %d, want %d", name, used, test.want)
		}
	}
}

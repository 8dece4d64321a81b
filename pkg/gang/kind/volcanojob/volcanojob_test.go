package volcanojob

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Whatever tenants write, a Job is read or refused, with no fewer members than none.
func FuzzRead(f *testing.F) {
	for _, spec := range []string{
		`{"minAvailable":2,"queue":"q","tasks":[{"name":"worker","replicas":2,"template":{"spec":{"containers":[{"name":"main"}]}}}]}`,
		`{"minAvailable":-3,"tasks":[{"replicas":-2147483648}]}`,
		`{"minAvailable":2147483647,"tasks":[{"replicas":2147483647},{"replicas":2147483647}]}`,
		`{"tasks":[null]}`, `{"tasks":"many"}`, `{}`, `{"tasks":[{"template":{"spec":{"containers":[{"resources":{"requests":{"cpu":"-1"}}}]}}}]}`,
	} {
		f.Add(`{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"namespace":"team","name":"gang","uid":"u"},"spec":` + spec + `,"status":{"state":{"phase":"Pending"}}}`)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u := &unstructured.Unstructured{}
		if u.UnmarshalJSON([]byte(text)) != nil {
			return
		}
		job, err := Reader().Job(u)
		if err != nil {
			return
		}
		for _, role := range job.Roles {
			if role.Replicas < 0 {
				t.Errorf("role %s has %d members", role.Name, role.Replicas)
			}
		}
		if job.Total() < 0 {
			t.Errorf("%d members", job.Total())
		}
	})
}

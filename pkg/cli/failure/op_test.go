package failure

import "testing"

func TestOpOfSeveral(t *testing.T) {
	for kind, want := range map[string]string{
		"TFJob": "list TFJobs in all namespaces", "PriorityClass": "list PriorityClasses in all namespaces", "NetworkPolicy": "list NetworkPolicies in all namespaces",
	} {
		if got := (Op{Verb: "list", Kind: kind}).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

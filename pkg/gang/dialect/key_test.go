package dialect

import "testing"

func TestMembershipKeyLike(t *testing.T) {
	for key, want := range map[string]string{
		"scheduling.x-k8s.io/pod-group": "scheduling.x-k8s.io/pod-group",
		"scheduling.x-k8s.io/podgroup":  "scheduling.x-k8s.io/pod-group",
		"scheduling.k8s.io/groupname":   "scheduling.k8s.io/group-name",
		"pod-grp-name":                  "pod-group-name",
		"node-group":                    "",
		"eks.amazonaws.com/nodegroup":   "",
		"instance-group":                "",
		"app.kubernetes.io/name":        "",
	} {
		if got := MembershipKeyLike(key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

package dialect

import (
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
)

// membershipKeys are the labels and annotations by which pods name their group, in all dialects.
func membershipKeys() []string {
	return []string{
		"scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/name", "scheduling.k8s.io/group-name",
		"pod-group-name", "kueue.x-k8s.io/pod-group-name", "gang.scheduling.koordinator.sh/name",
		"yunikorn.apache.org/task-group-name",
	}
}

// MembershipKeyLike is the label or annotation by which pods name their group that was probably meant by a key: the key itself, or one that is nearly it and about
// groups, too; "" if there is none.
func MembershipKeyLike(key string) string {
	known := membershipKeys()
	if slices.Contains(known, key) {
		return key
	}
	if !strings.Contains(key, "group") && !strings.Contains(key, "grp") && !strings.Contains(key, "gang") {
		return ""
	}
	return suggest.Nearest(key, known)
}

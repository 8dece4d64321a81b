package yunikorn

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// The minimum is a sum of what users write, and neither wraps nor falls below one.
func TestMinimum(t *testing.T) {
	for groups, want := range map[string]int32{
		`[{"name":"a","minMember":2},{"name":"b","minMember":3}]`:                   5,
		`[{"name":"a","minMember":2147483647},{"name":"b","minMember":2147483647}]`: math.MaxInt32,
		`[{"name":"a","minMember":-2147483648},{"name":"b","minMember":2}]`:         2,
		`[]`: 1,
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{groupsAnnotation: groups}}}
		d, err := Reader().FromPods(gang.Key{Dialect: gang.YuniKorn, Name: "a"}, []*corev1.Pod{pod})
		if err != nil || d.MinMember != want {
			t.Errorf("%s: a minimum of %d, %v, want %d", groups, d.MinMember, err, want)
		}
	}
}

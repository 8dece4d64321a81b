package gang

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The field that names a group counts whichever dialects the scheduler is known to read.
func TestTheFieldCounts(t *testing.T) {
	by := func(d Dialect, label string) Reader {
		return Reader{Dialect: d, Kinds: []Served{{}}, NameOf: func(o metav1.Object) (string, bool) { return o.GetLabels()[label], o.GetLabels()[label] != "" }}
	}
	field, other := by(Native, "field"), by("other", "other")
	for name, tt := range map[string]struct {
		labels     map[string]string
		precedence Precedence
		want       Dialect
	}{
		"read":                 {map[string]string{"field": "g"}, Precedence{Read: []Reader{field, other}}, Native},
		"not read":             {map[string]string{"field": "g"}, Precedence{Read: []Reader{other}, Unread: []Reader{field}}, Native},
		"read, besides others": {map[string]string{"field": "g", "other": "o"}, Precedence{Read: []Reader{other, field}}, Native},
		"another":              {map[string]string{"other": "o"}, Precedence{Read: []Reader{other}, Unread: []Reader{field}}, "other"},
	} {
		m := MembershipOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Labels: tt.labels}}, tt.precedence)
		if key, ok := m.Resolve(func(Key) bool { return false }); !ok || key.Dialect != tt.want {
			t.Errorf("%s: %v, want one of %s", name, key, tt.want)
		}
	}
}

// Annotations may have 256 KiB, and what a gang waits for is written with its name to each of its pods.
func TestLongNames(t *testing.T) {
	r := Reader{Dialect: "annotated", NameOf: func(o metav1.Object) (string, bool) { return o.GetAnnotations()["group"], true }}
	name := func(name string) string {
		got, ok := r.GroupOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"group": name}}})
		if !ok || len(got) > maxName || !utf8.ValidString(got) {
			t.Errorf("%.80q has %d characters", got, len(got))
		}
		return got
	}
	long := strings.Repeat("ä", 128<<10)
	if name(strings.Repeat("x", maxName)) != strings.Repeat("x", maxName) || name(long) != name(long) || name(long+"a") == name(long+"b") {
		t.Error("a name that an object can have is another, or two long ones are one")
	}
}

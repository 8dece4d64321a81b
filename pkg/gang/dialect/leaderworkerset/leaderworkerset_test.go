package leaderworkerset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	kind "github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
)

func pod(labels, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Labels: labels, Annotations: annotations}}
}

func TestNameOf(t *testing.T) {
	replica := map[string]string{kind.NameLabel: "llama", kind.GroupIndexLabel: "1"}
	for _, tt := range []struct {
		name, want          string
		labels, annotations map[string]string
	}{
		{name: "a replica", want: "llama-1", labels: replica},
		{name: "of a revision", want: "llama-1-abc", labels: map[string]string{kind.NameLabel: "llama", kind.GroupIndexLabel: "1", kind.RevisionLabel: "abc"}},
		{name: "without a number", labels: map[string]string{kind.NameLabel: "llama"}},
		{name: "taken out", labels: replica, annotations: map[string]string{gang.DialectAnnotation: "none"}},
		{name: "whose workers follow the leader", labels: replica, annotations: map[string]string{kind.ExclusiveAnnotation: "rack"}},
	} {
		if got, ok := NameOf(pod(tt.labels, tt.annotations)); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %q, %v", tt.name, got, ok)
		}
	}
}

func TestSize(t *testing.T) {
	for value, want := range map[string]int32{"3": 3, "": 0, "0": 0, "-1": 0, "many": 0, "99999999999": 0} {
		d, err := fromPods(gang.Key{}, []*corev1.Pod{pod(nil, map[string]string{kind.SizeAnnotation: value})})
		if want > 0 && (err != nil || d.MinMember != want) || want == 0 && (err == nil || d.MinMember != 1) {
			t.Errorf("%q: %d, %v", value, d.MinMember, err)
		}
	}
}

// What a pod's author or an object states counts before what its controller implies.
func TestPrecedence(t *testing.T) {
	named := gang.Reader{Dialect: "named", Kinds: []gang.Served{{}}, NameOf: func(o metav1.Object) (string, bool) { return o.GetLabels()["group"], o.GetLabels()["group"] != "" }}
	for _, tt := range []struct {
		group      string
		owned      []gang.Key
		wantIn     gang.Dialect
		precedence gang.Precedence
	}{
		{wantIn: gang.LeaderWorkerSet, precedence: gang.Precedence{Read: []gang.Reader{named, Reader()}}},
		{group: "g", wantIn: "named", precedence: gang.Precedence{Read: []gang.Reader{named, Reader()}}},
		{group: "g", wantIn: "named", precedence: gang.Precedence{Read: []gang.Reader{Reader()}, Unread: []gang.Reader{named}}},
		{wantIn: gang.LeaderWorkerSet, precedence: gang.Precedence{Read: []gang.Reader{named}, Unread: []gang.Reader{Reader()}}},
		{owned: []gang.Key{{Dialect: "named", Name: "o"}}, wantIn: "named", precedence: gang.Precedence{Read: []gang.Reader{named, Reader()}}},
	} {
		p := pod(map[string]string{kind.NameLabel: "llama", kind.GroupIndexLabel: "1", "group": tt.group}, nil)
		m := gang.MembershipOf(p, tt.precedence).WithOwned(tt.owned, tt.precedence)
		if key, ok := m.Resolve(func(gang.Key) bool { return false }); !ok || key.Dialect != tt.wantIn {
			t.Errorf("group %q, owned %v: %v, want one of %s", tt.group, tt.owned, key, tt.wantIn)
		}
	}
}

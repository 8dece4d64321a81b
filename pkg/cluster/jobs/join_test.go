package jobs

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
)

// Users write owner references: a JobSet is that of a TrainJob of its namespace only, and has its name.
func TestJoinAll(t *testing.T) {
	for name, tt := range map[string]struct {
		namespace, name string
		joined          bool
		left            int
	}{
		"made of it":           {"team", "llama", true, 1},
		"of another namespace": {"other", "llama", false, 2},
		"of another name":      {"team", "alpaca", false, 1},
	} {
		joined := false
		reader := trainjob.Reader()
		reader.Join = func(_, _ *gang.Job) { joined = true }
		whole := &gang.Job{Reader: reader, Meta: metav1.ObjectMeta{Namespace: "team", Name: "llama", UID: "u"}, MadeAs: "llama"}
		yes := true
		made := &gang.Job{Reader: jobset.Reader(), Meta: metav1.ObjectMeta{Namespace: tt.namespace, Name: tt.name, UID: "s", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: trainjob.Group + "/" + trainjob.Version, Kind: trainjob.Kind, Name: "llama", UID: "u", Controller: &yes}}}}
		whole.Kind, made.Kind = reader.WithVersion(trainjob.Version), made.Reader.WithVersion(jobset.Version)
		if left := joinAll([]*gang.Job{whole, made}, nil); joined != tt.joined || len(left) != tt.left {
			t.Errorf("%s: joined %v, %d are left", name, joined, len(left))
		}
	}
}

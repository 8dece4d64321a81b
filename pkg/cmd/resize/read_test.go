package resize

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// Who may not list PodGroups does not resize the job of one: its minimum would stay.
func TestAGroupThatMayNotBeListed(t *testing.T) {
	for name, c := range map[string]struct {
		denied string
		want   string
	}{
		"its kind":     {"podgroups.scheduling.x-k8s.io", "list podgroups.scheduling.x-k8s.io: forbidden"},
		"another kind": {"podgroups.scheduling.volcano.sh", ""},
	} {
		cluster := clustertest.New().Nodes(2, 8).Add(clustertest.Gang{Namespace: "team", Name: "gang", Workers: 2, GPUs: 8})
		delete(cluster.S.Custom, schema.GroupKind{Group: "scheduling.x-k8s.io", Kind: "PodGroup"})
		cluster.S.Denied = append(cluster.S.Denied, snapshot.Denial{Resource: c.denied})
		w := view.New(cluster.Done())
		job, err := w.Find(view.Query{Namespace: "team", Name: "gang"})
		if err != nil {
			t.Fatal(err)
		}
		got := failure.From(unseenGroup(w.Snap, w.Gang(job)))
		if (got == nil) != (c.want == "") || got != nil && !strings.HasSuffix(got.Message, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

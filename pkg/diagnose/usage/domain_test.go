package usage_test

import (
	"fmt"
	"testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

// Nodes are summed up by their value of a label, those without it are in no domain, and a gang that starts in a domain is on its nodes alone.
func TestDomains(t *testing.T) {
	c := clustertest.New().Nodes(5, 8).Runs("a", 6, "n1")
	for i, rack := range []string{"r1", "r1", "r2", "r2"} {
		c.S.Nodes[i].Labels["rack"] = rack
	}
	c.S.Nodes[3].Spec.Unschedulable = true
	r := usage.OfDomains(view.New(c.Done()), "rack")
	var got []string
	for _, d := range r.Domains {
		for _, total := range d.Totals {
			got = append(got, fmt.Sprintf("%s nodes %d ready %d %s %d/%d free %d %v", d.Name, d.Nodes, d.Ready, usage.Short(total.Kind), total.Used, total.Total, total.Free, total.Largest))
		}
	}
	want := []string{
		"r1 nodes 2 ready 2 nvidia 6/16 free 10 [{1 10} {2 5} {4 2} {8 1}]",
		"r2 nodes 2 ready 1 nvidia 0/16 free 8 [{1 8} {2 4} {4 2} {8 1}]",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || r.Outside != 1 || r.Key != "rack" {
		t.Errorf("got\n%q, want\n%q, %d outside", got, want, r.Outside)
	}
}

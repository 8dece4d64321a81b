package diagnose

import (
	"strings"
	"testing"

	"github.com/gangctl/gangctl/internal/clustertest"
)

// Of a node that is short of a resource it is shown who uses that, and not who else is there.
func TestConsumersOfWhatIsShort(t *testing.T) {
	c := clustertest.New().Nodes(1, 8).Runs("trains", 4, "n1").ServesWith("web", 0, "4", "n1").Add(waiting(1, 8))
	a, err := Explain(t.Context(), c.Done(), Query{Namespace: "team", Name: "gang"}, Options{NoAdvice: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range a.Nodes.Rows {
		if got := strings.Join(row.Consumers, ", "); !strings.HasSuffix(got, "/trains") || strings.Contains(got, "web") {
			t.Errorf("%s is held by %s", row.Node, got)
		}
	}
	if len(a.Nodes.Rows) != 1 {
		t.Errorf("got %+v", a.Nodes)
	}
}

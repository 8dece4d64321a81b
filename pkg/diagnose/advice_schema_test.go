package diagnose

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// The reference lists exactly the kinds of action that there are.
func TestSchemaListsActions(t *testing.T) {
	raw, err := os.ReadFile(docs + "schema.json")
	if err != nil {
		t.Fatal(err)
	}
	root := &jsonSchema{}
	if err := json.Unmarshal(raw, root); err != nil {
		t.Fatal(err)
	}
	kinds := []answer.ActionKind{answer.Fix, answer.Reshape, answer.Trim, answer.Relax, answer.Wait, answer.Fewer, answer.Move, answer.Uncordon, answer.Quota, answer.AddNodes, answer.Evict}
	var got []answer.ActionKind
	for _, value := range root.Properties["unblock"].Items.Properties["kind"].Enum {
		got = append(got, answer.ActionKind(value.(string)))
	}
	if !slices.Equal(got, kinds) {
		t.Errorf("documented %v\nwant %v", got, kinds)
	}
}

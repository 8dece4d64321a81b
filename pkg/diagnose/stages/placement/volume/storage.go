package volume

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// LittleStorage finds that too few nodes have storage for the volumes that are to be made for members.
func LittleStorage(c *stage.Context) *stage.Finding {
	var texts, details []string
	var facts []map[string]any
	for _, role := range c.Request.Roles {
		for _, need := range c.Cluster().StorageNeeds(role.Pod) {
			if len(need.Few) == 0 && len(need.Enough) > 0 {
				continue
			}
			where := "no node has storage for one"
			if len(need.Enough) > 0 {
				where = "only " + phrase.Names(need.Enough) + " " + phrase.Verb(len(need.Enough), "has", "have") + " storage for one"
			}
			text := fmt.Sprintf("each %s needs a volume of %s of class %s, and %s", phrase.Member(role.Name), need.Requested.String(), need.Class, where)
			if !slices.Contains(texts, text) {
				texts = append(texts, text)
				facts = append(facts, map[string]any{"role": phrase.Role(role.Name), "storageClass": need.Class, "requested": need.Requested.String(), "nodes": len(need.Enough)})
			}
			if len(need.Few) > 0 {
				detail := fmt.Sprintf("%s %s storage of class %s for a volume of at most %s", phrase.Names(need.Few), phrase.Verb(len(need.Few), "has", "have"), need.Class, need.Largest.String())
				if !slices.Contains(details, detail) {
					details = append(details, detail)
				}
			}
		}
	}
	if len(texts) == 0 {
		texts = []string{"the volumes that are to be made for its members find too little storage"}
	}
	f := stage.Found(answer.PVCUnbound, "%s: %d/%d members fit", strings.Join(texts[:min(len(texts), stage.MaxReasons)], "; "), c.Placed(*c.Placement), c.Gang.Total()).
		Fact("storage", facts[:min(len(facts), stage.MaxReasons)])
	stage.DetailEach(f, details, func(line string) string { return line })
	return f.Run(command.Kubectl("", "get", "csistoragecapacities", "-A"))
}

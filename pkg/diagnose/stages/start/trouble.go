package start

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// trouble is what keeps members from running that have it in common.
type trouble struct {
	*stage.Finding
	// members are their names, nodes where they are, each once.
	members, nodes []string
	// others are members with further causes of the same code, beyond those that are listed.
	others []string
}

// maxCauses is how many causes of one code are listed; a longer list is not read.
const maxCauses = 4

// troubles are those of the members of a gang.
type troubles struct {
	all  []*trouble
	byID map[string]*trouble
}

// add adds what was found of a member.
func (t *troubles) add(member string, pod *corev1.Pod, f *stage.Finding) {
	if t.byID == nil {
		t.byID = map[string]*trouble{}
	}
	id := causeOf(f)
	if t.byID[id] == nil {
		var alike []*trouble
		for _, one := range t.all {
			if one.Code == f.Code {
				alike = append(alike, one)
			}
		}
		if len(alike) >= maxCauses {
			alike[0].others = append(alike[0].others, member)
			return
		}
		t.byID[id] = &trouble{Finding: f}
		t.all = append(t.all, t.byID[id])
	}
	one := t.byID[id]
	one.members = append(one.members, member)
	if node := pod.Spec.NodeName; node != "" && !slices.Contains(one.nodes, node) {
		one.nodes = append(one.nodes, node)
	}
}

// causeOf is equal for findings of different members that have one cause.
func causeOf(f *stage.Finding) string {
	id := fmt.Sprintf("%s %s %s", f.Code, f.Verdict, f.Who)
	for _, fact := range []string{"container", "image", "kind", "name", "key", "claim", "reason", "exitCode", "node"} {
		if fact != "node" || f.Code != answer.SandboxFailed {
			id += fmt.Sprintf("\n%v", f.Facts[fact])
		}
	}
	if f.Code == answer.SandboxFailed { // the same of several nodes, if it is
		id += "\n" + numbered.ReplaceAllString(strings.ReplaceAll(f.Message, fmt.Sprint(f.Facts["node"]), "0"), "")
	}
	return id
}

// numbered are the words of a report that differ from node to node and from pod to pod: names, addresses and identifiers have digits.
var numbered = regexp.MustCompile(`\S*\d\S*`)

// sorted are the troubles in the order of their codes, of one code the likeliest cause of the others first, then in the order of members.
func (t *troubles) sorted() []*trouble {
	codes := answer.Codes()
	slices.SortStableFunc(t.all, func(a, b *trouble) int {
		return cmp.Or(cmp.Compare(slices.Index(codes, a.Code), slices.Index(codes, b.Code)), cmp.Compare(consequence(a.Finding), consequence(b.Finding)))
	})
	return t.all
}

// consequence is higher for an end of a container that is likelier to follow from that of another member: members whose peer is gone report an error, or
// are killed in their turn.
func consequence(f *stage.Finding) int {
	code, ended := f.Facts["exitCode"].(int32)
	switch {
	case f.Facts["reason"] == oomKilled || !ended:
		return 0
	case code == 137 || code == 143:
		return 3
	case code > 128: // a signal of its own
		return 1
	}
	return 2
}

// finding is the finding for all members that it is true of.
func (t *trouble) finding(c *stage.Context) *stage.Finding {
	up, bound := fractions(c)
	on := ""
	if len(t.nodes) > 0 {
		on = " on " + phrase.Names(t.nodes)
		t.Fact("memberNodes", t.nodes)
	}
	t.Fact("members", t.members)
	if t.Verdict == answer.Starting {
		t.Message = fmt.Sprintf("%s have a node: %s", bound, t.Message)
		unplaced(c, t.Finding)
		pulledBefore(c, t.Finding)
		return t.Detail("%s run; still starting: %s%s", up, phrase.Names(t.members), on)
	}
	if node, ok := t.Facts["node"].(string); ok && len(t.nodes) > 1 {
		t.Message = strings.Replace(t.Message, "node "+node, "nodes "+phrase.Names(t.nodes), 1)
	}
	t.Message = fmt.Sprintf("%s: %s", phrase.Names(t.members), t.Message)
	if t.Verdict == answer.Uncertain {
		unplaced(c, t.Finding)
	}
	t.Detail("%s members have a node, %s run; %s %s this trouble%s", bound, up, phrase.Names(t.members), phrase.Verb(len(t.members), "has", "have"), on)
	if len(t.others) > 0 {
		t.Detail("%s %s trouble of this kind, too, each for a reason of its own", phrase.Names(t.others), phrase.Verb(len(t.others), "has", "have"))
	}
	return t.Finding
}

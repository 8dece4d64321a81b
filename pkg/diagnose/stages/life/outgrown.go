package life

import (
	"cmp"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// outgrown is how a kubelet reports, of a pod that it evicted as its node was low on a resource, which container used more of that than it requests.
var outgrown = regexp.MustCompile(`low on resource: (memory|ephemeral-storage)\..*Container (\S+) was using ([0-9.]+[A-Za-z]*), request is ([0-9.]+[A-Za-z]*)`)

// outgrew adds to a loss that the member used more than it requests, for which it was evicted, once for each role: the next is evicted as well, on whatever node.
func outgrew(c *stage.Context, f *stage.Finding, l lostMember) {
	found, role := outgrown.FindStringSubmatch(l.how), c.Gang.RoleByName(l.Role)
	if found == nil || role == nil || f.Facts["outgrown"] != nil {
		return
	}
	used, err := resource.ParseQuantity(found[3])
	requested, err2 := resource.ParseQuantity(found[4])
	if err != nil || err2 != nil || used.Cmp(requested) <= 0 {
		return
	}
	const gi = 1 << 30
	least := resource.NewQuantity((used.Value()+gi-1)/gi*gi, resource.BinarySI)
	name := corev1.ResourceName(found[1])
	f.Fact("outgrown", found[1]).Detail("container %s used %s of %s and requests %s: whichever node has it next may evict it for that again, unless each %s requests what it uses%s", found[2], found[3], name, found[4], phrase.Member(role.Name), raise(c, role.Name, role.Main == found[2], name, least))
}

// raise is the command that has each member of a role request more, as the end of a sentence; "" where none does.
func raise(c *stage.Context, role string, main bool, name corev1.ResourceName, to *resource.Quantity) string {
	more := resize.Role{Name: role, Memory: to}
	if name == corev1.ResourceEphemeralStorage {
		more = resize.Role{Name: role, Storage: to}
	}
	if !main {
		return ""
	}
	fix := patch.Job(c.Gang, answer.Fix, "", nil, resize.Change{Roles: []resize.Role{more}}.Edit())
	if run := cmp.Or(fix.Resize, fix.Command); run != "" {
		return ": " + run
	}
	return ""
}

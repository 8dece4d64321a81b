package gangcache

import (
	"testing"

	"github.com/gangctl/gangctl/pkg/gang"
)

// A group that is a part of a composite one is shown as such, with the rules that the engine applies to trees; any other has none of them.
func TestPartsOfCompositeGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		parent   string
		together bool
	}{
		"on its own": {}, "a part": {parent: "tree", together: true}, "a part with members of their own": {parent: "tree"},
	} {
		t.Run(name, func(t *testing.T) {
			published := sink{}
			c := New(published, MemberPriority)
			declared := object(objectGang, 1)
			declared.Parent, declared.Together, declared.Topology = tc.parent, tc.together, gang.Topology{Required: "rack"}
			c.SetObject(objectGang, declared)
			c.SetPod(pod("first", ofObject))
			group := published[objectGang.Namespace+"/"+objectGang.VirtualName()]
			if group == nil {
				t.Fatal("it is not shown")
			}
			if ambiguous := c.Ambiguous(objectGang); (ambiguous != "") != (tc.parent != "") {
				t.Errorf("without the gate, the scheduler reports %q", ambiguous)
			}
			parent, constraints, mode := group.Spec.ParentCompositePodGroupName, group.Spec.SchedulingConstraints, group.Spec.DisruptionMode
			if tc.parent == "" {
				if parent != nil || constraints != nil || mode.All == nil {
					t.Errorf("it is shown as a part: %+v", group.Spec)
				}
				return
			}
			if parent == nil || *parent != tc.parent || constraints == nil || len(constraints.Topology) != 1 || constraints.Topology[0].Key != "rack" {
				t.Errorf("it is no part with its topology: %+v", group.Spec)
			}
			if (mode.All != nil) != tc.together || (mode.Single != nil) == tc.together {
				t.Errorf("its members are evicted by %+v", mode)
			}
		})
	}
}

// The pods of a group that is no gang go one by one, unless it declares that they go together.
func TestHowGroupsThatAreNoGangsAreEvicted(t *testing.T) {
	for _, together := range []bool{false, true} {
		published := sink{}
		c := New(published, MemberPriority)
		declared := object(objectGang, 1)
		declared.Basic, declared.Together = true, together
		c.SetObject(objectGang, declared)
		c.SetPod(pod("first", ofObject))
		group := published[objectGang.Namespace+"/"+objectGang.VirtualName()]
		if group == nil || group.Spec.SchedulingPolicy.Basic == nil || (group.Spec.DisruptionMode.All != nil) != together {
			t.Errorf("together %v: it is shown as %+v", together, group)
		}
	}
}

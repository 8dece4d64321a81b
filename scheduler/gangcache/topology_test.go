package gangcache

import (
	"maps"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/gang"
)

// The virtual group has the topology of the object or, where that states none, of the pods. One that cannot be read is not ignored.
func TestTopology(t *testing.T) {
	required := func(key string) map[string]string { return map[string]string{gang.TopologyRequired: key} }
	for name, tc := range map[string]struct {
		object  gang.Topology
		pods    []string // what each requires
		want    map[string]string
		problem string
	}{
		"none":                  {pods: []string{"", ""}},
		"the object's":          {object: gang.Topology{Required: "rack", Preferred: []string{"host"}}, want: map[string]string{gang.TopologyRequired: "rack", gang.TopologyPreferred: "host"}},
		"the pods'":             {pods: []string{"", "rack"}, want: required("rack")},
		"the object before":     {object: gang.Topology{Required: "zone"}, pods: []string{"rack"}, want: required("zone")},
		"pods that disagree":    {pods: []string{"rack", "zone"}, problem: "pods p0 and p1 have different annotations"},
		"one that has no sense": {pods: []string{"r r"}, problem: "is not the key of a label"},
	} {
		t.Run(name, func(t *testing.T) {
			published := sink{}
			r := New(published, MemberPriority)
			declared := object(objectGang, 1)
			declared.Topology = tc.object
			r.SetObject(objectGang, declared)
			r.SetPod(pod("first", ofObject))
			for i, key := range tc.pods {
				p := pod("p"+string(rune('0'+i)), ofObject)
				if key != "" {
					p.Annotations = required(key)
				}
				r.SetPod(p)
			}
			group := published[objectGang.Namespace+"/"+objectGang.VirtualName()]
			if tc.problem != "" {
				if why := r.Incomplete(objectGang); group != nil || !strings.Contains(why, tc.problem) {
					t.Errorf("published %v, waits because %q", group, why)
				}
				return
			}
			if group == nil || !maps.Equal(group.Annotations, tc.want) {
				t.Errorf("published %+v", group)
			}
		})
	}
}

package gangcache

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/koordinator"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
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

// Koordinator's annotation on pods without a PodGroup is read as that of a PodGroup is.
func TestTopologyInTheWordsOfPods(t *testing.T) {
	layers := func(layer string) string {
		return `{"gatherStrategy":[{"layer":"` + layer + `","strategy":"MustGather"}]}`
	}
	for name, tc := range map[string]struct {
		pods    []string // the annotation of each
		want    string
		problem string
	}{
		"none":                {[]string{"", ""}, "", ""},
		"one layer":           {[]string{layers("BlockLayer"), layers("BlockLayer")}, networktopology.LayerKey("BlockLayer"), ""},
		"pods that disagree":  {[]string{layers("BlockLayer"), layers("SpineLayer")}, "", "its pods state different topologies"},
		"what cannot be read": {[]string{"{", "{"}, "", koordinator.TopologyAnnotation},
	} {
		t.Run(name, func(t *testing.T) {
			published := sink{}
			r := New(published, MemberPriority)
			for i, text := range tc.pods {
				p := pod("p"+string(rune('0'+i)), func(p *corev1.Pod) {
					p.Annotations = map[string]string{"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "2"}
				})
				if text != "" {
					p.Annotations[koordinator.TopologyAnnotation] = text
				}
				r.SetPod(p)
			}
			key := gang.Key{Dialect: gang.Koordinator, Namespace: objectGang.Namespace, Name: "g"}
			group := published[key.Namespace+"/"+key.VirtualName()]
			if tc.problem != "" {
				if why := r.Incomplete(key); group != nil || !strings.Contains(why, tc.problem) {
					t.Errorf("published %v, waits because %q", group, why)
				}
				return
			}
			if group == nil || group.Annotations[gang.TopologyRequired] != tc.want {
				t.Errorf("published %+v", group)
			}
		})
	}
}

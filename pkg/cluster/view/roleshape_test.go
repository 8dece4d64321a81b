package view

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
)

// Gangs of different sizes whose members are the same share the shape of the role, though not that of the request. Members that request
// something else, or that are of another namespace, do not, and those whose place depends on other pods are like no others.
func TestRoleShape(t *testing.T) {
	shapes := func(namespace string, size int, edit func(*corev1.Pod)) (request, role string) {
		s := &snapshot.Snapshot{}
		for i := range size {
			p := labelled("g-"+string(rune('0'+i)), nil)
			p.Namespace = namespace
			labels.SetGroup(&p.ObjectMeta, "g", int32(size))
			edit(p)
			s.Pods = append(s.Pods, p)
		}
		w := New(s)
		job, err := w.Find(Query{Kind: "pod", Namespace: namespace, Name: "g-0"})
		if err != nil {
			t.Fatal(err)
		}
		p := w.PlacementRequest(w.Gang(job))
		return p.Shape, p.RoleShape(p.Roles[0].Name)
	}
	same := func(*corev1.Pod) {}
	request, role := shapes("team", 2, same)
	if role == "" {
		t.Fatal("a gang without rules has no shape")
	}
	if r, o := shapes("team", 3, same); o != role || r == request {
		t.Errorf("of another size: role %q, want %q; request %q", o, role, r)
	}
	for name, other := range map[string]func() (string, string){
		"another namespace": func() (string, string) { return shapes("other", 2, same) },
		"another selector": func() (string, string) {
			return shapes("team", 2, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "a"} })
		},
	} {
		if _, o := other(); o == role || o == "" {
			t.Errorf("%s: %q", name, o)
		}
	}
	if r, o := shapes("team", 2, func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "zone"}}
	}); r != "" || o != "" {
		t.Errorf("members that are spread have shapes %q, %q", r, o)
	}
	keeping := func(devices bool) string {
		var p PlacementRequest
		p.KeepDevices = devices
		shape, _ := p.shape(nil, nil, nil)
		return shape
	}
	if keeping(true) == keeping(false) {
		t.Error("gangs whose claims keep their devices have the shape of others")
	}
}

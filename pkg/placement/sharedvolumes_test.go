package placement

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/storage/volume"
)

// Members that use the same claim before it has a volume go where the volume of the first of them will be.
func TestPlaceSharesAVolumeThatIsNotChosenYet(t *testing.T) {
	zones := []*corev1.Node{big("n1", label("zone", "a")), big("n2", label("zone", "a")), big("n3", label("zone", "b"))}
	first := storagev1.VolumeBindingWaitForFirstConsumer
	made, static := aClass("made", "csi.example.com", first), aClass("static", volume.NotSupportedProvisioner, first)
	inZones := volumes(aVolume("pv-a", "static", "zone", "a"), aVolume("pv-b", "static", "zone", "b"))
	user := func(gpus int) *corev1.Pod { return aPod("w", amounts("gpu", gpus), using("data")) }
	other := aPod("p", amounts("gpu", 8))
	for name, tc := range map[string]struct {
		class   *storagev1.StorageClass
		volumes []*corev1.PersistentVolume
		gang    Gang
		ignore  Constraints
		fits    bool
	}{
		"made for one node":                     {class: made, gang: Gang{Roles: []Role{role("W", 2, user(4))}}, fits: true},
		"larger than one node":                  {class: made, gang: Gang{Roles: []Role{role("W", 2, user(8))}}},
		"larger, if it did not matter":          {class: made, gang: Gang{Roles: []Role{role("W", 2, user(8))}}, ignore: sets.New(VolumeNode), fits: true},
		"one member":                            {class: made, gang: Gang{Roles: []Role{role("W", 1, user(8))}}, fits: true},
		"others go elsewhere":                   {class: made, gang: Gang{Roles: []Role{role("W", 2, user(4)), role("P", 2, other)}}, fits: true},
		"others are in the way":                 {class: made, gang: Gang{Roles: []Role{role("W", 2, user(4)), role("P", 3, other)}}},
		"two roles, one claim":                  {class: made, gang: Gang{Roles: []Role{role("W", 1, user(6)), role("V", 1, user(4))}}},
		"a part that is enough":                 {class: made, gang: Gang{MinMember: 1, Roles: []Role{role("W", 2, user(8))}}, fits: true},
		"enough without those that use it":      {class: made, gang: Gang{MinMember: 3, Roles: []Role{role("W", 2, user(9)), role("P", 3, other)}}, fits: true},
		"a volume in the larger zone":           {class: static, volumes: inZones, gang: Gang{Roles: []Role{role("W", 2, user(8))}}, fits: true},
		"no zone is large enough":               {class: static, volumes: inZones, gang: Gang{Roles: []Role{role("W", 3, user(8))}}},
		"the larger zone has no volume":         {class: static, volumes: inZones[1:], gang: Gang{Roles: []Role{role("W", 2, user(8))}}},
		"a volume for one role, not the other":  {class: static, volumes: inZones[1:], gang: Gang{Roles: []Role{role("W", 1, user(8)), role("P", 2, other)}}, fits: true},
		"chosen by now, for a node of its own":  {class: chosen(made, "n3"), gang: Gang{Roles: []Role{role("W", 2, user(4))}}, fits: true},
		"chosen by now, for a node too small":   {class: chosen(made, "n3"), gang: Gang{Roles: []Role{role("W", 3, user(4))}}},
		"far from each other, because of a key": {class: made, gang: Gang{Roles: []Role{role("W", 2, aPod("w", amounts("gpu", 1), using("data"), labelled("job", "j"), apart("zone", "job", "j")))}}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := aClaim("data", tc.class.Name, "", corev1.ReadWriteOnce)
			if node := tc.class.Annotations["node"]; node != "" {
				claim.Annotations = map[string]string{volume.AnnSelectedNode: node}
			}
			c := NewCluster(Objects{Nodes: zones, StorageClasses: classes(tc.class), PersistentVolumes: tc.volumes, PersistentVolumeClaims: claims(claim)})
			r := Place(t.Context(), c, tc.gang, Options{Budget: budgetForTests, Ignore: tc.ignore})
			if r.Fits() != tc.fits || !r.Fits() && !r.Impossible() {
				t.Errorf("%s: %v", r.Proof, r.Placement)
			}
		})
	}
}

// A volume that several nodes may attach is reached from all nodes with the labels by which its driver places it, and from every node where none are known.
func TestPlaceSharesAVolumeOfAZone(t *testing.T) {
	nodes := []*corev1.Node{big("n1", label("zone", "a"), label("host", "1")), big("n2", label("zone", "a"), label("host", "2")), big("n3", label("zone", "b"), label("host", "3"))}
	made := aClass("made", "csi.example.com", storagev1.VolumeBindingWaitForFirstConsumer)
	allowed := made.DeepCopy()
	allowed.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"a", "b"}}}}}
	driver := func(keys ...string) (all []*storagev1.CSINode) {
		for _, n := range nodes {
			reported := &storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "csi.example.com", TopologyKeys: keys}}}}
			reported.Name = n.Name
			all = append(all, reported)
		}
		return all
	}
	for name, tc := range map[string]struct {
		class   *storagev1.StorageClass
		mode    corev1.PersistentVolumeAccessMode
		drivers []*storagev1.CSINode
		members int32
		fits    bool
	}{
		"nothing is known":                 {class: made, mode: corev1.ReadWriteMany, members: 3, fits: true},
		"nothing is known of one for one":  {class: made, mode: corev1.ReadWriteOnce, members: 2},
		"the class allows zones":           {class: allowed, mode: corev1.ReadWriteMany, members: 2, fits: true},
		"more than one zone holds":         {class: allowed, mode: corev1.ReadWriteMany, members: 3},
		"the driver places by zone":        {class: made, mode: corev1.ReadWriteMany, drivers: driver("zone"), members: 2, fits: true},
		"the driver reaches every node":    {class: made, mode: corev1.ReadWriteMany, drivers: driver(), members: 3, fits: true},
		"a single node may attach it":      {class: allowed, mode: corev1.ReadWriteOnce, members: 2},
		"what the driver reports is finer": {class: allowed, mode: corev1.ReadWriteMany, drivers: driver("host", "zone"), members: 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewCluster(Objects{Nodes: nodes, CSINodes: tc.drivers, StorageClasses: classes(tc.class), PersistentVolumeClaims: claims(aClaim("data", tc.class.Name, "", tc.mode))})
			r := Place(t.Context(), c, Gang{Roles: []Role{role("W", tc.members, aPod("w", amounts("gpu", 8), using("data")))}}, Options{Budget: budgetForTests})
			if r.Fits() != tc.fits || !r.Fits() && !r.Impossible() {
				t.Errorf("%s: %v", r.Proof, r.Placement)
			}
		})
	}
}

// chosen is the class for a claim whose node the scheduler has chosen already.
func chosen(class *storagev1.StorageClass, node string) *storagev1.StorageClass {
	class = class.DeepCopy()
	class.Annotations = map[string]string{"node": node}
	return class
}

// Two claims of one class never get the same volume.
func TestPlaceSharesTwoVolumes(t *testing.T) {
	first := storagev1.VolumeBindingWaitForFirstConsumer
	o := Objects{
		Nodes:                  []*corev1.Node{big("n1"), big("n2")},
		StorageClasses:         classes(aClass("static", volume.NotSupportedProvisioner, first)),
		PersistentVolumeClaims: claims(aClaim("data", "static", "", corev1.ReadWriteOnce), aClaim("logs", "static", "", corev1.ReadWriteOnce)),
		PersistentVolumes:      volumes(aVolume("pv-1", "static", corev1.LabelHostname, "n1"), aVolume("pv-2", "static", corev1.LabelHostname, "n2")),
	}
	gang := Gang{Roles: []Role{role("W", 2, aPod("w", amounts("gpu", 1), using("data"))), role("V", 2, aPod("v", amounts("gpu", 1), using("logs")))}}
	if r := Place(t.Context(), NewCluster(o), gang, Options{Budget: budgetForTests}); !r.Fits() {
		t.Errorf("%s with a volume for each", r.Proof)
	}
	o.PersistentVolumes = o.PersistentVolumes[:1]
	for _, count := range []int32{2, 1} {
		gang.Roles[0].Count, gang.Roles[1].Count = count, count
		if r := Place(t.Context(), NewCluster(o), gang, Options{Budget: budgetForTests}); !r.Impossible() {
			t.Errorf("%s with one volume for two claims of %d members: %v", r.Proof, count, r.Placement)
		}
	}
}

// What is no name of a node is none, however long.
func TestSelectedNode(t *testing.T) {
	for text, want := range map[string]string{"": "", "n1": "n1", "n1\nn2": "", strings.Repeat("n", 300): "", "node-1.example.com": "node-1.example.com"} {
		claim := aClaim("data", "made", "", corev1.ReadWriteMany)
		claim.Annotations = map[string]string{volume.AnnSelectedNode: text}
		if got := SelectedNode(claim); got != want {
			t.Errorf("%.20q: got %q", text, got)
		}
	}
}

package placement

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
)

// local is a volume of a node, of a size.
func local(name, node, size string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: "local", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
	}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}
	if node != "" {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
		}}}}}
	}
	return pv
}

// A claim is compared with the volumes of a node and those of no node, however many others there are, and gets the same volume as if it were with all.
func TestOffersOfANode(t *testing.T) {
	var all []*corev1.PersistentVolume
	for i := range 1000 {
		all = append(all, local(fmt.Sprintf("pv%d", i), fmt.Sprintf("n%d", i/2), fmt.Sprintf("%dGi", 2-i%2)))
	}
	taken, free := local("taken", "n3", "1Gi"), local("free", "", "1Gi")
	taken.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "team", Name: "other"}
	for _, volumes := range [][]*corev1.PersistentVolume{all, append([]*corev1.PersistentVolume{taken, free}, all...), append(all[:len(all):len(all)], free, taken)} {
		c := NewCluster(Objects{PersistentVolumes: volumes})
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "c"}, Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(string), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}
		*claim.Spec.StorageClassName = "local"
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n3", Labels: map[string]string{corev1.LabelHostname: "n3"}}}
		few := c.volumes().offered["local"].to(claim, n)
		if len(few) > 3 {
			t.Errorf("a claim is compared with %d of %d volumes", len(few), len(volumes))
		}
		want, err := volume.FindMatchingVolume(claim, volumes, n, nil, true, true)
		if err != nil || want == nil {
			t.Fatal(want, err)
		}
		if got, err := volume.FindMatchingVolume(claim, few, n, nil, true, true); err != nil || got != want {
			t.Errorf("it gets %v and not %s: %v", got, want.Name, err)
		}
	}
}

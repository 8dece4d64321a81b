package agreement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
)

// volumes makes claims: some are bound to a volume of one zone, one node, or no place; others wait for their first consumer, and get
// one of several volumes then, or a new one.
func (g *generator) volumes() {
	for i := range g.IntN(3) {
		name := fmt.Sprintf("s%d-v%d", g.s.Seed, i)
		mode := pick(g, corev1.ReadWriteMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod)
		switch g.IntN(4) {
		case 0:
			if g.o.NoTraps {
				continue
			}
			g.s.Claims = append(g.s.Claims, aClaim(name, dynamicClass, "", mode))
		case 1:
			if g.o.NoTraps {
				continue
			}
			for j := range g.between(1, 3) {
				g.s.Volumes = append(g.s.Volumes, g.aVolume(fmt.Sprintf("%s-%d", name, j), staticClass, mode))
			}
			g.s.Claims = append(g.s.Claims, aClaim(name, staticClass, "", mode))
		default:
			g.s.Volumes = append(g.s.Volumes, g.aVolume(name, "", mode))
			g.s.Claims = append(g.s.Claims, aClaim(name, "", name, mode))
		}
	}
}

func (g *generator) aVolume(name, class string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolume {
	pv := volumeAnywhere(name, class, mode)
	switch g.IntN(3) {
	case 0:
		pv.Spec.NodeAffinity = volumeOn(zoneLabel, fmt.Sprintf("z%d", g.IntN(3)))
	case 1:
		pv.Spec.NodeAffinity = volumeOn(corev1.LabelHostname, g.s.Nodes[g.IntN(len(g.s.Nodes))].Name)
	}
	return pv
}

// volumeAnywhere is a volume that every node reaches.
func volumeAnywhere(name, class string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{mode},
		StorageClassName: class, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/" + name}},
	}}
}

// aClaim is a claim, bound if it names a volume.
func aClaim(name, class, volumeName string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{mode}, VolumeName: volumeName, StorageClassName: &class,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	if volumeName != "" {
		pvc.Annotations = map[string]string{volume.AnnBindCompleted: "yes"}
	}
	return pvc
}

func volumeOn(key, value string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
	}}}}
}

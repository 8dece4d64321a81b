package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/storage/volume"
)

func withDisk(source corev1.VolumeSource) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "disk", VolumeSource: source})
	}
}

func gce(readOnly bool) corev1.VolumeSource {
	return corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "d", ReadOnly: readOnly}}
}

// A disk that is mounted by one pod of a node may keep another off it, whether that pod is there or a member too.
func TestPlaceDisksInPods(t *testing.T) {
	rbd := corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{CephMonitors: []string{"m"}, RBDImage: "i", RBDPool: "p"}}
	ebs := corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "v"}}
	for name, tc := range map[string]struct {
		there, mine corev1.VolumeSource
		eligible    int // nodes for one member, of two, on the first of which a pod mounts there
		most        int32
	}{
		"written by both":     {gce(false), gce(false), 1, 1},
		"read by both":        {gce(true), gce(true), 2, 20},
		"read, and written":   {gce(true), gce(false), 1, 1},
		"of the other cloud":  {ebs, ebs, 1, 1},
		"of Ceph":             {rbd, rbd, 1, 1},
		"another kind":        {rbd, gce(false), 2, 2},
		"a directory of each": {corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, 2, 20},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewCluster(Objects{Nodes: []*corev1.Node{big("n1"), big("n2")}, Pods: []*corev1.Pod{aPod("b", nil, on("n1"), withDisk(tc.there))}})
			pod := aPod("w", nil, withDisk(tc.mine))
			if got := len(c.Matrix(pod).Eligible()); got != tc.eligible {
				t.Errorf("%d nodes, want %d", got, tc.eligible)
			}
			for _, n := range []int32{tc.most, tc.most + 1} {
				if n > 20 {
					continue
				}
				if r := Place(t.Context(), c, Gang{Roles: []Role{role("W", n, pod)}}, Options{Budget: budgetForTests}); r.Fits() != (n <= tc.most) {
					t.Errorf("%d members: %s %+v", n, r.Proof, r.Bound)
				}
			}
		})
	}
}

// A volume that is made for each member from a template in its pod is each member's own.
func TestPlaceEphemeralVolumes(t *testing.T) {
	first, immediate := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	scratch := func(class string) podOption {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: aClaim("", class, "").Spec},
			}}})
			if class == "" {
				p.Spec.Volumes[0].Ephemeral.VolumeClaimTemplate.Spec.StorageClassName = nil
			}
		}
	}
	byDefault := func(class *storagev1.StorageClass) *storagev1.StorageClass {
		class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
		return class
	}
	nodes := []*corev1.Node{big("n1", label(corev1.LabelTopologyZone, "z1")), big("n2", label(corev1.LabelTopologyZone, "z2"))}
	for name, tc := range map[string]struct {
		class *storagev1.StorageClass
		made  *corev1.PersistentVolumeClaim // of the pod that stands for the role
		want  Proof
	}{
		"made on the way":           {class: aClass("c", "csi.example.com", first), want: Witness},
		"made in one zone only":     {class: aClass("c", "csi.example.com", first, "z1"), want: CountingBound},
		"no provisioner":            {class: aClass("c", volume.NotSupportedProvisioner, first), want: CountingBound},
		"no such class":             {class: aClass("other", "csi.example.com", first), want: CountingBound},
		"made already, not placed":  {class: aClass("c", "csi.example.com", first), made: aClaim("w-scratch", "c", ""), want: Witness},
		"made at once, and not yet": {class: aClass("c", "csi.example.com", immediate), made: aClaim("w-scratch", "c", ""), want: CountingBound},
		"to be made at once":        {class: aClass("c", "csi.example.com", immediate), want: Witness},
		"no provisioner, immediate": {class: aClass("c", volume.NotSupportedProvisioner, immediate), want: CountingBound},
		"of the default class":      {class: byDefault(aClass("", "csi.example.com", first)), want: Witness},
		"there is no default class": {class: aClass("", "csi.example.com", first), want: CountingBound},
	} {
		t.Run(name, func(t *testing.T) {
			o := Objects{Nodes: nodes, StorageClasses: classes(tc.class)}
			pod := aPod("w", amounts("gpu", 8), scratch(map[bool]string{true: "c"}[tc.class.Name != ""]))
			if tc.class.Name == "" {
				tc.class.Name = "standard"
			}
			if tc.made != nil {
				tc.made.OwnerReferences = append(tc.made.OwnerReferences, controlledBy(pod))
				o.PersistentVolumeClaims = claims(tc.made)
			}
			r := Place(t.Context(), NewCluster(o), Gang{Roles: []Role{role("W", 2, pod)}}, Options{Budget: budgetForTests})
			if r.Proof != tc.want {
				t.Errorf("%s %+v, want %s", r.Proof, r.Bound, tc.want)
			}
		})
	}
}

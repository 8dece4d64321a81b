package view

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
)

// Members whose claims are made of one template are alike until one of the claims is tied to nodes that others are not.
func TestMembersWithClaimsOfTheirOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		made  func(s *snapshot.Snapshot)
		roles []int32
	}{
		"none is made": {roles: []int32{4}},
		"one volume is made, in a zone": {made: func(s *snapshot.Snapshot) {
			diskIn(s, "g-2-scratch", "z1")
		}, roles: []int32{3, 1}},
		"volumes in two zones": {made: func(s *snapshot.Snapshot) {
			for i, zone := range []string{"z1", "z2", "z2", "z1"} {
				diskIn(s, "g-"+string(rune('0'+i))+"-scratch", zone)
			}
		}, roles: []int32{2, 2}},
		"one volume is on its way to a node": {made: func(s *snapshot.Snapshot) {
			s.Claims = append(s.Claims, diskClaim("g-1-scratch"), diskClaim("g-2-scratch"))
			s.Claims[1].Annotations = map[string]string{"volume.kubernetes.io/selected-node": "n1"}
		}, roles: []int32{3, 1}},
		"one claim is being deleted": {made: func(s *snapshot.Snapshot) {
			s.Claims = append(s.Claims, diskClaim("g-1-scratch"))
			s.Claims[0].DeletionTimestamp = ptr.To(metav1.Unix(1, 0))
		}, roles: []int32{3, 1}},
		"one has devices": {made: func(s *snapshot.Snapshot) {
			for _, pod := range s.Pods[:3] {
				claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: pod.Name + "-x"}}
				s.ResourceClaims = append(s.ResourceClaims, claim)
				pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &claim.Name}}
			}
			s.ResourceClaims[1].Status.Allocation = &resourceapi.AllocationResult{}
		}, roles: []int32{3, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &snapshot.Snapshot{
				StorageClasses:         []*storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}},
				ResourceClaimTemplates: []*resourceapi.ResourceClaimTemplate{{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gpus"}}},
			}
			for i := range 4 {
				s.Pods = append(s.Pods, withOwnClaims("g-"+string(rune('0'+i))))
			}
			if tc.made != nil {
				tc.made(s)
			}
			w := New(s)
			job, err := w.Find(Query{Kind: "pod", Namespace: "team", Name: "g-0"})
			if err != nil {
				t.Fatal(err)
			}
			var roles []int32
			for _, r := range w.PlacementRequest(w.Gang(job)).Roles {
				roles = append(roles, r.Count)
			}
			if !slices.Equal(roles, tc.roles) {
				t.Errorf("roles of %d members, want %d", roles, tc.roles)
			}
		})
	}
}

// withOwnClaims is a member of a gang of four with a volume and a device of its own.
func withOwnClaims(name string) *corev1.Pod {
	p := labelled(name, nil)
	labels.SetGroup(&p.ObjectMeta, "g", 4)
	p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("disk")}},
	}}}}
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("gpus")}}
	return p
}

func diskClaim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("disk")},
	}
}

// diskIn adds a claim that is bound to a volume in a zone.
func diskIn(s *snapshot.Snapshot, claim, zone string) {
	pvc := diskClaim(claim)
	pvc.Spec.VolumeName, pvc.Status.Phase = "pv-"+claim, corev1.ClaimBound
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: pvc.Spec.VolumeName}}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
	}}}}
	s.Claims, s.Volumes = append(s.Claims, pvc), append(s.Volumes, pv)
}

// Members that mount claims of other names are alike where every node reaches the volumes, whoever has them; so are gangs then.
func TestMembersWithNamedClaims(t *testing.T) {
	shared, one := corev1.ReadWriteMany, corev1.ReadWriteOnce
	for name, tc := range map[string]struct {
		mode   corev1.PersistentVolumeAccessMode
		change func(s *snapshot.Snapshot, pv *corev1.PersistentVolume)
		roles  []int32
		shape  bool
	}{
		"network storage":              {mode: shared, roles: []int32{4}, shape: true},
		"network storage for one node": {mode: one, roles: []int32{1, 1, 1, 1}},
		"one volume is in a zone": {mode: shared, change: func(_ *snapshot.Snapshot, pv *corev1.PersistentVolume) {
			pv.Labels = map[string]string{corev1.LabelTopologyZone: "z1"}
		}, roles: []int32{3, 1}},
		"one claim is not bound": {mode: shared, change: func(s *snapshot.Snapshot, _ *corev1.PersistentVolume) { s.Claims[1].Spec.VolumeName = "" }, roles: []int32{3, 1}},
		"one claim is being deleted": {mode: shared, change: func(s *snapshot.Snapshot, _ *corev1.PersistentVolume) {
			s.Claims[1].DeletionTimestamp = ptr.To(metav1.Unix(1, 0))
		}, roles: []int32{3, 1}},
		"nodes count the volumes of the driver": {mode: shared, change: counted, roles: []int32{3, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &snapshot.Snapshot{}
			for i := range 4 {
				p := labelled("g-"+string(rune('0'+i)), nil)
				labels.SetGroup(&p.ObjectMeta, "g", 4)
				p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: p.Name}}}}
				pvc := diskClaim(p.Name)
				pvc.Spec.AccessModes, pvc.Spec.VolumeName, pvc.Status.Phase = []corev1.PersistentVolumeAccessMode{tc.mode}, "pv-"+p.Name, corev1.ClaimBound
				pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: pvc.Spec.VolumeName}}
				pv.Spec.NFS = &corev1.NFSVolumeSource{Server: "nfs", Path: "/" + p.Name}
				s.Pods, s.Claims, s.Volumes = append(s.Pods, p), append(s.Claims, pvc), append(s.Volumes, pv)
			}
			if tc.change != nil {
				tc.change(s, s.Volumes[1])
			}
			w := New(s)
			job, err := w.Find(Query{Kind: "pod", Namespace: "team", Name: "g-0"})
			if err != nil {
				t.Fatal(err)
			}
			p, roles := w.PlacementRequest(w.Gang(job)), []int32(nil)
			for _, r := range p.Roles {
				roles = append(roles, r.Count)
			}
			slices.Sort(roles)
			slices.Reverse(roles)
			if !slices.Equal(roles, tc.roles) || (p.Shape != "") != tc.shape {
				t.Errorf("roles of %d members, want %d; shape %q", roles, tc.roles, p.Shape)
			}
		})
	}
}

// counted has a volume be one of a driver of which nodes attach only so many.
func counted(s *snapshot.Snapshot, pv *corev1.PersistentVolume) {
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: pv.Name}}
	s.CSINodes = []*storagev1.CSINode{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{Name: "csi.example.com", NodeID: "n1", Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To[int32](4)}}},
	}}}
}

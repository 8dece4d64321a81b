package planner

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// claimsByName are ResourceClaims.
type claimsByName map[string]*resourceapi.ResourceClaim

// Get implements claimGetter.
func (c claimsByName) Get(_, name string) (*resourceapi.ResourceClaim, error) {
	if claim, ok := c[name]; ok {
		return claim, nil
	}
	return nil, fmt.Errorf("no claim %s", name)
}

// Members whose claims are made of one template are alike, until one of the claims has devices, which are on some node.
func TestMembersWithClaimsOfATemplate(t *testing.T) {
	members, claims := []*corev1.Pod{}, claimsByName{}
	for i := range 72 {
		m := member("g", i, "cpu", "1")
		claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: m.Name + "-gpu"}}
		claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu", Count: 4}}}
		m.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("gpus")}}
		m.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &claim.Name}}
		members, claims[claim.Name] = append(members, m), claim
	}
	roles := func() (counts []int32) {
		p, err := rolesOf(members, gang.Topology{}, &placement.AntiAffinity{}, claims, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.roles {
			counts = append(counts, r.Count)
		}
		return counts
	}
	if got := roles(); !slices.Equal(got, []int32{72}) {
		t.Errorf("equal claims: %v", got)
	}
	claims["g-1-gpu"].Status.Allocation = &resourceapi.AllocationResult{}
	claims["g-2-gpu"].Spec.Devices.Requests[0].Exactly.Count = 8
	delete(claims, "g-3-gpu")
	if got := roles(); !slices.Equal(got, []int32{69, 1, 1, 1}) {
		t.Errorf("an allocated claim, a larger one, and one that is not there: %v", got)
	}
}

// Members whose volumes are made of one template are alike, until the volume of one is on some nodes.
func TestMembersWithVolumesOfATemplate(t *testing.T) {
	class := "disk"
	first := storagev1.VolumeBindingWaitForFirstConsumer
	objects := placement.Objects{StorageClasses: []*storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "csi.example.com", VolumeBindingMode: &first}}}
	var members []*corev1.Pod
	for i := range 72 {
		m := member("g", i, "cpu", "1")
		m.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}},
		}}}}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name + "-scratch"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}}
		members, objects.PersistentVolumeClaims = append(members, m), append(objects.PersistentVolumeClaims, claim)
	}
	roles := func() (counts []int32) {
		p, err := rolesOf(members, gang.Topology{}, &placement.AntiAffinity{}, nil, placement.NewCluster(objects).OwnVolume)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.roles {
			counts = append(counts, r.Count)
		}
		return counts
	}
	if got := roles(); !slices.Equal(got, []int32{72}) {
		t.Errorf("equal volumes: %v", got)
	}
	objects.PersistentVolumeClaims[1].Annotations = map[string]string{volume.AnnSelectedNode: "n1"}
	if got := roles(); !slices.Equal(got, []int32{71, 1}) {
		t.Errorf("one is made for a node: %v", got)
	}
}

// Members that mount volumes of other names are alike where every node reaches these, whoever has them: there is a plan for any number.
func TestMembersWithNetworkStorage(t *testing.T) {
	var members []*corev1.Pod
	var objects placement.Objects
	for i := range 72 {
		m := member("g", i, "cpu", "1")
		m.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: m.Name}}}}
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}
		pv.Spec.NFS = &corev1.NFSVolumeSource{Server: "nfs", Path: "/" + m.Name}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, VolumeName: m.Name,
		}}
		claim.Status.Phase = corev1.ClaimBound
		members, objects.PersistentVolumes, objects.PersistentVolumeClaims = append(members, m), append(objects.PersistentVolumes, pv), append(objects.PersistentVolumeClaims, claim)
	}
	objects.PersistentVolumeClaims[1].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	p, err := rolesOf(members, gang.Topology{}, &placement.AntiAffinity{}, nil, placement.NewCluster(objects).OwnVolume)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.roles) != 2 || p.roles[0].Count != 71 {
		t.Errorf("%d roles", len(p.roles))
	}
}

// Members whose volumes are there, and can be reached from everywhere, are alike where they are of one driver: nodes count each driver for itself.
func TestMembersWithVolumesOfTwoDrivers(t *testing.T) {
	class, objects := "disk", placement.Objects{}
	var members []*corev1.Pod
	for i := range 6 {
		m := member("g", i, "cpu", "1")
		m.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}},
		}}}}
		name := m.Name + "-scratch"
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: []string{"csi.example.com", "other.example.com"}[i/4], VolumeHandle: name}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: name}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, VolumeName: name}}
		claim.Status.Phase = corev1.ClaimBound
		members, objects.PersistentVolumes, objects.PersistentVolumeClaims = append(members, m), append(objects.PersistentVolumes, pv), append(objects.PersistentVolumeClaims, claim)
	}
	p, err := rolesOf(members, gang.Topology{}, &placement.AntiAffinity{}, nil, placement.NewCluster(objects).OwnVolume)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.roles) != 2 || p.roles[0].Count != 4 || p.roles[1].Count != 2 {
		t.Errorf("%d roles", len(p.roles))
	}
}

// Disks that a member names itself count for the limits of nodes, as those of its claims do.
func TestMembersWithDisks(t *testing.T) {
	for name, tc := range map[string]struct {
		source corev1.VolumeSource
		want   bool
	}{
		"a disk":  {corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}, true},
		"a claim": {corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}, true},
		"scratch": {corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, false},
	} {
		m, p := member("g", 0, "cpu", "1"), memberRoles{}
		m.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: tc.source}}
		if p.inspect(m); p.refersToClaims != tc.want || p.refersToDevices {
			t.Errorf("%s: %t", name, p.refersToClaims)
		}
	}
}

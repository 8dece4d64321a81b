package planner

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/poll"
)

// storageClass adds a class whose volumes are made when the first pod that uses a claim has a node.
func (r *rig) storageClass(name string) {
	r.Helper()
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "nfs.example.com", VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	r.must(r.api.Create(storagev1.SchemeGroupVersion.WithResource("storageclasses"), class, ""))
	poll.Until(r, "the engine knows the class", func() bool {
		_, err := r.planner.engine.Framework().SharedInformerFactory().Storage().V1().StorageClasses().Lister().Get(name)
		return err == nil
	})
}

// volumeClaim adds a claim of a class.
func (r *rig) volumeClaim(name, class string, mode corev1.PersistentVolumeAccessMode) {
	r.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-claim"}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{mode},
		Resources: corev1.VolumeResourceRequirements{Requests: resources("storage", "1Gi")},
	}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
	r.must(r.api.Create(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), claim, "default"))
	poll.Until(r, "the engine knows the claim", func() bool {
		_, err := r.planner.engine.Framework().SharedInformerFactory().Core().V1().PersistentVolumeClaims().Lister().PersistentVolumeClaims("default").Get(name)
		return err == nil
	})
}

// selectedNode is the node for which the volume of a claim is to be made; empty for none.
func (r *rig) selectedNode(name string) string {
	r.Helper()
	claim, err := r.client.CoreV1().PersistentVolumeClaims("default").Get(r.Context(), name, metav1.GetOptions{})
	r.must(err)
	return claim.Annotations[volume.AnnSelectedNode]
}

// provisioned gives a claim its volume, as a provisioner does.
func (r *rig) provisioned(name string) {
	r.Helper()
	claim, err := r.client.CoreV1().PersistentVolumeClaims("default").Get(r.Context(), name, metav1.GetOptions{})
	r.must(err)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: *claim.Spec.StorageClassName, AccessModes: claim.Spec.AccessModes, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		ClaimRef: &corev1.ObjectReference{Namespace: "default", Name: name, UID: claim.UID},
	}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}
	r.must(r.api.Create(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), pv, ""))
	claim.Spec.VolumeName, claim.Status.Phase = pv.Name, corev1.ClaimBound
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBindCompleted, "yes")
	r.must(r.api.Update(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), claim, "default"))
}

// mounting is a member of a gang that uses a claim, and the whole of a node.
func mounting(i int) *corev1.Pod {
	p := pod(fmt.Sprintf("w%d", i), "g", "nvidia.com/gpu", "8")
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	return p
}

// A claim that members share from several nodes gets its volume when all of them have a place, and before any has a node.
func TestVolumeThatMembersShare(t *testing.T) {
	r := newRig(t)
	r.storageClass("shared")
	r.volumeClaim("data", "shared", corev1.ReadWriteMany)
	r.node("n1", "nvidia.com/gpu", "8")
	r.gang("g", 2)
	r.create(mounting(1), mounting(2))
	poll.Until(t, "one member would find a place", func() bool { return r.tried("g") > 0 && strings.Contains(r.message("w1"), "1 of the 2 members") })
	if node := r.selectedNode("data"); node != "" {
		t.Errorf("a volume is made for %s, and the gang has no place", node)
	}
	r.node("n2", "nvidia.com/gpu", "8")
	poll.Until(t, "the volume is to be made", func() bool { return r.selectedNode("data") != "" })
	poll.Until(t, "that is reported", func() bool {
		return strings.Contains(r.message("w1"), "PersistentVolumeClaim data, which its members share, has no volume yet: it is being provisioned for node n")
	})
	if places := r.places(); len(places) > 0 {
		t.Errorf("members have nodes before their volume is there: %v", places)
	}
	r.provisioned("data")
	poll.Until(t, "both have nodes", func() bool { return len(r.places()) == 2 })
}

// A volume that a single node may attach is not made for members on several.
func TestVolumeOfOneNodeIsNotShared(t *testing.T) {
	r := newRig(t)
	r.storageClass("shared")
	r.volumeClaim("data", "shared", corev1.ReadWriteOnce)
	r.node("n1", "nvidia.com/gpu", "8")
	r.node("n2", "nvidia.com/gpu", "8")
	r.gang("g", 2)
	r.create(mounting(1), mounting(2))
	poll.Until(t, "it is refused", func() bool { return r.tried("g") > 0 && r.message("w1") != "" })
	if node := r.selectedNode("data"); node != "" || len(r.places()) > 0 {
		t.Errorf("a volume is made for %s, places %v", node, r.places())
	}
}

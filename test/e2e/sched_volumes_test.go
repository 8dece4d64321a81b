package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
)

// TestVolumes: of a gang whose members have a volume each, none is provisioned before all members have a node, and then all are.
func TestVolumes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "--nodes=2", "--cpu=4", "--operator=false", "--run-for=0", "--volumes")
	var names []string
	for i := range 3 {
		p := plain(fmt.Sprintf("stored-%d", i), "gang-scheduler", "3")
		labels.SetGroup(&p.ObjectMeta, "stored", 3)
		p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			}},
		}}}}
		names = append(names, p.Name)
		c.create(t, p)
	}
	volumes := func(ctx context.Context) (exist, bound int) {
		all, err := c.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		must(t, err)
		claims, err := c.client.CoreV1().PersistentVolumeClaims(space).List(ctx, metav1.ListOptions{})
		must(t, err)
		for _, claim := range claims.Items {
			if claim.Status.Phase == corev1.ClaimBound {
				bound++
			}
		}
		return len(all.Items), bound
	}
	c.waitMessage(t, names[2], "2 of the 3 members that its gang needs fit")
	if exist, _ := volumes(t.Context()); exist != 0 || c.bound(t, names...) != 0 {
		t.Errorf("%d volumes were provisioned for a gang that waits, of which %d members have nodes", exist, c.bound(t, names...))
	}
	if _, stderr, err := c.Run("node", "add", "--count", "1", "--cpu", "4"); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	c.placed(t, names...)
	if exist, bound := volumes(t.Context()); exist != 3 || bound != 3 {
		t.Errorf("%d volumes, %d claims bound, want 3", exist, bound)
	}
	for _, name := range names {
		must(t, c.client.CoreV1().Pods(space).Delete(t.Context(), name, now()))
	}
	eventually(t, "the volumes are gone", func(ctx context.Context) bool {
		exist, _ := volumes(ctx)
		return exist == 0
	})
	c.sharesVolume(t)
}

// sharesVolume: members on three nodes share a claim that has no volume yet. It gets one when all of them have a place, and then they start.
func (c *cluster) sharesVolume(t *testing.T) {
	claims := c.client.CoreV1().PersistentVolumeClaims(space)
	_, err := claims.Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "shared"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}, metav1.CreateOptions{})
	must(t, err)
	member := func(i int) string {
		p := plain(fmt.Sprintf("sharing-%d", i), "gang-scheduler", "3")
		labels.SetGroup(&p.ObjectMeta, "sharing", 4)
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "shared"}}}}
		c.create(t, p)
		return p.Name
	}
	names := []string{member(0), member(1), member(2), member(3)}
	c.waitMessage(t, names[3], "3 of the 4 members that its gang needs fit")
	claim, err := claims.Get(t.Context(), "shared", metav1.GetOptions{})
	must(t, err)
	if claim.Status.Phase == corev1.ClaimBound || len(claim.Annotations["volume.kubernetes.io/selected-node"]) > 0 || c.bound(t, names...) != 0 {
		t.Errorf("a volume is provisioned for a gang that waits: %v", claim.Annotations)
	}
	if _, stderr, err := c.Run("node", "add", "--count", "1", "--cpu", "4"); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	c.placed(t, names...)
	claim, err = claims.Get(t.Context(), "shared", metav1.GetOptions{})
	must(t, err)
	if claim.Status.Phase != corev1.ClaimBound {
		t.Errorf("the claim is %s", claim.Status.Phase)
	}
}

package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// pvc adds a claim; class "" is none.
func pvc(c *clustertest.Cluster, name, class string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	p := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: "pvc", CreationTimestamp: clustertest.Ago(20 * time.Minute)}, Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
	p.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	if class != "" {
		p.Spec.StorageClassName = &class
	}
	c.Put(p)
	return p
}

// named adds claim data, made some time ago for volume vol, which is free.
func named(c *clustertest.Cluster, ago time.Duration) *corev1.PersistentVolume {
	claim := pvc(c, "data", "nfs", corev1.ClaimPending)
	claim.Spec.VolumeName, claim.CreationTimestamp = "vol", clustertest.Ago(ago)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "vol"}, Spec: corev1.PersistentVolumeSpec{StorageClassName: "nfs", AccessModes: claim.Spec.AccessModes}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}
	c.Put(pv)
	return pv
}

func class(c *clustertest.Cluster, name, provisioner string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	sc := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode}
	c.Put(sc)
	return sc
}

func mounts(claims ...string) func(*clustertest.Gang) { return spec(mounting(claims...)) }

func mounting(claims ...string) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) {
		for _, claim := range claims {
			p.Volumes = append(p.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
		}
	}
}

func TestVolumes(t *testing.T) {
	const wait, now = storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	ephemeral := func(class string) func(*clustertest.Gang) {
		return spec(func(p *corev1.PodSpec) {
			template := &corev1.PersistentVolumeClaimTemplate{}
			template.Spec.StorageClassName = &class
			template.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
			p.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: template}}}}
		})
	}
	check(t, []testCase{
		{name: "storage for the volume of one member alone", code: answer.PVCUnbound, exit: 4, first: "^each worker needs a volume of 2Ti of class local, and only n1 has storage for one: 1/2 members fit$",
			wantText: []string{"n2 has storage of class local for a volume of at most 500Gi"}, never: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
				yes := true
				c.Put(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "topolvm.io"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &yes}})
				class(c, "local", "topolvm.io", wait)
				for node, has := range map[string]string{"n1": "3Ti", "n2": "500Gi"} {
					c.Object(map[string]any{"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": map[string]any{"namespace": "kube-system", "name": "c-" + node}, "storageClassName": "local",
						"capacity": has, "nodeTopology": map[string]any{"matchLabels": map[string]any{corev1.LabelHostname: node}}})
				}
				c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
					ephemeral("local")(g)
					unsized := g.Spec
					g.Spec = func(p *corev1.PodSpec) {
						unsized(p)
						p.Volumes[0].Ephemeral.VolumeClaimTemplate.Spec.Resources.Requests = clustertest.List("storage", "2Ti")
					}
				}))
			}},
		{name: "no claim of the name", code: answer.PVCUnbound, exit: 4, first: "PersistentVolumeClaim daat does not exist in namespace team", wantText: []string{"did you mean data"}, fix: "mount claim data instead of daat", build: func(c *clustertest.Cluster) {
			pvc(c, "data", "", corev1.ClaimBound)
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("daat")))
		}},
		{name: "no claim, and too big whatever it mounts", code: answer.PVCUnbound, exit: 4, also: []answer.Code{answer.TooBig}, wantText: []string{"each worker requests 16 GPUs, and the largest node has 8"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 16, mounts("data")))
		}},
		{name: "no claim, and it would fit", code: answer.PVCUnbound, exit: 4, wantText: []string{"nothing makes a claim that a pod names"}, never: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "claims may not be listed", code: answer.Fits, exit: 3, never: []answer.Code{answer.PVCUnbound}, build: func(c *clustertest.Cluster) {
			c.S.Denied = []snapshot.Denial{{Resource: "persistentvolumeclaims"}}
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data"), young))
		}},
		{name: "no such class", code: answer.PVCUnbound, exit: 4, first: `StorageClass "fast" of PersistentVolumeClaim data does not exist; there are: slow`, wantText: []string{"storageclass.storage.k8s.io .fast. not found"}, fix: "with a StorageClass that exists", build: func(c *clustertest.Cluster) {
			pvc(c, "data", "fast", corev1.ClaimPending)
			class(c, "slow", "x", now)
			c.Event("PersistentVolumeClaim", "team", "data", "persistentvolume-controller", "ProvisioningFailed", `storageclass.storage.k8s.io "fast" not found`, time.Minute)
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "bound when the first pod has a node", code: answer.Fits, exit: 3, never: []answer.Code{answer.PVCUnbound}, build: func(c *clustertest.Cluster) {
			pvc(c, "data", "local", corev1.ClaimPending)
			class(c, "local", "csi.example.com", wait)
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data"), young))
		}},
		{name: "bound when the first pod has a node, and others share it", code: answer.PVCUnbound, exit: 4, first: "data gets its volume where the first of 2 members goes", not: []string{"bind it before"}, never: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
			pvc(c, "data", "local", corev1.ClaimPending).Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
			class(c, "local", "csi.example.com", wait)
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "made first for members that share it", code: answer.Fits, exit: 3, never: []answer.Code{answer.PVCUnbound}, build: func(c *clustertest.Cluster) {
			pvc(c, "data", "shared", corev1.ClaimPending).Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
			class(c, "shared", "nfs.example.com", wait)
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data"), young))
		}},
		{name: "being made for members that share it", code: answer.PVCUnbound, exit: 3, first: "data, which 2 members share, has no volume yet: it is being provisioned for node n1", build: func(c *clustertest.Cluster) {
			claim := pvc(c, "data", "shared", corev1.ClaimPending)
			claim.Spec.AccessModes, claim.Annotations = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, map[string]string{"volume.kubernetes.io/selected-node": "n1"}
			class(c, "shared", "nfs.example.com", wait)
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data"), young))
		}},
		{name: "bound when the first pod has a node, and that fails", code: answer.PVCUnbound, exit: 4, first: "cannot be provisioned.*quota exceeded", fix: "let csi.example.com make the volume of claim data", build: func(c *clustertest.Cluster) {
			pvc(c, "data", "local", corev1.ClaimPending)
			class(c, "local", "csi.example.com", wait)
			c.Event("PersistentVolumeClaim", "team", "data", "csi.example.com", "ProvisioningFailed", "failed to provision volume: quota exceeded", time.Minute)
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "that failed long ago", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			pvc(c, "data", "local", corev1.ClaimPending).CreationTimestamp = clustertest.Ago(3 * time.Hour)
			class(c, "local", "csi.example.com", wait)
			c.Event("PersistentVolumeClaim", "team", "data", "csi.example.com", "ProvisioningFailed", "failed to provision volume: quota exceeded", 2*time.Hour)
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data"), young))
		}},
		{name: "binds at once, and has not", code: answer.PVCUnbound, exit: 4, first: "class fast binds at once and has not for 20m", build: func(c *clustertest.Cluster) {
			pvc(c, "data", "fast", corev1.ClaimPending)
			class(c, "fast", "csi.example.com", now)
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "binds at once, and was made a moment ago", code: answer.PVCUnbound, exit: 3, first: "Claim data is being provisioned", never: []answer.Code{answer.TooBig}, alone: true, build: func(c *clustertest.Cluster) {
			pvc(c, "data", "fast", corev1.ClaimPending).CreationTimestamp = clustertest.Ago(10 * time.Second)
			class(c, "fast", "csi.example.com", now)
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "bound, and being deleted", code: answer.PVCUnbound, exit: 4, first: "claim data is being deleted", never: []answer.Code{answer.TooBig}, alone: true, wantText: []string{"it was deleted 60s ago, and goes when no pod on a node mounts it"}, fix: "make claim data again once it is gone", build: func(c *clustertest.Cluster) {
			boundClaim(c, "", corev1.ReadWriteMany)
			at := clustertest.Ago(time.Minute)
			c.S.Claims[0].DeletionTimestamp, c.S.Claims[0].Finalizers = &at, []string{"kubernetes.io/pvc-protection"}
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "being deleted, and too big whatever it mounts", code: answer.PVCUnbound, exit: 4, also: []answer.Code{answer.TooBig}, wantText: []string{"each worker requests 16 GPUs"}, build: func(c *clustertest.Cluster) {
			boundClaim(c, "", corev1.ReadWriteMany)
			at := clustertest.Ago(time.Minute)
			c.S.Claims[0].DeletionTimestamp = &at
			c.Nodes(2, 8).Add(gangOf(1, 16, mounts("data")))
		}},
		{name: "for a volume of another claim", code: answer.PVCUnbound, exit: 5, first: "claim data is not bound to volume vol", wantText: []string{"volume vol is Bound, of claim old/data"}, never: []answer.Code{answer.TooBig}, alone: true, fix: "create a PersistentVolume of class nfs for claim data, and make the claim again", build: func(c *clustertest.Cluster) {
			pv := named(c, time.Second)
			pv.Spec.ClaimRef, pv.Status.Phase = &corev1.ObjectReference{Namespace: "old", Name: "data"}, corev1.VolumeBound
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "for a volume that a former claim of the name has left", code: answer.PVCUnbound, exit: 5, first: "claim data is not bound to volume vol", wantText: []string{"volume vol is Released, of claim team/data"}, never: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
			pv := named(c, time.Second)
			pv.Spec.ClaimRef, pv.Status.Phase = &corev1.ObjectReference{Namespace: "team", Name: "data", UID: "former"}, corev1.VolumeReleased
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "for a volume that is not there", code: answer.PVCUnbound, exit: 5, first: "volume vol of claim data not found", never: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
			named(c, time.Second)
			c.S.Volumes = nil
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "for a volume that is free, a moment ago", code: answer.PVCUnbound, exit: 3, first: "data is being bound to volume vol", build: func(c *clustertest.Cluster) {
			named(c, time.Second)
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "for a volume that is free, long ago", code: answer.PVCUnbound, exit: 4, first: "claim data is not bound to volume vol yet", build: func(c *clustertest.Cluster) {
			named(c, time.Hour)
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "for a volume, and volumes may not be listed", code: answer.Fits, exit: 3, never: []answer.Code{answer.PVCUnbound}, build: func(c *clustertest.Cluster) {
			named(c, time.Hour)
			c.S.Volumes, c.S.Denied = nil, []snapshot.Denial{{Resource: "persistentvolumes"}}
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data"), young))
		}},
		{name: "being deleted, and enough members do without", code: answer.Fits, exit: 3, never: []answer.Code{answer.PVCUnbound}, build: func(c *clustertest.Cluster) {
			boundClaim(c, "", corev1.ReadWriteMany)
			at := clustertest.Ago(time.Minute)
			c.S.Claims[0].DeletionTimestamp = &at
			c.Nodes(2, 8).Add(gangOf(1, 8, young, func(g *clustertest.Gang) {
				g.Min, g.More = 1, []clustertest.Role{{Name: "Chief", Replicas: 1, Spec: mounting("data")}}
			}))
		}},
		{name: "no provisioner, and there is no volume", code: answer.PVCUnbound, exit: 5, first: "data.*no free volume", fix: "create a PersistentVolume of class local for claim data", build: func(c *clustertest.Cluster) {
			pvc(c, "data", "local", corev1.ClaimPending)
			class(c, "local", "kubernetes.io/no-provisioner", wait)
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "no provisioner, and the volume is kept for an earlier claim", code: answer.PVCUnbound, exit: 5, first: "vol fits it, but is Released", wantText: []string{"clear the claimRef of volume vol"}, not: []string{"create a PersistentVolume"}, build: func(c *clustertest.Cluster) {
			pvc(c, "data", "local", corev1.ClaimPending)
			class(c, "local", "kubernetes.io/no-provisioner", wait)
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "vol"}, Spec: corev1.PersistentVolumeSpec{StorageClassName: "local", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased}}
			pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "team", Name: "data", UID: "earlier"}
			c.Put(pv)
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "no provisioner, but there is a volume", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			pvc(c, "data", "local", corev1.ClaimPending)
			class(c, "local", "kubernetes.io/no-provisioner", wait)
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "vol"}, Spec: corev1.PersistentVolumeSpec{StorageClassName: "local", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}
			c.Put(pv)
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data"), young))
		}},
		{name: "no provisioner, and the volume is too small", code: answer.PVCUnbound, exit: 5, first: "there is no free volume that fits it; the largest, vol, has 50Gi, and it requests 100Gi$", build: func(c *clustertest.Cluster) {
			pvc(c, "data", "local", corev1.ClaimPending).Spec.Resources.Requests = clustertest.List("storage", "100Gi")
			class(c, "local", "kubernetes.io/no-provisioner", wait)
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "vol"}, Spec: corev1.PersistentVolumeSpec{StorageClassName: "local", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}
			pv.Spec.Capacity = clustertest.List("storage", "50Gi")
			c.Put(pv)
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "on a node that is gone", code: answer.PVCUnbound, exit: 5, first: "^the volume of PersistentVolumeClaim data is on n9, which is not in the cluster$", fix: "create a PersistentVolume for claim data, and make the claim again", wantText: []string{"if n9 comes back, so does the volume"}, never: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data")))
			boundClaim(c, "n9", corev1.ReadWriteMany)
			c.S.Volumes[0].Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Key = corev1.LabelHostname
		}},
		{name: "lost", code: answer.PVCUnbound, exit: 4, first: "has lost its volume vol", fix: "make claim data again", build: func(c *clustertest.Cluster) {
			pvc(c, "data", "fast", corev1.ClaimLost).Spec.VolumeName = "vol"
			class(c, "fast", "csi.example.com", now)
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "lost, and nothing makes another", code: answer.PVCUnbound, exit: 5, first: "has lost its volume vol", fix: "create a PersistentVolume of class fast for claim data, and make the claim again", build: func(c *clustertest.Cluster) {
			pvc(c, "data", "fast", corev1.ClaimLost).Spec.VolumeName = "vol"
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "no class at all, and the only volume is too small", code: answer.PVCUnbound, exit: 5, first: "no volume fits it; the largest, vol, has 200Gi, and it requests 500Gi$", fix: "create a PersistentVolume for claim data", not: []string{"StorageClass that exists"}, build: func(c *clustertest.Cluster) {
			pvc(c, "data", "", corev1.ClaimPending).Spec.Resources.Requests = clustertest.List("storage", "500Gi")
			c.Put(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "vol"}, Spec: corev1.PersistentVolumeSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, Capacity: clustertest.List("storage", "200Gi")}})
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "no class at all, and the only volume is for one node", code: answer.PVCUnbound, exit: 5, first: "the largest, vol, is ReadWriteOnce, and it requests ReadWriteMany$", build: func(c *clustertest.Cluster) {
			pvc(c, "data", "", corev1.ClaimPending)
			c.Put(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "vol"}, Spec: corev1.PersistentVolumeSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}}})
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "no provisioner, and the volume that fits is on a node that is gone", code: answer.PVCUnbound, exit: 5, first: "there is no free volume that fits it$", fix: "create a PersistentVolume of class local for claim data", not: []string{"clear the claimRef"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data")))
			boundClaim(c, "n9", corev1.ReadWriteMany)
			v, claim := c.S.Volumes[0], c.S.Claims[0]
			v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Key = corev1.LabelHostname
			v.Spec.StorageClassName, v.Spec.ClaimRef.UID, v.Status.Phase = "local", "earlier", corev1.VolumeReleased
			claim.Spec.StorageClassName, claim.Spec.VolumeName, claim.Annotations, claim.Status.Phase = &v.Spec.StorageClassName, "", nil, corev1.ClaimPending
			class(c, "local", "kubernetes.io/no-provisioner", wait)
		}},
		{name: "no provisioner, and others have the volumes", code: answer.PVCUnbound, exit: 5, first: "there is no free volume that fits it$",
			wantText: []string{`volume vol \(0\) is Released, of claim research/x: it is free once an administrator clears its claimRef`}, build: func(c *clustertest.Cluster) {
				pvc(c, "data", "local", corev1.ClaimPending)
				class(c, "local", "kubernetes.io/no-provisioner", wait)
				pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "vol"}, Spec: corev1.PersistentVolumeSpec{StorageClassName: "local", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased}}
				pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "research", Name: "x", UID: "x"}
				c.Put(pv)
				c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data")))
			}},
		{name: "no class and no default one", code: answer.PVCUnbound, exit: 4, first: "names no StorageClass", build: func(c *clustertest.Cluster) {
			pvc(c, "data", "", corev1.ClaimPending)
			class(c, "standard", "csi.example.com", wait)
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "no class, and two default ones", code: answer.PVCUnbound, exit: 5, first: "waits for a volume of class newest, which no provisioner serves", build: func(c *clustertest.Cluster) {
			pvc(c, "data", "", corev1.ClaimPending).Spec.StorageClassName = nil
			for i, name := range []string{"older", "newest"} {
				sc := class(c, name, []string{"csi.example.com", "kubernetes.io/no-provisioner"}[i], wait)
				sc.Annotations, sc.CreationTimestamp = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}, clustertest.Ago(time.Duration(2-i)*time.Hour)
			}
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{name: "a volume of each pod's own, of no class that exists", code: answer.PVCUnbound, exit: 4, first: `StorageClass "fast".*scratch`, build: func(c *clustertest.Cluster) {
			class(c, "slow", "csi.example.com", wait)
			c.Nodes(2, 8).Add(gangOf(2, 8, ephemeral("fast")))
		}},
		{name: "a volume of each pod's own", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			class(c, "fast", "csi.example.com", wait)
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ephemeral("fast"), young))
		}},
		{name: "only one role mounts it", code: answer.PVCUnbound, exit: 4, first: "ckpt", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 8, func(g *clustertest.Gang) {
				g.More = []clustertest.Role{{Name: "Chief", Replicas: 1, Spec: func(p *corev1.PodSpec) {
					p.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "ckpt"}}}}
				}}}
			}))
		}},
	})
}

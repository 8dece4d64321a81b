package stages_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// ebsClaim adds claim data of class gp3, whose volumes ebs.csi.aws.com makes, for one node at a time.
func ebsClaim(c *clustertest.Cluster, mode storagev1.VolumeBindingMode) *corev1.PersistentVolumeClaim {
	class(c, "gp3", "ebs.csi.aws.com", mode)
	c.Put(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "ebs.csi.aws.com"}})
	claim := pvc(c, "data", "gp3", corev1.ClaimPending)
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	return claim
}

// given is ebsClaim, whose claim the scheduler has given to a node.
func given(c *clustertest.Cluster, node string) *corev1.PersistentVolumeClaim {
	claim := ebsClaim(c, storagev1.VolumeBindingWaitForFirstConsumer)
	claim.Annotations = map[string]string{"volume.kubernetes.io/selected-node": node}
	return claim
}

// ebs adds the provisioner, with so many pods ready.
func ebs(c *clustertest.Cluster, ready int32) *appsv1.Deployment {
	d := c.Deployment("kube-system", "ebs-csi-controller", "public.ecr.aws/ebs-csi-driver/aws-ebs-csi-driver:v1.37.0")
	d.Status.ReadyReplicas = ready
	return d
}

// awaited reports for how long the provisioner has been waited for.
func awaited(c *clustertest.Cluster, ago time.Duration) {
	c.Event("PersistentVolumeClaim", "team", "data", "persistentvolume-controller", "ExternalProvisioning", "Waiting for a volume to be created either by the external provisioner 'ebs.csi.aws.com' or manually", ago).Type = corev1.EventTypeNormal
}

// A claim that its provisioner has to serve: a gang whose pod has its node, and waits for the volume, fits no more than one that waits for its room.
func TestProvisioner(t *testing.T) {
	const wait, now = storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	check(t, []testCase{
		{name: "given to a node, and the provisioner does not run", code: answer.PVCUnbound, exit: 5, alone: true, fix: "get Deployment kube-system/ebs-csi-controller to run again",
			first: "^PersistentVolumeClaim data waits for ebs.csi.aws.com to make its volume for node n1, for 8m: Deployment kube-system/ebs-csi-controller, which does that, has 0 of 1 pods ready$", build: func(c *clustertest.Cluster) {
				given(c, "n1")
				awaited(c, 8*time.Minute)
				ebs(c, 0)
				c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data")))
			}},
		{name: "given to a node, and the provisioner runs", code: answer.PVCUnbound, exit: 3, alone: true, first: "waits for ebs.csi.aws.com to make its volume for node n1, for 5s: the members have a place", wantText: []string{"has 1 of 1 pods ready"}, build: func(c *clustertest.Cluster) {
			given(c, "n1")
			awaited(c, 5*time.Second)
			ebs(c, 1)
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data")))
		}},
		{name: "given to a node, and the provisioner is not seen", code: answer.PVCUnbound, exit: 3, alone: true, first: "waits for ebs.csi.aws.com to make its volume for node n1", build: func(c *clustertest.Cluster) {
			given(c, "n1")
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data")))
		}},
		{name: "given to a node, and the volume is there", code: answer.Fits, exit: 3, never: []answer.Code{answer.PVCUnbound}, build: func(c *clustertest.Cluster) {
			boundClaim(c, "", corev1.ReadWriteMany)
			class(c, "gp3", "ebs.csi.aws.com", wait)
			name := "gp3"
			c.S.Claims[0].Spec.StorageClassName, c.S.Claims[0].Annotations["volume.kubernetes.io/selected-node"] = &name, "n1"
			ebs(c, 0)
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data"), young))
		}},
		{name: "given to a node that is gone", code: answer.PVCUnbound, exit: 4, alone: true, first: "^PersistentVolumeClaim data is to get its volume for node n9, which is not in the cluster", fix: "take node n9 from claim data", build: func(c *clustertest.Cluster) {
			given(c, "n9")
			ebs(c, 1)
			c.Event("PersistentVolumeClaim", "team", "data", "ebs.csi.aws.com", "ProvisioningFailed", `failed to get target node: nodes "n9" not found`, time.Minute)
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data")))
		}},
		{name: "for the first pod, when that has a node, by a provisioner that does not run", code: answer.PVCUnbound, exit: 5, first: "0 of 1 pods ready", build: func(c *clustertest.Cluster) {
			ebsClaim(c, wait)
			ebs(c, 0)
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data")))
		}},
		{name: "for the first pod, and there is no room for it yet", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.PVCUnbound}, build: func(c *clustertest.Cluster) {
			ebsClaim(c, wait)
			ebs(c, 0)
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(1, 8, mounts("data")))
		}},
		{name: "at once, and the provisioner does not run", code: answer.PVCUnbound, exit: 5, first: "^PersistentVolumeClaim data waits for ebs.csi.aws.com to make its volume, for 20m: Deployment kube-system/ebs-csi-controller", build: func(c *clustertest.Cluster) {
			ebsClaim(c, now)
			ebs(c, 0)
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data")))
		}},
		{name: "at once, and there is no such driver", code: answer.PVCUnbound, exit: 5, first: "waits for csi.vastdata.com to make its volume, for 20m, and no CSI driver of that name is in the cluster; there are: ebs.csi.aws.com$", fix: "install CSI driver csi.vastdata.com", build: func(c *clustertest.Cluster) {
			ebsClaim(c, now)
			ebs(c, 1)
			c.S.StorageClasses[0].Provisioner = "csi.vastdata.com"
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data")))
		}},
		{name: "in a namespace of a user's own", code: answer.PVCUnbound, exit: 3, wantText: []string{"kube-system/ebs-csi-controller, which does that, has 1 of 1"}, not: []string{"research", "0 of 1"}, build: func(c *clustertest.Cluster) {
			given(c, "n1")
			ebs(c, 1)
			d := ebs(c, 0)
			d.Namespace = "research"
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data")))
		}},
	})
}

// What a volume is restored from has to be ready first, for which its provisioner waits.
func TestRestoredVolume(t *testing.T) {
	restores := func(status map[string]any, report string) func(c *clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			claim, group := ebsClaim(c, storagev1.VolumeBindingImmediate), "snapshot.storage.k8s.io"
			claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: "s1"}
			ebs(c, 1)
			if status != nil {
				c.Object(map[string]any{"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": map[string]any{"namespace": "team", "name": "s1",
					"creationTimestamp": clustertest.Ago(12 * time.Minute).UTC().Format(time.RFC3339)}, "status": status})
			}
			if report != "" {
				c.Event("PersistentVolumeClaim", "team", "data", "ebs.csi.aws.com", "ProvisioningFailed", "failed to provision volume with StorageClass \"gp3\": error getting handle for DataSource Type VolumeSnapshot by Name s1: "+report, time.Minute)
			}
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data")))
		}
	}
	const notReady = "snapshot s1 is not Ready"
	check(t, []testCase{
		{name: "not ready", code: answer.PVCUnbound, exit: 3, alone: true, first: "^PersistentVolumeClaim data is restored from VolumeSnapshot s1, which is not ready yet, 12m after it was made$", not: []string{"fix:"}, build: restores(map[string]any{"readyToUse": false}, notReady)},
		{name: "not ready, and it is not seen", code: answer.PVCUnbound, exit: 3, alone: true, first: "from VolumeSnapshot s1, which is not ready yet$", not: []string{"fix:"}, build: restores(nil, notReady)},
		{name: "failed", code: answer.PVCUnbound, exit: 4, first: "from VolumeSnapshot s1, which has failed: SnapshotLimitExceeded$", build: restores(map[string]any{"readyToUse": false, "error": map[string]any{"message": "SnapshotLimitExceeded"}}, notReady)},
		{name: "ready by now", code: answer.PVCUnbound, exit: 3, first: "which is ready by now", build: restores(map[string]any{"readyToUse": true}, notReady)},
		{name: "none of the name", code: answer.PVCUnbound, exit: 4, first: "from VolumeSnapshot s1, which does not exist$", fix: "with another spec.dataSource",
			build: restores(nil, `error getting snapshot s1 from api server: volumesnapshots.snapshot.storage.k8s.io "s1" not found`)},
		{name: "something else", code: answer.PVCUnbound, exit: 4, first: "cannot be provisioned: .*: no such zone", build: restores(map[string]any{"readyToUse": true}, "no such zone")},
	})
}

// The claims of volumes that pods have to themselves are made before the pods are placed.
func TestEphemeralVolumes(t *testing.T) {
	const wait = storagev1.VolumeBindingWaitForFirstConsumer
	scratch := spec(func(p *corev1.PodSpec) {
		template, name := &corev1.PersistentVolumeClaimTemplate{}, "gp3"
		template.Spec.StorageClassName, template.Spec.AccessModes = &name, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		template.Spec.Resources.Requests = clustertest.List("storage", "1Ti")
		p.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: template}}}}
	})
	// cluster is one in which the claims of the first made members are there, and the others were refused with a report.
	cluster := func(made int, report string, changes ...func(*clustertest.Gang)) func(c *clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			class(c, "gp3", "ebs.csi.aws.com", wait)
			c.Nodes(4, 8).Add(gangOf(4, 8, append(changes, scratch)...))
			for i, pod := range c.S.Pods {
				if claim := pod.Name + "-scratch"; i < made {
					pvc(c, claim, "gp3", corev1.ClaimPending).Spec.Resources.Requests = clustertest.List("storage", "1Ti")
				} else if report != "" {
					c.Event("Pod", "team", pod.Name, "ephemeral_volume", "FailedBinding", "ephemeral volume scratch: create PVC "+claim+": "+report, 5*time.Second)
				}
			}
		}
	}
	limited := func(hard, used string, build func(*clustertest.Cluster)) func(c *clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "storage"}}
			q.Spec.Hard, q.Status.Hard, q.Status.Used = clustertest.List("requests.storage", hard), clustertest.List("requests.storage", hard), clustertest.List("requests.storage", used)
			c.Put(q)
			build(c)
		}
	}
	const exceeded = `persistentvolumeclaims "x" is forbidden: exceeded quota: storage, requested: requests.storage=1Ti, used: requests.storage=3Ti, limited: requests.storage=3500Gi`
	check(t, []testCase{
		{name: "a quota allows three of four", code: answer.NSQuotaTooSmall, exit: 6, first: "^quota storage of namespace team allows 3500Gi storage in all, and the gang needs 4Ti$", fix: "875Gi for volume scratch of each member instead of 1Ti",
			wantText: []string{"the claims of 1 pod were refused, last 5s ago", "fix: raise requests.storage of quota storage to 4Ti"}, build: limited("3500Gi", "3Ti", cluster(3, exceeded))},
		{name: "a quota that may not be read", code: answer.NSQuotaTooSmall, exit: 6, first: "allows 3500Gi storage in all, and the gang needs 4Ti", build: cluster(3, exceeded)},
		{name: "a quota, before there is any pod", code: answer.NSQuotaTooSmall, exit: 6, first: "allows 3500Gi storage in all, and the gang needs 4Ti", build: limited("3500Gi", "0", cluster(0, "", none))},
		{name: "a quota that others use up", code: answer.NSQuota, exit: 5, first: "has too little left: 3Ti of 6Ti storage used, 4 more members need 4Ti", wantText: []string{"claim data is charged 3Ti"}, build: func(c *clustertest.Cluster) {
			limited("6Ti", "3Ti", cluster(0, "", none))(c)
			pvc(c, "data", "gp3", corev1.ClaimBound).Spec.Resources.Requests = clustertest.List("storage", "3Ti")
		}},
		{name: "a quota that allows enough by now", code: answer.PVCUnbound, exit: 3, alone: true, first: "^PersistentVolumeClaim gang-worker-3-scratch, for volume scratch of worker-3, was refused 5s ago, and nothing seen refuses it now: Kubernetes tries again$",
			build: limited("5Ti", "3Ti", cluster(3, exceeded))},
		{name: "a quota, and three are enough", code: answer.Fits, exit: 3, build: limited("3500Gi", "3Ti", cluster(3, exceeded, young, func(g *clustertest.Gang) { g.Min = 3 }))},
		{name: "a webhook", code: answer.AdmissionDenied, exit: 4, alone: true, first: "^storage-policy.example.com denies the claims of the volumes that members have to themselves: volumes over 500Gi need approval$", fix: "change the claim template of volume scratch",
			build: cluster(0, `admission webhook "storage-policy.example.com" denied the request: volumes over 500Gi need approval`)},
		{name: "not made, and nothing is reported", code: answer.PVCUnbound, exit: 5, alone: true, first: "^PersistentVolumeClaim gang-worker-3-scratch, for volume scratch of worker-3, has not been made .* after its pod$", build: cluster(3, "")},
		{name: "not made yet", code: answer.Fits, exit: 3, build: cluster(3, "", young)},
	})
}

// A gang is tied to the zone of its volume. What is short there counts, also where it would find room in another zone.
func TestShortWhereTheVolumeIs(t *testing.T) {
	build := func(other func(c *clustertest.Cluster)) func(c *clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			for i, n := range c.S.Nodes {
				n.Labels[corev1.LabelTopologyZone] = []string{"z1", "z1", "z2", "z2"}[i]
			}
			boundClaim(c, "z1", corev1.ReadWriteMany)
			other(c)
			c.Add(gangOf(2, 8, spec(func(p *corev1.PodSpec) {
				mounting("data")(p)
				p.Containers[0].Resources.Requests["cpu"] = clustertest.List("cpu", "64")["cpu"]
			})))
		}
	}
	check(t, []testCase{
		{name: "cpu, which a service holds", code: answer.NodesBusy, exit: 5, first: "web.* on n2 and never ends: cpu is short.*; the volume of claim data is in z1", not: []string{"elsewhere"}, build: build(func(c *clustertest.Cluster) { c.ServesWith("web", 0, "60", "n2") })},
		{name: "GPUs", code: answer.VolumeZone, exit: 3, first: "and what is free is elsewhere: 16 GPUs in z2", build: build(func(c *clustertest.Cluster) { c.Runs("a", 8, "n2") })},
	})
}

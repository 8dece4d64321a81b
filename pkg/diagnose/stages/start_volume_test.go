package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// mounted is a pod that mounts a claim as volume data, and a secret as volume creds.
func mounted(claim string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}},
			{Name: "creds", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "gcs-key"}}},
		}
	}
}

// attachedTo adds claim data of a volume for one node, which is attached to a node.
func attachedTo(c *clustertest.Cluster, node string) {
	boundClaim(c, "", corev1.ReadWriteOnce)
	name := "vol"
	c.Put(&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "at"}, Spec: storagev1.VolumeAttachmentSpec{NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}},
		Status: storagev1.VolumeAttachmentStatus{Attached: true}})
}

// timeout adds what a kubelet reports of a volume of the second member that is missing, whatever the reason.
func timeout(c *clustertest.Cluster, volume string) {
	addEvent(c, "FailedMount", "Unable to attach or mount volumes: unmounted volumes=["+volume+"], unattached volumes=[], failed to process volumes=[]: context deadline exceeded", 20*time.Second)
}

// takenBy has the second member wait for claim data, which a pod of another job uses on n3.
func takenBy(c *clustertest.Cluster, change func(*corev1.Pod)) *corev1.Node {
	second(c, mounted("data"))
	attachedTo(c, "n3")
	n3 := c.Node("n3", 8)
	c.Add(clustertest.Gang{Namespace: "team", Name: "prep", Workers: 1, GPUs: 8, Nodes: []string{"n3"}, Pod: func(_ int, p *corev1.Pod) {
		mounted("data")(p)
		change(p)
	}})
	return n3
}

func TestStartVolumes(t *testing.T) {
	multiAttach := `Multi-Attach error for volume "vol" Volume is already used by pod(s) x`
	check(t, []testCase{
		{name: "a timeout is newer than the reason: in use elsewhere", code: answer.VolumeMultiAttach, exit: 4, first: "claim data is ReadWriteOnce and in use on n1", wantText: []string{"worker-0, has it on n1", "ReadWriteMany"}, build: func(c *clustertest.Cluster) {
			second(c, mounted("data"))
			mounted("data")(c.S.Pods[0])
			attachedTo(c, "n1")
			addEvent(c, "FailedAttachVolume", multiAttach, 9*time.Minute)
			timeout(c, "data")
		}},
		{name: "a timeout is newer than the reason: no secret", code: answer.ConfigMissing, exit: 4, first: `secret "gcs-key" does not exist`, build: func(c *clustertest.Cluster) {
			second(c, mounted("data"))
			addEvent(c, "FailedMount", `MountVolume.SetUp failed for volume "creds" : secret "gcs-key" not found`, 2*time.Minute)
			timeout(c, "creds")
		}},
		{name: "a timeout is about another volume than an older reason", code: answer.VolumeMount, exit: 4, first: "Unable to attach", wantText: []string{"volume data is claim data"}, never: []answer.Code{answer.ConfigMissing}, build: func(c *clustertest.Cluster) {
			second(c, mounted("data"))
			boundClaim(c, "", corev1.ReadWriteMany)
			addEvent(c, "FailedMount", `MountVolume.SetUp failed for volume "creds" : secret "gcs-key" not found`, 8*time.Minute)
			timeout(c, "data")
		}},
		{name: "the reason has expired, and the state shows it", code: answer.VolumeMultiAttach, exit: 4, first: "in use on n3, so it cannot be mounted on n2", wantText: []string{"pod prep-worker-0 of TFJob team/prep has it on n3"}, build: func(c *clustertest.Cluster) {
			takenBy(c, func(*corev1.Pod) {})
			timeout(c, "data")
		}},
		{name: "a job that ends has it", code: answer.VolumeMultiAttach, exit: 4, first: "claim data is ReadWriteOnce and in use on n3", wantText: []string{"pod prep-worker-0 of TFJob team/prep has it on n3, until it ends", "or end prep-worker-0"}, not: []string{"one claim per member"}, build: func(c *clustertest.Cluster) {
			takenBy(c, func(*corev1.Pod) {})
			addEvent(c, "FailedAttachVolume", multiAttach, time.Minute)
		}},
		{name: "a pod that is going has it", code: answer.VolumeMultiAttach, exit: 3, wantText: []string{"has it on n3, is going"}, build: func(c *clustertest.Cluster) {
			takenBy(c, func(p *corev1.Pod) {
				at := metav1.NewTime(clustertest.Now.Add(20 * time.Second))
				p.DeletionTimestamp = &at
			})
			addEvent(c, "FailedAttachVolume", multiAttach, time.Minute)
		}},
		{name: "a pod that never ends has it", code: answer.VolumeMultiAttach, exit: 4, first: "in use on n3", wantText: []string{"or scale down Deployment team/jupyter, which makes another pod for one that is ended: kubectl -n team scale deployment/jupyter --replicas=0"}, not: []string{"or end jupyter"}, build: func(c *clustertest.Cluster) {
			takenBy(c, func(p *corev1.Pod) {
				yes := true
				p.Name, p.UID, p.Labels, p.Spec.RestartPolicy = "jupyter", "jupyter", map[string]string{"pod-template-hash": "6d9"}, corev1.RestartPolicyAlways
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "jupyter-6d9", UID: "jupyter-6d9", Controller: &yes}}
			})
			addEvent(c, "FailedAttachVolume", multiAttach, time.Minute)
		}},
		{name: "a pod has it that nobody makes again", code: answer.VolumeMultiAttach, exit: 4, first: "in use on n3", wantText: []string{"or end shell"}, build: func(c *clustertest.Cluster) {
			takenBy(c, func(p *corev1.Pod) { p.Name, p.UID, p.Labels, p.OwnerReferences = "shell", "shell", nil, nil })
			addEvent(c, "FailedAttachVolume", multiAttach, time.Minute)
		}},
		{name: "a pod of others has it, and members on two nodes mount it", code: answer.VolumeMultiAttach, exit: 4, first: "in use on n3", wantText: []string{"its members on n1, n2 mount it, too: members on several nodes need a ReadWriteMany volume"}, not: []string{"or end"}, build: func(c *clustertest.Cluster) {
			takenBy(c, func(p *corev1.Pod) { p.Name, p.UID, p.Labels, p.OwnerReferences = "shell", "shell", nil, nil })
			mounted("data")(c.S.Pods[0])
			c.S.Pods[0].Status.Phase = corev1.PodPending
			addEvent(c, "FailedAttachVolume", multiAttach, time.Minute)
		}},
		{name: "a pod on a node that is down has it", code: answer.VolumeMultiAttach, exit: 5, first: "in use on n3", wantText: []string{"node n3 is not ready for 20m", "taint nodes n3 node.kubernetes.io/out-of-service"}, not: []string{"one claim per member"}, build: func(c *clustertest.Cluster) {
			clustertest.NotReady(takenBy(c, func(p *corev1.Pod) {
				at := clustertest.Ago(15 * time.Minute)
				p.DeletionTimestamp = &at
			}), 20*time.Minute)
			addEvent(c, "FailedAttachVolume", multiAttach, 9*time.Minute)
		}},
		{name: "a pod that a finalizer keeps has it", code: answer.VolumeMultiAttach, exit: 5, first: "in use on n3", wantText: []string{"held by finalizer example.com/upload"}, fix: "clear prep-worker-0", build: func(c *clustertest.Cluster) {
			takenBy(c, func(p *corev1.Pod) {
				at := clustertest.Ago(15 * time.Minute)
				p.DeletionTimestamp, p.Finalizers = &at, []string{"example.com/upload"}
			})
			addEvent(c, "FailedAttachVolume", multiAttach, 9*time.Minute)
		}},
		{name: "no pod has it any more", code: answer.VolumeMultiAttach, exit: 3, wantText: []string{"it is to be detached"}, build: func(c *clustertest.Cluster) {
			second(c, mounted("data"))
			attachedTo(c, "n1")
			addEvent(c, "FailedAttachVolume", multiAttach, time.Minute)
		}},
		{name: "no pod has it, and it stays", code: answer.VolumeMultiAttach, exit: 5, wantText: []string{"has not been detached for 9m"}, build: func(c *clustertest.Cluster) {
			second(c, mounted("data"))
			attachedTo(c, "n1")
			addEvent(c, "FailedAttachVolume", multiAttach, 9*time.Minute)
		}},
		{name: "no pod has it, and its node is away", code: answer.NodeNotReady, exit: 5, also: []answer.Code{answer.VolumeMultiAttach}, wantText: []string{"n1 is not ready for 34m, so that nothing unmounts the volume there"}, build: func(c *clustertest.Cluster) {
			second(c, mounted("data"))
			attachedTo(c, "n1")
			clustertest.NotReady(c.S.Nodes[0], 34*time.Minute)
			addEvent(c, "FailedAttachVolume", multiAttach, 9*time.Minute)
		}},
		{name: "another volume was attached meanwhile", code: answer.VolumeMultiAttach, exit: 4, build: func(c *clustertest.Cluster) {
			second(c, mounted("data"))
			addEvent(c, "FailedAttachVolume", multiAttach, 3*time.Minute)
			addEvent(c, "SuccessfulAttachVolume", `AttachVolume.Attach succeeded for volume "other"`, time.Minute)
		}},
		{name: "volumes are mounted before there is a sandbox", code: answer.SandboxFailed, exit: 5, first: "node n2 cannot set up the pod: .*no IP", never: []answer.Code{answer.VolumeMount}, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "FailedMount", `MountVolume.SetUp failed for volume "x" : mount failed`, 9*time.Minute)
			addEvent(c, "FailedCreatePodSandBox", "no IP addresses available", time.Minute)
		}},
		{name: "the kubelet does not watch the config map yet", code: answer.ContainersStarting, exit: 3, wantText: []string{"reported 20s ago, and tried again since: .*not registered"}, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "FailedMount", `MountVolume.SetUp failed for volume "kube-api-access-x" : object "team"/"kube-root-ca.crt" not registered`, 20*time.Second)
		}},
		{name: "a sandbox failed once, just now", code: answer.ContainersStarting, exit: 3, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "FailedCreatePodSandBox", "context deadline exceeded", 8*time.Second)
		}},
		{name: "a sandbox failed twice, just now", code: answer.SandboxFailed, exit: 5, build: func(c *clustertest.Cluster) {
			second(c, creating)
			c.Event("Pod", "team", "gang-worker-1", "kubelet", "FailedCreatePodSandBox", "no IP addresses available", 8*time.Second).Count = 2
		}},
		{name: "the node lacks the driver", code: answer.VolumeMount, exit: 5, first: "registered CSI drivers", wantText: []string{"worker-0 is alike and runs on n1: what differs is node n2", "describe node n2", "this trouble on n2"}, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "FailedMount", `MountVolume.MountDevice failed for volume "vol" : driver name fsx.csi.aws.com not found in the list of registered CSI drivers`, 5*time.Minute)
		}},
		{name: "a path that only this node lacks", code: answer.VolumeMount, exit: 5, wantText: []string{"what differs is node n2"}, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "FailedMount", `MountVolume.SetUp failed for volume "d" : hostPath type check failed: /mnt/nvme is not a directory`, 5*time.Minute)
		}},
		{name: "a sub-path", code: answer.VolumeMount, exit: 5, first: "failed to prepare subPath", wantText: []string{"describe pod gang-worker-1"}, build: func(c *clustertest.Cluster) {
			second(c, waits("CreateContainerConfigError", `failed to prepare subPath for volumeMount "data" of container "tensorflow"`))
		}},
	})
}

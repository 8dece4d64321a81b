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

// refusedAs is a pod that its kubelet refused 20 seconds ago.
func refusedAs(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, Message: "Pod was rejected: " + message,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: clustertest.Ago(20 * time.Second)}}}
	}
}

// startedAgo is since when n2 is Ready.
func startedAgo(c *clustertest.Cluster, ago time.Duration) {
	for i, cond := range c.S.Nodes[1].Status.Conditions {
		if cond.Type == corev1.NodeReady {
			c.S.Nodes[1].Status.Conditions[i].LastTransitionTime = clustertest.Ago(ago)
		}
	}
}

func TestStartRefused(t *testing.T) {
	cordon := []string{"cordon"}
	unwell := "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected"
	check(t, []testCase{
		{name: "what is free is not together", code: answer.NodeRefused, exit: 5, wantText: []string{"as the topology manager of its kubelet requires", "describe node n2"}, not: cordon, build: func(c *clustertest.Cluster) {
			second(c, refusedAs("TopologyAffinityError", "Resources cannot be allocated with Topology locality"))
		}},
		{name: "no whole cores", code: answer.NodeRefused, exit: 4, not: cordon, build: func(c *clustertest.Cluster) {
			second(c, refusedAs("SMTAlignmentError", "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"))
		}},
		{name: "the kubelet holds devices that nobody uses", code: answer.NodeRefused, exit: 5, wantText: []string{"the scheduler counts on more than n2 has", "cordon n2"}, build: func(c *clustertest.Cluster) {
			second(c, refusedAs("UnexpectedAdmissionError", "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected"))
		}},
		{name: "the node has just started", code: answer.NodeRefused, exit: 3, wantText: []string{"n2 had only just started"}, not: cordon, build: func(c *clustertest.Cluster) {
			second(c, refusedAs("UnexpectedAdmissionError", unwell))
			startedAgo(c, 95*time.Second)
		}},
		{name: "no device is well on a node that runs for long", code: answer.NodeRefused, exit: 5, wantText: []string{"cordon n2"}, build: func(c *clustertest.Cluster) {
			second(c, refusedAs("UnexpectedAdmissionError", unwell))
			startedAgo(c, 3*time.Hour)
		}},
		{name: "the disk of the node", code: answer.NodeRefused, exit: 5, wantText: []string{"n2 is not well", "n2 reports ReadonlyFilesystem: Remounting filesystem read-only", "cordon n2"}, not: []string{"counts on more"}, build: func(c *clustertest.Cluster) {
			second(c, refusedAs("UnexpectedAdmissionError", `Update plugin resources failed due to failed to write checkpoint file "kubelet_internal_checkpoint": open /var/lib/kubelet/device-plugins/.05: read-only file system, which is unexpected`))
			c.S.Nodes[1].Status.Conditions = append(c.S.Nodes[1].Status.Conditions, corev1.NodeCondition{Type: "ReadonlyFilesystem", Status: corev1.ConditionTrue, Message: "Remounting filesystem read-only"})
		}},
		{name: "a plugin that the scheduler knows nothing of", code: answer.NodeRefused, exit: 5, wantText: []string{"it refuses what the scheduler accepts", "describe node n2"}, not: cordon, build: func(c *clustertest.Cluster) {
			second(c, refusedAs("UnexpectedAdmissionError", "Allocate failed due to pod d65f container wait-gcs-ready unable to find GPU device allocation by scheduler, which is unexpected"))
		}},
		{name: "pods that their kubelets refused did not run before", code: answer.NodeRefused, exit: 5, first: "its pods fail, 1 pod so far, and the controller waits longer each time", not: []string{"it ran before", "was lost"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(1, 8, none, func(g *clustertest.Gang) { g.Kind = "Job" }))
			yes := true
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang-x7k07", CreationTimestamp: clustertest.Ago(time.Minute),
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "gang", UID: "Job:team/gang", Controller: &yes}}}}
			refusedAs("TopologyAffinityError", "Resources cannot be allocated with Topology locality")(p)
			p.Spec.NodeName = "n1"
			c.Put(p)
		}},
	})
}

func TestStartSandbox(t *testing.T) {
	const prepare = "FailedPrepareDynamicResources"
	unregistered := "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver compute-domain.nvidia.com is not registered"
	joining := "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed: error asserting ComputeDomain Ready: current node not ready in ComputeDomain"
	daemons := func(c *clustertest.Cluster, name string, args ...string) {
		labels := map[string]string{"app": name}
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}}}
		d.Spec.Template.Labels, d.Spec.Template.Spec.Containers = labels, []corev1.Container{{Name: "plugin", Image: "reg/plugin:1", Args: args}}
		c.Put(d)
		c.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name + "-1", Labels: labels}, Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
	}
	check(t, []testCase{
		{name: "the node lacks the driver of a claim", code: answer.SandboxFailed, exit: 5, first: "node n2 cannot prepare the devices that the pod claims: .*compute-domain.nvidia.com is not registered",
			wantText: []string{"worker-0 is alike and runs on n1", "kube-system/nvidia-dra-driver-gpu-kubelet-plugin, which looks like that driver, has no pod on n2", "describe node n2"}, build: func(c *clustertest.Cluster) {
				second(c, creating)
				daemons(c, "nvidia-dra-driver-gpu-kubelet-plugin")
				addEvent(c, prepare, unregistered, time.Minute)
			}},
		{name: "the nodes of a domain have only just been brought together", code: answer.ContainersStarting, exit: 3, wantText: []string{"reported 30s ago, and tried again since: .*ComputeDomain"}, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, prepare, joining, 30*time.Second)
		}},
		{name: "the nodes of a domain do not find each other", code: answer.SandboxFailed, exit: 5, first: "current node not ready in ComputeDomain", build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, prepare, joining, 8*time.Minute)
		}},
		{name: "a daemon of the domain crashes on the other node", code: answer.SandboxFailed, exit: 5, alone: true,
			first:    "^worker-0, worker-1: nodes n1, n2 cannot prepare the devices that the pod claims: its ComputeDomain waits for pod nvidia/daemon-2 on n2, which is in CrashLoopBackOff .7 restarts.: Failed to prepare",
			wantText: []string{"kubectl -n nvidia logs daemon-2 --previous --tail=50"}, not: []string{"describe node", "daemon-1", "stranger"}, build: func(c *clustertest.Cluster) {
				c.Nodes(3, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }, pods(func(_ int, p *corev1.Pod) { creatingContainer(p) })))
				for _, name := range []string{"gang-worker-0", "gang-worker-1"} {
					c.Event("Pod", "team", name, "kubelet", prepare, joining, 8*time.Minute)
				}
				crashed := corev1.ContainerStatus{Name: "daemon", RestartCount: 7, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}
				domainDaemon(c, "daemon-1", "n1", "d1", nil)
				domainDaemon(c, "daemon-2", "n2", "d1", &crashed)
				domainDaemon(c, "stranger", "n3", "d2", &crashed)
			}},
		{name: "no daemon of the domain is on the node", code: answer.SandboxFailed, exit: 5, wantText: []string{"no daemon of its ComputeDomain has a pod on n2: .* namespace nvidia", "describe node n2"}, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, prepare, joining, 8*time.Minute)
			c.S.Nodes[1].Labels["resource.nvidia.com/computeDomain"] = "d1"
			domainDaemon(c, "daemon-1", "n1", "d1", nil)
		}},
		{name: "a network that the job names does not exist", code: answer.ConfigMissing, exit: 4, alone: true, first: `^worker-0, worker-1: NetworkAttachmentDefinition "rdma-net-1" does not exist in namespace team$`,
			wantText: []string{"annotation k8s.v1.cni.cncf.io/networks of the pods names it", "kubectl -n team get network-attachment-definitions"}, not: []string{"describe node", "cannot set up"}, build: func(c *clustertest.Cluster) {
				noNetwork(c, map[string]string{"k8s.v1.cni.cncf.io/networks": "rdma-net-1"}, true)
			}},
		{name: "a network that a webhook names does not exist", code: answer.ConfigMissing, exit: 5, wantText: []string{"the job does not have that"}, build: func(c *clustertest.Cluster) {
			noNetwork(c, map[string]string{"k8s.v1.cni.cncf.io/networks": "rdma-net-1"}, false)
		}},
		{name: "a network that only Multus is set to does not exist", code: answer.ConfigMissing, exit: 5, wantText: []string{"the configuration of Multus does"}, build: func(c *clustertest.Cluster) {
			noNetwork(c, nil, false)
		}},
		{name: "the devices were prepared", code: answer.ImagePulling, exit: 3, never: []answer.Code{answer.SandboxFailed}, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, prepare, joining, 8*time.Minute)
			addEvent(c, "Pulling", `Pulling image "reg/x:1"`, time.Minute)
		}},
		{name: "a volume was mounted before that", code: answer.SandboxFailed, exit: 5, never: []answer.Code{answer.VolumeMount}, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "FailedMount", `MountVolume.SetUp failed for volume "x" : mount failed`, 9*time.Minute)
			addEvent(c, prepare, unregistered, time.Minute)
		}},
		{name: "the same on two nodes is reported once", code: answer.SandboxFailed, exit: 5, first: "^worker-0, worker-1: nodes n1, n2 cannot set up the pod: .*failed to assign an IP address", wantText: []string{"describe node n1"}, alone: true, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }, pods(func(_ int, p *corev1.Pod) { creatingContainer(p) })))
			for i, id := range []string{"2585244756197a", "97af1c2b3d4e5f"} {
				c.Event("Pod", "team", []string{"gang-worker-0", "gang-worker-1"}[i], "kubelet", "FailedCreatePodSandBox", `Failed to create pod sandbox: failed to setup network for sandbox "`+id+`": failed to assign an IP address to container`, time.Minute)
			}
		}},
		{name: "the node lacks the driver of a volume", code: answer.VolumeMount, exit: 5, wantText: []string{"CSINode n2 does not list efs.csi.aws.com", "kube-system/storage-node, which looks like that driver, has no pod on n2", "describe daemonset storage-node"}, build: func(c *clustertest.Cluster) {
			second(c, creating)
			daemons(c, "ebs-csi-node", "--endpoint=unix:/csi/csi.sock")
			daemons(c, "storage-node", "--kubelet-registration-path=/var/lib/kubelet/plugins/efs.csi.aws.com/csi.sock")
			for _, n := range []string{"n1", "n2"} {
				node := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n}}
				if n == "n1" {
					node.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "efs.csi.aws.com", NodeID: n}}
				}
				c.Put(node)
			}
			addEvent(c, "FailedMount", `MountVolume.SetUp failed for volume "pvc-1" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name efs.csi.aws.com not found in the list of registered CSI drivers`, 5*time.Minute)
		}},
		{name: "the driver of a volume crashes on the node", code: answer.VolumeMount, exit: 5, wantText: []string{"kube-system/fsx-csi-node, which looks like that driver, has trouble on n2: pod fsx-csi-node-n2 on n2: CrashLoopBackOff, 88 restarts", "logs fsx-csi-node-n2 --previous"},
			not: []string{"describe daemonset"}, build: func(c *clustertest.Cluster) {
				second(c, creating)
				plugin(c, "fsx-csi-node", 1, 2)
				pluginPod(c, "fsx-csi-node", "n2")
				addEvent(c, "FailedMount", `MountVolume.MountDevice failed for volume "pvc-1" : driver name fsx.csi.aws.com not found in the list of registered CSI drivers`, 5*time.Minute)
			}},
		{name: "the storage of a claim does not answer", code: answer.VolumeMount, exit: 5, first: "Is the MGS running", wantText: []string{"the claim is bound, and its storage does not answer"}, build: func(c *clustertest.Cluster) {
			waitForStorage(c, `MountVolume.MountDevice failed for volume "vol" : rpc error: code = Internal desc = mount failed: exit status 5: Input/output error Is the MGS running?`)
		}},
		{name: "a path in the storage of a claim does not exist", code: answer.VolumeMount, exit: 4, build: func(c *clustertest.Cluster) {
			waitForStorage(c, `MountVolume.SetUp failed for volume "vol" : mount failed: exit status 32: mount.nfs: mounting nfs:/x failed, reason given by server: No such file or directory`)
		}},
	})
}

// waitForStorage has both members of a gang report the same of the volume of claim data.
func waitForStorage(c *clustertest.Cluster, report string) {
	c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }, pods(func(_ int, p *corev1.Pod) {
		creatingContainer(p)
		mounted("data")(p)
	})))
	boundClaim(c, "", corev1.ReadWriteMany)
	for _, name := range []string{"gang-worker-0", "gang-worker-1"} {
		c.Event("Pod", "team", name, "kubelet", "FailedMount", report, 9*time.Minute)
	}
}

// noNetwork has both members of a gang report that a network is missing. Their pods have some annotations, and so has the job if it is stated there.
func noNetwork(c *clustertest.Cluster, annotations map[string]string, stated bool) {
	c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }, pods(func(_ int, p *corev1.Pod) {
		creatingContainer(p)
		for key, value := range annotations {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value)
		}
	}), job(func(u map[string]any) {
		for key, value := range annotations {
			if stated {
				set(value, "spec", "tfReplicaSpecs", "Worker", "template", "metadata", "annotations", key)(u)
			}
		}
	})))
	for _, name := range []string{"gang-worker-0", "gang-worker-1"} {
		c.Event("Pod", "team", name, "kubelet", "FailedCreatePodSandBox", `Failed to create pod sandbox: plugin type="multus" name="multus-cni-network" failed (add): Multus: [team/`+name+`/uid]: error getting k8s network: cannot find a network-attachment-definition (rdma-net-1) in namespace (team): network-attachment-definitions.k8s.cni.cncf.io "rdma-net-1" not found`, 9*time.Minute)
	}
}

// domainDaemon adds the daemon of a ComputeDomain on a node; it runs where it does not wait.
func domainDaemon(c *clustertest.Cluster, name, node, domain string, waits *corev1.ContainerStatus) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "nvidia", Name: name, Labels: map[string]string{"resource.nvidia.com/computeDomain": domain}}, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "daemon"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	if waits != nil {
		p.Status.Conditions[0].Status, p.Status.ContainerStatuses = corev1.ConditionFalse, []corev1.ContainerStatus{*waits}
	}
	c.Put(p)
}

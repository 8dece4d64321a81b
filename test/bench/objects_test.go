package bench

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	tfJobs    = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}
	podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	yes       = true
)

func resources(gpus, cpus int64) corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(cpus, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity((1+4*gpus+cpus)<<30, resource.BinarySI),
	}
	if gpus > 0 {
		list["nvidia.com/gpu"] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	return list
}

// node looks as one of a cloud: two dozen labels, images, heartbeats.
func node(m *machine, now metav1.Time) *corev1.Node {
	zone := fmt.Sprintf("eu-1%c", 'a'+m.index%3)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: map[string]string{
		corev1.LabelHostname: m.name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux",
		corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: "eu-1", "failure-domain.beta.kubernetes.io/zone": zone, "failure-domain.beta.kubernetes.io/region": "eu-1",
		corev1.LabelInstanceTypeStable: fmt.Sprintf("m.%dx%d", m.cpus, m.gpus), "topology.example.com/rack": fmt.Sprintf("rack-%03d", m.index/20),
		"node.example.com/pool": fmt.Sprintf("pool-%d", m.index%5), "node.example.com/owner": "platform", "nvidia.com/gpu.count": fmt.Sprint(m.gpus), "nvidia.com/gpu.product": "A100-SXM4-80GB",
		"nvidia.com/gpu.memory": "81920", "nvidia.com/cuda.driver.major": "550", "nvidia.com/mig.capable": "true", "feature.node.kubernetes.io/cpu-cpuid.AVX512F": "true",
		"feature.node.kubernetes.io/cpu-model.family": "6", "feature.node.kubernetes.io/kernel-version.full": "6.8.0-45-generic", "feature.node.kubernetes.io/system-os_release.ID": "ubuntu",
	}, Annotations: map[string]string{"csi.volume.kubernetes.io/nodeid": fmt.Sprintf(`{"disk.csi.example.com":"projects/ml/zones/%s/instances/%s"}`, zone, m.name),
		"node.alpha.kubernetes.io/ttl": "0", "volumes.kubernetes.io/controller-managed-attach-detach": "true"}}}
	n.Spec.ProviderID = "cloud://ml/" + zone + "/" + m.name
	size := resources(m.gpus, m.cpus)
	size[corev1.ResourceMemory] = *resource.NewQuantity(m.cpus<<33, resource.BinarySI)
	size[corev1.ResourcePods], size[corev1.ResourceEphemeralStorage] = resource.MustParse("110"), resource.MustParse("1Ti")
	size["hugepages-1Gi"], size["hugepages-2Mi"] = resource.MustParse("0"), resource.MustParse("0")
	n.Status.Capacity, n.Status.Allocatable = size, size
	for _, c := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable, corev1.NodeReady} {
		status, beat := corev1.ConditionFalse, metav1.NewTime(now.Add(-time.Duration(m.index%300)*time.Second))
		if c == corev1.NodeReady {
			status = corev1.ConditionTrue
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: c, Status: status, Reason: "Kubelet" + string(c), Message: "kubelet reports " + string(c) + " as " + string(status),
			LastHeartbeatTime: beat, LastTransitionTime: metav1.NewTime(now.Add(-240 * time.Hour))})
	}
	for i := range 25 {
		image := fmt.Sprintf("registry.example.com/ml/image-%03d", (m.index+i*7)%200)
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{image + "@sha256:" + strings.Repeat(fmt.Sprintf("%08x", i*m.index), 8), image + ":v1." + fmt.Sprint(i)}, SizeBytes: 1 << 31})
	}
	n.Status.NodeInfo = corev1.NodeSystemInfo{MachineID: strings.Repeat("ab", 16), SystemUUID: string(uid(m.index)), BootID: string(uid(m.index + 1)), KernelVersion: "6.8.0-45-generic", OSImage: "Ubuntu 24.04.1 LTS",
		ContainerRuntimeVersion: "containerd://1.7.22", KubeletVersion: "v1.37.1", KubeProxyVersion: "v1.37.1", OperatingSystem: "linux", Architecture: "amd64"}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.%d", m.index>>16, m.index>>8&255, m.index&255)}, {Type: corev1.NodeHostName, Address: m.name}}
	return n
}

// uid looks like one, and tells numbers apart.
func uid(i int) types.UID {
	return types.UID(fmt.Sprintf("%08x-5d0c-4f6e-9d5c-%012x", i*2654435761&0xffffffff, i))
}

func csiNode(m *machine) *storagev1.CSINode {
	n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
	limit := int32(25)
	n.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "disk.csi.example.com", NodeID: m.name, TopologyKeys: []string{"topology.example.com/zone"}, Allocatable: &storagev1.VolumeNodeResources{Count: &limit}}}
	return n
}

func daemonSet() *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "monitoring", Name: "node-exporter"}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "node-exporter"}}
	d.Spec.Template.Labels, d.Spec.Template.Spec = d.Spec.Selector.MatchLabels, spec("node-exporter", 0, 1, nil)
	return d
}

func deployment(s service) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name, Labels: map[string]string{"app": s.name}}}
	replicas := int32(servicePods)
	d.Spec.Replicas, d.Spec.Selector = &replicas, &metav1.LabelSelector{MatchLabels: map[string]string{"app": s.name}}
	d.Spec.Template.Labels, d.Spec.Template.Spec = d.Spec.Selector.MatchLabels, spec("api", 0, 2, env(s.name, 0, 0))
	return d
}

// hash is that of the pod template.
func (s service) hash() string { return fmt.Sprintf("%010x", len(s.name)*7919) }

func (s service) replicaSet() string { return s.name + "-" + s.hash() }

func replicaSet(s service, d *appsv1.Deployment) *appsv1.ReplicaSet {
	labels := map[string]string{"app": s.name, "pod-template-hash": s.hash()}
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.replicaSet(), Labels: labels,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name, UID: d.UID, Controller: &yes, BlockOwnerDeletion: &yes}}}}
	rs.Spec.Replicas, rs.Spec.Selector = d.Spec.Replicas, &metav1.LabelSelector{MatchLabels: labels}
	rs.Spec.Template.Labels, rs.Spec.Template.Spec = labels, d.Spec.Template.Spec
	return rs
}

func tfJob(j job, now metav1.Time) *unstructured.Unstructured {
	s := spec("tensorflow", j.gpus, j.cpus, env(j.name, 0, 0))
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.PodTemplateSpec{Spec: s})
	if err != nil {
		panic(err) // a mistake in the benchmark
	}
	began := now.Add(-time.Duration(j.hours) * time.Hour).UTC().Format(time.RFC3339)
	condition := func(kind, status string) any {
		return map[string]any{"type": kind, "status": status, "reason": "TFJob" + kind, "message": "TFJob " + j.namespace + "/" + j.name + " is " + kind, "lastTransitionTime": began, "lastUpdateTime": began}
	}
	status := map[string]any{"startTime": began, "conditions": []any{condition("Created", "True")}, "replicaStatuses": map[string]any{"Worker": map[string]any{}}}
	switch j.state {
	case running:
		status["conditions"] = append(status["conditions"].([]any), condition("Running", "True"))
		status["replicaStatuses"] = map[string]any{"Worker": map[string]any{"active": int64(j.workers)}}
	case finished:
		status["conditions"] = append(status["conditions"].([]any), condition("Running", "False"), condition("Succeeded", "True"))
		status["replicaStatuses"] = map[string]any{"Worker": map[string]any{"succeeded": int64(j.workers)}}
		status["completionTime"] = now.UTC().Format(time.RFC3339)
	case waiting:
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob",
		"metadata": map[string]any{"namespace": j.namespace, "name": j.name, "labels": map[string]any{"team": j.namespace, "project": j.name[:len(j.name)-2]}},
		"spec": map[string]any{"runPolicy": map[string]any{"cleanPodPolicy": "Running"},
			"tfReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": int64(j.workers), "restartPolicy": "Never", "template": template}}},
		"status": status}}
}

func podGroup(j job, owner *unstructured.Unstructured) *unstructured.Unstructured {
	phase := map[state]string{running: "Running", waiting: "Pending", finished: "Finished"}[j.state]
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{"namespace": j.namespace, "name": j.name, "ownerReferences": []any{map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": j.name,
			"uid": string(owner.GetUID()), "controller": true}}},
		"spec": map[string]any{"minMember": int64(j.workers)}, "status": map[string]any{"phase": phase}}}
}

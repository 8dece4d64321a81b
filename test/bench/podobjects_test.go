package bench

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// env is what training pods carry: who they are among the members, and some settings.
func env(job string, index, workers int) []corev1.EnvVar {
	list := []corev1.EnvVar{{Name: "TF_CONFIG", Value: fmt.Sprintf(`{"sparseCluster":{"worker":{"%d":"%s-worker-%d.svc:2222"}},"task":{"type":"worker","index":%d},"environment":"cloud"}`, index, job, index, index)}}
	list = append(list, corev1.EnvVar{Name: "WORLD_SIZE", Value: fmt.Sprint(workers)}, corev1.EnvVar{Name: "NCCL_DEBUG", Value: "WARN"},
		corev1.EnvVar{Name: "CHECKPOINT_DIR", Value: "gs://bucket-of-the-team/" + job + "/checkpoints"})
	return append(list, corev1.EnvVar{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}})
}

// spec is that of a pod with one container, as somebody writes it.
func spec(container string, gpus, cpus int64, env []corev1.EnvVar) corev1.PodSpec {
	asks := resources(gpus, cpus)
	s := corev1.PodSpec{SchedulerName: "gang", RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
		Name: container, Image: "registry.example.com/ml/" + container + ":v1.2.3", Command: []string{"python", "/opt/app/main.py"},
		Args: []string{"--config=/etc/app/config.yaml", "--checkpoint-dir=/checkpoints", "--log-level=info"}, Env: env,
		Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks}, Ports: []corev1.ContainerPort{{Name: "tfjob-port", ContainerPort: 2222}},
		VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}, {Name: "config", MountPath: "/etc/app"}},
	}}}
	s.Volumes = []corev1.Volume{
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}}}},
	}
	if container != "tensorflow" {
		s.SchedulerName, s.RestartPolicy = "", corev1.RestartPolicyAlways
	}
	return s
}

// token is the volume that admission adds to every pod.
func token(s *corev1.PodSpec, name string) {
	ttl := int64(3607)
	s.Volumes = append(s.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &ttl}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}}}}}})
	s.Containers[0].VolumeMounts = append(s.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"})
}

func owned(p *corev1.Pod, apiVersion, kind, name string, uid types.UID) {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: &yes, BlockOwnerDeletion: &yes}}
}

// on puts a pod on a node, where it runs or has ended.
func on(p *corev1.Pod, m *machine, phase corev1.PodPhase, began time.Time, number int) *corev1.Pod {
	p.Spec.NodeName = m.name
	at := metav1.NewTime(began)
	ip := fmt.Sprintf("172.%d.%d.%d", 16+number>>16, number>>8&255, number&255)
	p.Status = corev1.PodStatus{Phase: phase, StartTime: &at, HostIP: "10.0.0.1", HostIPs: []corev1.HostIP{{IP: "10.0.0.1"}}, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, QOSClass: corev1.PodQOSGuaranteed}
	for _, c := range []corev1.PodConditionType{"PodReadyToStartContainers", corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	c := p.Spec.Containers[0]
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
	id := "containerd://" + strings.Repeat(fmt.Sprintf("%08x", number), 8)
	if phase == corev1.PodSucceeded {
		state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: at, FinishedAt: at, ContainerID: id}}
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: c.Name, Image: c.Image, ImageID: "registry.example.com/ml/" + c.Name + "@sha256:" + strings.Repeat("0123456789abcdef", 4),
		ContainerID: id, Ready: phase == corev1.PodRunning, Started: &yes, State: state, AllocatedResources: c.Resources.Requests, Resources: &c.Resources}}
	return p
}

func daemonPod(m *machine, uid types.UID, now metav1.Time) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "monitoring", Name: fmt.Sprintf("node-exporter-%05x", m.index),
		Labels: map[string]string{"app.kubernetes.io/name": "node-exporter", "controller-revision-hash": "7d9c6f7b5c", "pod-template-generation": "3"}}, Spec: spec("node-exporter", 0, 1, nil)}
	token(&p.Spec, fmt.Sprintf("kube-api-access-%05x", m.index))
	owned(p, "apps/v1", "DaemonSet", "node-exporter", uid)
	return on(p, m, corev1.PodRunning, now.Add(-240*time.Hour), m.index)
}

func servicePod(s service, i int, uid types.UID, now metav1.Time) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("%s-%05d", s.replicaSet(), i),
		Labels: map[string]string{"app": s.name, "pod-template-hash": s.hash()}}, Spec: spec("api", 0, 2, env(s.name, 0, 0))}
	token(&p.Spec, fmt.Sprintf("kube-api-access-%s%d", s.name, i))
	owned(p, "apps/v1", "ReplicaSet", s.replicaSet(), uid)
	return on(p, s.nodes[i], corev1.PodRunning, now.Add(-100*time.Hour), i)
}

// member is a pod as the Training Operator makes it.
func member(j job, i int, uid types.UID, now metav1.Time) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: j.namespace, Name: fmt.Sprintf("%s-worker-%d", j.name, i), Labels: map[string]string{
		"training.kubeflow.org/job-name": j.name, "training.kubeflow.org/operator-name": "tfjob-controller", "training.kubeflow.org/replica-type": "worker",
		"training.kubeflow.org/replica-index": fmt.Sprint(i), "scheduling.x-k8s.io/pod-group": j.name, "team": j.namespace},
		Annotations: map[string]string{"sidecar.istio.io/inject": "false", "prometheus.io/scrape": "true",
			"k8s.v1.cni.cncf.io/network-status": fmt.Sprintf(`[{"name":"net1","interface":"eth0","ips":["10.1.%d.%d"],"mac":"0a:58:0a:01:%02x:%02x","default":true,"dns":{}}]`, i>>8, i&255, i>>8&255, i&255)}},
		Spec: spec("tensorflow", j.gpus, j.cpus, env(j.name, i, j.workers))}
	token(&p.Spec, fmt.Sprintf("kube-api-access-%s%d", j.name[len(j.name)-2:], i))
	owned(p, "kubeflow.org/v1", "TFJob", j.name, uid)
	began := now.Add(-time.Duration(j.hours) * time.Hour)
	switch {
	case j.nodes[i] == nil:
		p.Status.Phase = corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/5000 nodes are available: 5000 Insufficient nvidia.com/gpu.",
			LastTransitionTime: metav1.NewTime(began)}}
		return p
	case j.state == finished:
		return on(p, j.nodes[i], corev1.PodSucceeded, began, i)
	}
	return on(p, j.nodes[i], corev1.PodRunning, began, i)
}

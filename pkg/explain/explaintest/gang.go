package explaintest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Gang describes a TFJob with one role, its PodGroup and its pods.
type Gang struct {
	Namespace, Name string
	Workers         int
	GPUs            int64
	// CPU and Memory are those of one worker; 8 and 64Gi if empty.
	CPU, Memory string
	// Min is the minimum of the gang; all workers if 0.
	Min int
	// Nodes bind the first workers, which then run.
	Nodes []string
	// Missing is how many of the last workers have no pod.
	Missing int
	// Age is how long ago the job was submitted; 10 minutes if 0.
	Age time.Duration
	// Spec changes the pod template and the pods.
	Spec func(*corev1.PodSpec)
	// Pod changes each pod.
	Pod func(i int, p *corev1.Pod)
	// Job changes the TFJob, Group the PodGroup.
	Job, Group func(map[string]any)
	// NoGroup leaves the PodGroup and the marks on pods out; Volcano uses Volcano's format and the queue named.
	NoGroup bool
	Volcano string
}

// Resources are what one worker asks for.
func (g Gang) resources() corev1.ResourceList {
	cpu, memory := g.CPU, g.Memory
	if cpu == "" {
		cpu = "8"
	}
	if memory == "" {
		memory = "64Gi"
	}
	list := List("cpu", cpu, "memory", memory)
	if g.GPUs > 0 {
		list["nvidia.com/gpu"] = *resource.NewQuantity(g.GPUs, resource.DecimalSI)
	}
	return list
}

func (g Gang) spec() corev1.PodSpec {
	r := g.resources()
	spec := corev1.PodSpec{SchedulerName: Scheduler, RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "tensorflow", Image: "train:v1", Resources: corev1.ResourceRequirements{Requests: r, Limits: r.DeepCopy()}}}}
	if g.Spec != nil {
		g.Spec(&spec)
	}
	return spec
}

// Add adds the gang to a cluster.
func (c *Cluster) Add(g Gang) *Cluster {
	if g.Namespace == "" {
		g.Namespace = "team"
	}
	if g.Age == 0 {
		g.Age = 10 * time.Minute
	}
	if g.Min == 0 {
		g.Min = g.Workers
	}
	c.addJob(g)
	if !g.NoGroup {
		c.addGroup(g)
	}
	for i := range g.Workers - g.Missing {
		c.addPod(g, i)
	}
	return c
}

func (c *Cluster) addJob(g Gang) {
	spec := g.spec()
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.PodTemplateSpec{Spec: spec})
	if err != nil {
		panic(err) // a mistake in a test
	}
	condition := map[string]any{"type": "Created", "status": "True", "reason": "TFJobCreated", "lastTransitionTime": stamp(g.Age)}
	job := map[string]any{
		"apiVersion": "kubeflow.org/v1", "kind": "TFJob",
		"metadata": map[string]any{"name": g.Name, "namespace": g.Namespace, "uid": string(uid("TFJob", g.Namespace, g.Name)), "creationTimestamp": stamp(g.Age)},
		"spec": map[string]any{"runPolicy": map[string]any{}, "tfReplicaSpecs": map[string]any{
			"Worker": map[string]any{"replicas": int64(g.Workers), "restartPolicy": "Never", "template": template}}},
		"status": map[string]any{"conditions": []any{condition}, "startTime": stamp(g.Age)},
	}
	if g.Job != nil {
		g.Job(job)
	}
	c.Object(job)
}

func stamp(ago time.Duration) string { return Now.Add(-ago).Format(time.RFC3339) }

func (c *Cluster) addGroup(g Gang) {
	total := map[string]any{}
	for name, q := range g.resources() {
		sum := q.DeepCopy()
		for range g.Min - 1 {
			sum.Add(q)
		}
		total[string(name)] = sum.String()
	}
	group := map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{"name": g.Name, "namespace": g.Namespace, "uid": string(uid("PodGroup", g.Namespace, g.Name)), "creationTimestamp": stamp(g.Age)},
		"spec":     map[string]any{"minMember": int64(g.Min), "minResources": total},
	}
	if g.Volcano != "" {
		group["apiVersion"] = "scheduling.volcano.sh/v1beta1"
		group["spec"].(map[string]any)["queue"] = g.Volcano
		group["status"] = map[string]any{"phase": "Inqueue"}
		if g.Missing == g.Workers {
			group["status"] = map[string]any{"phase": "Pending"}
		}
	}
	if g.Group != nil {
		g.Group(group)
	}
	u := &unstructured.Unstructured{Object: group}
	yes := true
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Name: g.Name, UID: uid("TFJob", g.Namespace, g.Name), Controller: &yes}})
	c.put(u)
}

func (c *Cluster) addPod(g Gang, i int) {
	yes := true
	name := fmt.Sprintf("%s-worker-%d", g.Name, i)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: name, UID: uid("Pod", g.Namespace, name), CreationTimestamp: Ago(g.Age - time.Second),
		Labels:          map[string]string{"training.kubeflow.org/job-name": g.Name, "training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": fmt.Sprint(i)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Name: g.Name, UID: uid("TFJob", g.Namespace, g.Name), Controller: &yes}}}}
	switch {
	case g.NoGroup:
	case g.Volcano != "":
		p.Annotations = map[string]string{"scheduling.k8s.io/group-name": g.Name}
	default:
		p.Labels["scheduling.x-k8s.io/pod-group"] = g.Name
	}
	p.Spec = g.spec()
	p.Status.Phase = corev1.PodPending
	if i < len(g.Nodes) {
		started := Ago(g.Age - 2*time.Second)
		p.Spec.NodeName, p.Status.Phase, p.Status.StartTime = g.Nodes[i], corev1.PodRunning, &started
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "tensorflow", Image: "train:v1", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}}}
	}
	if g.Pod != nil {
		g.Pod(i, p)
	}
	c.put(p)
}

// Runs adds a job that has run for two hours, with one worker on each node.
func (c *Cluster) Runs(name string, gpus int64, nodes ...string) *Cluster {
	return c.Add(Gang{Namespace: "research", Name: name, Workers: len(nodes), GPUs: gpus, Nodes: nodes, Age: 2 * time.Hour})
}

// Serves adds a Deployment, which never ends, with one pod on each node.
func (c *Cluster) Serves(name string, gpus int64, nodes ...string) *Cluster {
	d := c.Deployment("serving", name, "serve:v1")
	yes := true
	for i, node := range nodes {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "serving", Name: fmt.Sprintf("%s-abc-%d", name, i), Labels: map[string]string{"pod-template-hash": "abc"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: d.Name + "-abc", UID: "rs:" + uid("", "serving", name), Controller: &yes}}}}
		p.UID = uid("Pod", p.Namespace, p.Name)
		p.Spec = Gang{GPUs: gpus}.spec()
		p.Spec.NodeName, p.Spec.RestartPolicy, p.Status.Phase = node, corev1.RestartPolicyAlways, corev1.PodRunning
		c.put(p)
	}
	return c
}

// ServesWith is Serves with another request of cpu.
func (c *Cluster) ServesWith(name string, gpus int64, cpu string, nodes ...string) *Cluster {
	c.Serves(name, gpus, nodes...)
	for _, p := range c.S.Pods {
		if p.Namespace == "serving" && p.Labels["pod-template-hash"] == "abc" && len(p.OwnerReferences) > 0 && p.OwnerReferences[0].Name == name+"-abc" {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
			p.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
	}
	return c
}

// Daemon adds a pod of a DaemonSet to a node.
func (c *Cluster) Daemon(name, node, cpu string) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name + "-" + node, UID: uid("Pod", "kube-system", name+"-"+node),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: name, UID: uid("DaemonSet", "kube-system", name), Controller: &yes}}}}
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	p.Spec.Containers = []corev1.Container{{Name: name, Resources: corev1.ResourceRequirements{Requests: List("cpu", cpu)}}}
	c.put(p)
	return p
}

// Queue adds a queue of Volcano.
func (c *Cluster) Queue(name, state string, capability map[string]any) *unstructured.Unstructured {
	spec := map[string]any{"weight": int64(1)}
	if capability != nil {
		spec["capability"] = capability
	}
	return c.Object(map[string]any{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": map[string]any{"name": name},
		"spec": spec, "status": map[string]any{"state": state}})
}

// Apart is a required anti-affinity among the pods of a job, by node.
func Apart(job string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"training.kubeflow.org/job-name": job}}}}}}
}

// Together is a required affinity among the pods of a job, by a label of nodes.
func Together(job, key string) *corev1.Affinity {
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"training.kubeflow.org/job-name": job}}}}}}
}

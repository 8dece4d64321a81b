package clustertest

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/kubeflow"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
)

// Gang describes a job, the object that declares it a gang, and its pods.
type Gang struct {
	Namespace, Name string
	// Kind is TFJob if empty, or PyTorchJob, MPIJob, XGBoostJob, PaddleJob, JAXJob, TrainJob, JobSet, LeaderWorkerSet, RayJob, RayCluster, Job or VolcanoJob.
	Kind    string
	Workers int
	GPUs    int64
	// CPU and Memory are those of one worker; 8 and 64Gi if empty.
	CPU, Memory string
	// More are the roles other than the workers.
	More []Role
	// Min is the minimum of the gang; all members if 0.
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
	// Job changes the job, unless it is one of Kubernetes itself; Group changes the group object.
	Job, Group func(map[string]any)
	// BatchJob changes a Job of Kubernetes itself.
	BatchJob func(*batchv1.Job)
	// Dialect is how the gang is declared; scheduler-plugins if empty.
	Dialect gang.Dialect
	// Scheduler is the schedulerName of the pods; if empty the one that is alive in every cluster.
	Scheduler string
	// NoGroup leaves the PodGroup and the membership labels and annotations of pods out; Volcano uses Volcano's format and the queue named.
	NoGroup bool
	Volcano string
	// Queue is the queue that the group object names in a dialect that has queues.
	Queue string
}

// Role is one role other than the workers. Its fields are those of Gang.
type Role struct {
	Name        string
	Replicas    int
	GPUs        int64
	CPU, Memory string
	Nodes       []string
	Missing     int
	Spec        func(*corev1.PodSpec)
	Pod         func(i int, p *corev1.Pod)
}

// Add adds the gang to a cluster.
func (c *Cluster) Add(g Gang) *Cluster {
	g = g.defaulted()
	switch g.Kind {
	case "Job":
		c.addBatchJob(g)
	case jobset.Kind, trainjob.Kind:
		c.addJobSet(g)
	case ray.JobKind, ray.ClusterKind:
		c.addRay(g)
	case leaderworkerset.Kind:
		c.addLeaderWorkerSet(g)
	case VolcanoJob:
		c.addVolcanoJob(g)
	default:
		c.addJob(g)
	}
	if !g.NoGroup {
		c.addGroup(g)
	}
	for _, r := range g.roles() {
		for i := range r.Replicas - r.Missing {
			c.addPod(g, r, i)
		}
	}
	return c
}

func (g Gang) defaulted() Gang {
	if g.Namespace == "" {
		g.Namespace = "team"
	}
	if g.Kind == "" {
		g.Kind = "TFJob"
	}
	if g.isRay() {
		g = g.withHead()
	}
	if g.Age == 0 {
		g.Age = 10 * time.Minute
	}
	if g.Min == 0 {
		for _, r := range g.roles() {
			g.Min += r.Replicas
		}
	}
	if g.Volcano != "" {
		g.Dialect, g.Queue = gang.Volcano, g.Volcano
	}
	if g.Dialect == "" {
		g.Dialect = gang.SchedulerPlugins
	}
	if g.Scheduler == "" {
		g.Scheduler = Scheduler
	}
	return g
}

func (g Gang) roles() []Role {
	name := "Worker"
	if g.Kind == trainjob.Kind {
		name = "Node"
	}
	workers := Role{Name: name, Replicas: g.Workers, GPUs: g.GPUs, CPU: g.CPU, Memory: g.Memory, Nodes: g.Nodes, Missing: g.Missing, Pod: g.Pod}
	return append([]Role{workers}, g.More...)
}

func (g Gang) uid() types.UID { return uid(g.Kind, g.Namespace, g.Name) }

// resources are what one member requests.
func (r Role) resources() corev1.ResourceList {
	cpu, memory := r.CPU, r.Memory
	if cpu == "" {
		cpu = "8"
	}
	if memory == "" {
		memory = "64Gi"
	}
	list := List("cpu", cpu, "memory", memory)
	if r.GPUs > 0 {
		list["nvidia.com/gpu"] = *resource.NewQuantity(r.GPUs, resource.DecimalSI)
	}
	return list
}

// container is the container that the controller of a kind looks for.
func container(kind string) string {
	reader, _ := kinds.ByKind(schema.GroupKind{Group: kubeflow.Group, Kind: kind})
	if kind == "MPIJob" {
		return "mpi"
	}
	return cmp.Or(reader.Container, "main")
}

func (g Gang) spec(r Role) corev1.PodSpec {
	list := r.resources()
	spec := corev1.PodSpec{SchedulerName: g.Scheduler, RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: container(g.Kind), Image: "train:v1", Resources: corev1.ResourceRequirements{Requests: list, Limits: list.DeepCopy()}}}}
	if g.Spec != nil {
		g.Spec(&spec)
	}
	if r.Spec != nil {
		r.Spec(&spec)
	}
	return spec
}

// addPod adds one pod, with the name, the labels and the owner that its controller gives it.
func (c *Cluster) addPod(g Gang, r Role, i int) {
	yes := true
	role := strings.ToLower(r.Name)
	name := fmt.Sprintf("%s-%s-%d", g.Name, role, i)
	annotations := map[string]string{}
	labels := map[string]string{"training.kubeflow.org/job-name": g.Name, "training.kubeflow.org/replica-type": role, "training.kubeflow.org/replica-index": fmt.Sprint(i)}
	owner := metav1.OwnerReference{APIVersion: "kubeflow.org/v1", Kind: g.Kind, Name: g.Name, UID: g.uid(), Controller: &yes}
	switch {
	case g.Kind == "Job":
		name = fmt.Sprintf("%s-x7k%02d", g.Name, i)
		labels = map[string]string{"batch.kubernetes.io/job-name": g.Name, "job-name": g.Name}
		owner.APIVersion = "batch/v1"
	case g.ofSet():
		name = fmt.Sprintf("%s-0-%d-x7k%02d", g.part(r), i, i)
		labels = g.jobSetLabels(r, i)
		owner = metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: g.part(r) + "-0", UID: uid("Job", g.Namespace, g.part(r)+"-0"), Controller: &yes}
	case g.isRay():
		name = fmt.Sprintf("%s-%s-worker-x7k%02d", g.cluster(), role, i)
		labels, owner = g.rayPod(role)
	case g.Kind == VolcanoJob:
		labels = map[string]string{"volcano.sh/job-name": g.Name, "volcano.sh/task-spec": role, "volcano.sh/task-index": fmt.Sprint(i)}
		annotations["volcano.sh/task-spec"] = role
		owner.APIVersion, owner.Kind = volcanoJobVersion, "Job"
	case g.Kind == leaderworkerset.Kind:
		meta := g.replicaMeta(i)
		name, labels, annotations, owner = meta.Name, meta.Labels, meta.Annotations, meta.OwnerReferences[0]
	case g.Kind == "MPIJob" && role == "launcher":
		name = g.Name + "-launcher-q9z4w"
		labels = map[string]string{"training.kubeflow.org/job-name": g.Name, "training.kubeflow.org/job-role": "launcher"}
		owner = metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: g.Name + "-launcher", UID: uid("Job", g.Namespace, g.Name+"-launcher"), Controller: &yes}
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: name, UID: uid("Pod", g.Namespace, name), CreationTimestamp: Ago(g.Age - time.Second),
		Labels: labels, Annotations: annotations, OwnerReferences: []metav1.OwnerReference{owner}}}
	p.Spec = g.spec(r)
	p.Status.Phase = corev1.PodPending
	if !g.NoGroup {
		g.addToGroup(&p.ObjectMeta, &p.Spec, role)
	}
	if i < len(r.Nodes) {
		started := Ago(g.Age - 2*time.Second)
		p.Spec.NodeName, p.Status.Phase, p.Status.StartTime = r.Nodes[i], corev1.PodRunning, &started
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name, Image: "train:v1", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}}}
	}
	if r.Pod != nil {
		r.Pod(i, p)
	}
	c.put(p)
}

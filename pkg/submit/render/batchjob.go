package render

import (
	"encoding/json"
	"fmt"
	"strconv"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// Framework is what the members of an Indexed Job learn of each other from their environment, as an operator would tell them.
type Framework string

// The frameworks.
const (
	// TensorFlow is told in TF_CONFIG.
	TensorFlow Framework = "tensorflow"
	// Torch is told in MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK, and in the variables PET_… of torchrun.
	Torch Framework = "torch"
	// NoFramework leaves it to the program, which has JOB_COMPLETION_INDEX and the names of the others.
	NoFramework Framework = "none"
)

// Ports are those at which the frameworks' own tools listen.
const (
	tensorFlowPort = 2222
	torchPort      = 29500
)

// indexEnv is the variable in which a Job tells a pod its index.
const indexEnv = "JOB_COMPLETION_INDEX"

// indexAnnotation is where a Job writes the index on a pod, in every release that has indices.
const indexAnnotation = "metadata.annotations['" + batchv1.JobCompletionIndexAnnotation + "']"

// IndexedJob writes Jobs of Kubernetes itself (batch/v1) of as many members at a time as there are in all, with a headless
// Service through which they find each other as NAME-INDEX.NAME: no operator is needed.
func IndexedJob() Kind {
	job := &batchv1.Job{}
	return Kind{
		job: job, main: "worker", Sets: indexedEnv, finish: tellIndexed, further: service,
		lay: func(s Spec) (*laid, error) {
			if len(s.Roles) != 1 || s.Roles[0].Name != batchjob.Role {
				return nil, fmt.Errorf("an Indexed Job has one role, %s", batchjob.Role)
			}
			role, mode := s.Roles[0], batchv1.IndexedCompletion
			job.Spec.Parallelism, job.Spec.Completions, job.Spec.CompletionMode = &role.Replicas, &role.Replicas, &mode
			job.Spec.Template.Spec.Subdomain = s.Name
			limits := &kubeflowv1.RunPolicy{BackoffLimit: job.Spec.BackoffLimit, ActiveDeadlineSeconds: job.Spec.ActiveDeadlineSeconds, TTLSecondsAfterFinished: job.Spec.TTLSecondsAfterFinished}
			s.Lifetime.lay(limits)
			job.Spec.BackoffLimit, job.Spec.ActiveDeadlineSeconds, job.Spec.TTLSecondsAfterFinished = limits.BackoffLimit, limits.ActiveDeadlineSeconds, limits.TTLSecondsAfterFinished
			if s.RestartPolicy != "" {
				job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicy(s.RestartPolicy)
			}
			return &laid{roles: []placed{{role, &job.Spec.Template}}}, nil
		},
	}
}

// indexedEnv are the variables that tellIndexed sets.
func indexedEnv(s Spec) []string {
	switch {
	case s.Framework == TensorFlow && s.members() > 1:
		return []string{indexEnv, "TF_CONFIG"}
	case s.Framework == Torch:
		return append([]string{indexEnv}, torchEnv...)
	}
	return []string{indexEnv}
}

// host is the name under which a member of an Indexed Job is found in the cluster.
func host(s Spec, index int) string {
	return fmt.Sprintf("%s-%d.%s.%s.svc", s.Name, index, s.Name, s.Namespace)
}

// tellIndexed tells members where they are. The kubelet puts the index into what comes after it.
func tellIndexed(c *corev1.Container, role Role, s Spec) {
	index := func(name string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: indexAnnotation}}}
	}
	number := func(name string, n int) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: strconv.Itoa(n)} }
	switch s.Framework {
	case TensorFlow:
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: "tensorflow", ContainerPort: tensorFlowPort})
		if role.Replicas > 1 { // TensorFlow takes a cluster of one for a distributed job as well
			c.Env = append(c.Env, index(indexEnv), corev1.EnvVar{Name: "TF_CONFIG", Value: tfConfig(role, s)})
		}
	case Torch:
		nodes, processes := int(role.Replicas), 1
		if n, err := strconv.Atoi(s.ProcessesPerNode); err == nil {
			processes = n
		}
		perNode := s.ProcessesPerNode
		if perNode == "" {
			perNode = "auto"
		}
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: "torch", ContainerPort: torchPort})
		for _, prefix := range []string{"", "PET_"} {
			c.Env = append(c.Env, corev1.EnvVar{Name: prefix + "MASTER_ADDR", Value: host(s, 0)}, number(prefix+"MASTER_PORT", torchPort))
		}
		c.Env = append(c.Env, number("WORLD_SIZE", nodes*processes), index("RANK"),
			number("PET_NNODES", nodes), index("PET_NODE_RANK"), corev1.EnvVar{Name: "PET_NPROC_PER_NODE", Value: perNode})
	case NoFramework: // the Job itself tells the index
	}
}

// tfConfig is what the Training Operator would write for a job of workers, but for the index, which the kubelet fills in.
func tfConfig(role Role, s Spec) string {
	workers := make([]string, role.Replicas)
	for i := range workers {
		workers[i] = host(s, i) + ":" + strconv.Itoa(tensorFlowPort)
	}
	cluster, err := json.Marshal(map[string]any{"worker": workers})
	if err != nil {
		panic(err) // it is made of strings
	}
	return fmt.Sprintf(`{"cluster":%s,"task":{"type":"worker","index":$(%s)},"environment":"cloud"}`, cluster, indexEnv)
}

// service lets members find each other from the moment in which they have an address: they wait for each other to be ready.
func service(s Spec) (*unstructured.Unstructured, error) {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace, Labels: s.Labels},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true,
			Selector: map[string]string{batchv1.JobNameLabel: s.Name}},
	}
	svc.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	port := map[Framework]int32{TensorFlow: tensorFlowPort, Torch: torchPort}[s.Framework]
	if port > 0 {
		svc.Spec.Ports = []corev1.ServicePort{{Name: string(s.Framework), Port: port, TargetPort: intstr.FromInt32(port)}}
	}
	return Unstructured(svc)
}

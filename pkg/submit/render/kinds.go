package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// replicaSpecs are the roles of the jobs of the Training Operator.
type replicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec

// overlayReplicas merges the roles of the spec into those of a job of the Training Operator; field is where it keeps them. Roles that
// are not in the spec are left out.
func overlayReplicas(field string, specs replicaSpecs, policy *kubeflowv1.RunPolicy, s Spec) (*overlaid, error) {
	l := &overlaid{policy: policy}
	if s.CleanPodPolicy != "" {
		policy.CleanPodPolicy = &s.CleanPodPolicy
	}
	kept := map[kubeflowv1.ReplicaType]bool{}
	for _, role := range s.Roles {
		if role.Replicas == 0 {
			continue
		}
		name := kubeflowv1.ReplicaType(role.Name)
		kept[name] = true
		replica := specs[name]
		if replica == nil {
			return nil, fmt.Errorf("preset: no role %s in spec.%s", role.Name, field)
		}
		replica.Replicas = &role.Replicas
		if s.RestartPolicy != "" {
			replica.RestartPolicy = s.RestartPolicy
		}
		l.roles = append(l.roles, placed{role, &replica.Template})
	}
	maps.DeleteFunc(specs, func(t kubeflowv1.ReplicaType, _ *kubeflowv1.ReplicaSpec) bool { return !kept[t] })
	return l, nil
}

// TFJob writes TFJobs (kubeflow.org/v1).
func TFJob() Kind {
	job := &kubeflowv1.TFJob{}
	return Kind{
		job: job, main: kubeflowv1.TFJobDefaultContainerName,
		Sets: func(s Spec) []string {
			if s.members() < 2 {
				return nil
			}
			return []string{"TF_CONFIG"}
		},
		overlay: func(s Spec) (*overlaid, error) {
			return overlayReplicas("tfReplicaSpecs", job.Spec.TFReplicaSpecs, &job.Spec.RunPolicy, s)
		},
	}
}

// torchEnv are the variables from which PyTorch, and torchrun, learn where they are.
var torchEnv = []string{"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK",
	"PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NNODES", "PET_NODE_RANK", "PET_NPROC_PER_NODE"}

// PyTorchJob writes PyTorchJobs (kubeflow.org/v1).
func PyTorchJob() Kind {
	job := &kubeflowv1.PyTorchJob{}
	return Kind{
		job: job, main: kubeflowv1.PyTorchJobDefaultContainerName,
		Sets: func(Spec) []string { return append(slices.Clone(torchEnv), "PYTHONUNBUFFERED") },
		overlay: func(s Spec) (*overlaid, error) {
			if s.ProcessesPerNode != "" {
				job.Spec.NprocPerNode = &s.ProcessesPerNode
			}
			return overlayReplicas("pytorchReplicaSpecs", job.Spec.PyTorchReplicaSpecs, &job.Spec.RunPolicy, s)
		},
	}
}

// MPIJob writes MPIJobs (kubeflow.org), in the version of the Training Operator (v1) or of the MPI Operator (v2beta1): what is
// written of them is the same. Only the launcher has a command; workers wait for it.
func MPIJob(version string) Kind {
	job := &kubeflowv1.MPIJob{}
	return Kind{
		job: job, version: version, main: kubeflowv1.MPIJobDefaultContainerName, waiting: string(kubeflowv1.MPIJobReplicaTypeWorker),
		Sets: func(Spec) []string {
			return []string{"OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_default_hostfile", "I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC"}
		},
		overlay: func(s Spec) (*overlaid, error) {
			if s.SlotsPerWorker > 0 {
				job.Spec.SlotsPerWorker = &s.SlotsPerWorker
			}
			return overlayReplicas("mpiReplicaSpecs", job.Spec.MPIReplicaSpecs, &job.Spec.RunPolicy, s)
		},
	}
}

// Framework is the framework for which the members of an Indexed Job learn of each other from their environment, as an operator would set it.
type Framework string

// The frameworks.
const (
	// TensorFlow reads TF_CONFIG.
	TensorFlow Framework = "tensorflow"
	// Torch reads MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK, and in the variables PET_… of torchrun.
	Torch Framework = "torch"
	// NoFramework leaves it to the program, which has JOB_COMPLETION_INDEX and the names of the others.
	NoFramework Framework = "none"
)

// Ports are those at which the frameworks' own tools listen.
const (
	tensorFlowPort = 2222
	torchPort      = 29500
)

// indexEnv is the variable in which a Job gives a pod its index.
const indexEnv = "JOB_COMPLETION_INDEX"

// indexAnnotation is where a Job writes the index on a pod, in every release that has indices.
const indexAnnotation = "metadata.annotations['" + batchv1.JobCompletionIndexAnnotation + "']"

// IndexedJob writes Jobs of Kubernetes itself (batch/v1) of as many members at a time as there are in all, with a headless
// Service through which they find each other as NAME-INDEX.NAME: no operator is needed.
func IndexedJob() Kind {
	job := &batchv1.Job{}
	return Kind{
		job: job, main: "worker", Sets: indexedEnv, finish: setIndexedEnv, further: service,
		overlay: func(s Spec) (*overlaid, error) {
			if len(s.Roles) != 1 || s.Roles[0].Name != batchjob.Role {
				return nil, fmt.Errorf("an Indexed Job has one role, %s", batchjob.Role)
			}
			role, mode := s.Roles[0], batchv1.IndexedCompletion
			job.Spec.Parallelism, job.Spec.Completions, job.Spec.CompletionMode = &role.Replicas, &role.Replicas, &mode
			job.Spec.Template.Spec.Subdomain = s.Name
			limits := &kubeflowv1.RunPolicy{BackoffLimit: job.Spec.BackoffLimit, ActiveDeadlineSeconds: job.Spec.ActiveDeadlineSeconds, TTLSecondsAfterFinished: job.Spec.TTLSecondsAfterFinished}
			s.Lifetime.apply(limits)
			job.Spec.BackoffLimit, job.Spec.ActiveDeadlineSeconds, job.Spec.TTLSecondsAfterFinished = limits.BackoffLimit, limits.ActiveDeadlineSeconds, limits.TTLSecondsAfterFinished
			if s.RestartPolicy != "" {
				job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicy(s.RestartPolicy)
			}
			return &overlaid{roles: []placed{{role, &job.Spec.Template}}}, nil
		},
	}
}

// indexedEnv are the variables that setIndexedEnv sets.
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

// setIndexedEnv gives members their place in the job. The kubelet puts the index into what comes after it.
func setIndexedEnv(c *corev1.Container, role Role, s Spec) {
	switch s.Framework {
	case TensorFlow:
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: "tensorflow", ContainerPort: tensorFlowPort})
	case Torch:
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: "torch", ContainerPort: torchPort})
	case NoFramework: // the Job itself sets the index
	}
	c.Env = append(c.Env, frameworkEnv(role, s)...)
}

// frameworkEnv are the variables that a framework reads in a job of one role.
func frameworkEnv(role Role, s Spec) []corev1.EnvVar {
	index := func(name string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: indexAnnotation}}}
	}
	number := func(name string, n int) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: strconv.Itoa(n)} }
	switch {
	case s.Framework == TensorFlow && role.Replicas > 1: // TensorFlow takes a cluster of one for a distributed job as well
		return []corev1.EnvVar{index(indexEnv), {Name: "TF_CONFIG", Value: tfConfig(role, s)}}
	case s.Framework == Torch:
		nodes, processes := int(role.Replicas), 1
		if n, err := strconv.Atoi(s.ProcessesPerNode); err == nil {
			processes = n
		}
		var env []corev1.EnvVar
		for _, prefix := range []string{"", "PET_"} {
			env = append(env, corev1.EnvVar{Name: prefix + "MASTER_ADDR", Value: host(s, 0)}, number(prefix+"MASTER_PORT", torchPort))
		}
		return append(env, number("WORLD_SIZE", nodes*processes), index("RANK"),
			number("PET_NNODES", nodes), index("PET_NODE_RANK"), corev1.EnvVar{Name: "PET_NPROC_PER_NODE", Value: cmp.Or(s.ProcessesPerNode, "auto")})
	}
	return nil
}

// IndexedSize is how large an Indexed Job is: its members, and the devices of each.
type IndexedSize struct {
	Members int32
	Devices int64
}

// ResizeIndexed changes, in the container that does the work of an Indexed Job, what [IndexedJob] wrote there for a job of a size into what
// it would write for another. What another client wrote stays. Processes that were one a device stay so.
func ResizeIndexed(c *corev1.Container, namespace, name string, from, to IndexedSize) {
	RepeatIndexed(c, namespace, name, name, from, to)
}

// RepeatIndexed is [ResizeIndexed] for a job that is made again under another name, by which its members are found.
func RepeatIndexed(c *corev1.Container, namespace, was, is string, from, to IndexedSize) {
	for _, framework := range []Framework{TensorFlow, Torch} {
		if !mayUse(c, framework) {
			continue
		}
		before := Spec{Name: was, Namespace: namespace, Framework: framework, ProcessesPerNode: processesOf(c.Env)}
		after := before
		after.Name = is
		if n, err := strconv.ParseInt(before.ProcessesPerNode, 10, 64); err == nil && n == from.Devices && to.Devices > 0 {
			after.ProcessesPerNode = strconv.FormatInt(to.Devices, 10)
		}
		old, env := frameworkEnv(Role{Replicas: from.Members}, before), frameworkEnv(Role{Replicas: to.Members}, after)
		if len(old) == 0 || !written(c.Env, old) {
			continue
		}
		for i, e := range env { // what stays is left as the API server has completed it
			if j := slices.IndexFunc(c.Env, sameVariable(e)); j >= 0 {
				env[i] = c.Env[j]
			}
		}
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return slices.ContainsFunc(old, sameVariable(e)) })
		c.Env = append(c.Env, env...)
	}
}

// IndexedSets are the variables of the container that does the work of an Indexed Job which have what [IndexedJob] writes there for a job of a size.
func IndexedSets(c *corev1.Container, namespace, name string, size IndexedSize) []string {
	var names []string
	for _, framework := range []Framework{TensorFlow, Torch} {
		if !mayUse(c, framework) {
			continue
		}
		env := frameworkEnv(Role{Replicas: size.Members}, Spec{Name: name, Namespace: namespace, Framework: framework, ProcessesPerNode: processesOf(c.Env)})
		if !written(c.Env, env) {
			continue
		}
		for _, e := range env {
			names = append(names, e.Name)
		}
	}
	return names
}

// mayUse reports whether a container has what is written for a framework, of whatever size: where it has not, nothing is written out to be compared
// with nothing.
func mayUse(c *corev1.Container, framework Framework) bool {
	variable := map[Framework]string{TensorFlow: "TF_CONFIG", Torch: "WORLD_SIZE"}[framework]
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == variable })
}

// processesOf is the value that --nproc-per-node had, as far as the variables have it.
func processesOf(env []corev1.EnvVar) string {
	for _, e := range env {
		if e.Name == "PET_NPROC_PER_NODE" && e.Value != "auto" {
			return e.Value
		}
	}
	return ""
}

// written reports whether all of some variables are there as they were written.
func written(env, was []corev1.EnvVar) bool {
	return !slices.ContainsFunc(was, func(w corev1.EnvVar) bool { return !slices.ContainsFunc(env, sameVariable(w)) })
}

// sameVariable reports whether a variable has the name and the value of another. An API server completes references.
func sameVariable(a corev1.EnvVar) func(corev1.EnvVar) bool {
	return func(b corev1.EnvVar) bool {
		return a.Name == b.Name && a.Value == b.Value && (a.ValueFrom == nil) == (b.ValueFrom == nil)
	}
}

// tfConfig is the TF_CONFIG that the Training Operator would write for a job of workers, but for the index, which the kubelet fills in.
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

// service lets members find each other.
func service(s Spec) (*unstructured.Unstructured, error) {
	var ports []corev1.ServicePort
	if port := map[Framework]int32{TensorFlow: tensorFlowPort, Torch: torchPort}[s.Framework]; port > 0 {
		ports = []corev1.ServicePort{{Name: string(s.Framework), Port: port, TargetPort: intstr.FromInt32(port)}}
	}
	return IndexedService(s.Namespace, s.Name, s.Labels, ports)
}

// IndexedService lets the members of an Indexed Job find each other from the moment in which they have an address: they wait for each other to be
// ready. It has the name of the job.
func IndexedService(namespace, job string, labels map[string]string, ports []corev1.ServicePort) (*unstructured.Unstructured, error) {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: job, Namespace: namespace, Labels: labels},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: map[string]string{batchv1.JobNameLabel: job}, Ports: ports},
	}
	svc.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	return Unstructured(svc)
}

package render

import (
	"fmt"
	"maps"
	"slices"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
)

// replicaSpecs are the roles of the jobs of the Training Operator.
type replicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec

// layReplicas lays the roles of the spec over those of a job of the Training Operator; field is where it keeps them. Roles that
// are not asked for are left out.
func layReplicas(field string, specs replicaSpecs, policy *kubeflowv1.RunPolicy, s Spec) (*laid, error) {
	l := &laid{policy: policy}
	if s.CleanPodPolicy != "" {
		policy.CleanPodPolicy = &s.CleanPodPolicy
	}
	wanted := map[kubeflowv1.ReplicaType]bool{}
	for _, role := range s.Roles {
		if role.Replicas == 0 {
			continue
		}
		name := kubeflowv1.ReplicaType(role.Name)
		wanted[name] = true
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
	maps.DeleteFunc(specs, func(t kubeflowv1.ReplicaType, _ *kubeflowv1.ReplicaSpec) bool { return !wanted[t] })
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
		lay: func(s Spec) (*laid, error) {
			return layReplicas("tfReplicaSpecs", job.Spec.TFReplicaSpecs, &job.Spec.RunPolicy, s)
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
		lay: func(s Spec) (*laid, error) {
			if s.ProcessesPerNode != "" {
				job.Spec.NprocPerNode = &s.ProcessesPerNode
			}
			return layReplicas("pytorchReplicaSpecs", job.Spec.PyTorchReplicaSpecs, &job.Spec.RunPolicy, s)
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
		lay: func(s Spec) (*laid, error) {
			if s.SlotsPerWorker > 0 {
				job.Spec.SlotsPerWorker = &s.SlotsPerWorker
			}
			return layReplicas("mpiReplicaSpecs", job.Spec.MPIReplicaSpecs, &job.Spec.RunPolicy, s)
		},
	}
}

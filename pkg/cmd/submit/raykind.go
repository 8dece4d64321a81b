package submit

import (
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/submit/render"
	"github.com/gangctl/gangctl/templates"
)

func rayKind() kind {
	return kind{
		name: "ray", reader: ray.JobReader(), preset: templates.Ray,
		write: func(string) render.Kind { return render.RayJob() },
		roles: func() []*role {
			return []*role{
				{Name: ray.Head, Replicas: 1},
				{Name: render.RayWorkers, count: "workers", usage: "Number of workers, besides the head", fallback: 1, low: 1, high: maxReplicas, trains: true},
			}
		},
		restart: []kubeflowv1.RestartPolicy{kubeflowv1.RestartPolicyNever, kubeflowv1.RestartPolicyOnFailure, kubeflowv1.RestartPolicyAlways},
		flags: func(_ *Options, cmd *cobra.Command) {
			cmd.Flags().Lookup("ttl").Usage = "Keep the RayCluster, with all that its members hold, so long after the entrypoint has ended, such as 10m"
		},
		check: func(o *Options, _ func(string) bool) error {
			if problem := ray.JobNameProblem(o.Name); problem != "" {
				return failure.Usagef("%s", problem).WithHint("shorten the name")
			}
			return nil
		},
		short: "Submit a Ray job (RayJob)",
		long: `Submit a Ray job: a RayJob of KubeRay, which is a RayCluster of a head and workers, and the entrypoint that runs on it. The head and
the workers are one gang: either as many as --min-available (default: all) get a place together, or none holds any.

The arguments after -- are the entrypoint. The operator submits it to the cluster when all members run, by a pod of its own, which is
no member of the gang, and deletes the cluster when it has ended.`,
		example: `  # a head, and 4 workers with 2 GPUs each
  gangctl submit ray llama --image rayproject/ray:2.46.0-gpu --workers 4 --gpus 2 --head-cpu 4 -- python train.py

  # would it start now?
  gangctl submit ray llama --image rayproject/ray:2.46.0-gpu --workers 4 --gpus 2 --dry-run=fit`,
	}
}

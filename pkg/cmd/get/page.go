package get

import (
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"

	"github.com/gangctl/gangctl/pkg/iostreams"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// Print prints a job and its members as `gangctl get` does.
func Print(io *iostreams.IOStreams, job *kubeflowv1.TFJob, s tfjob.Summary) error {
	return (&Options{IO: io}).print(job, s)
}

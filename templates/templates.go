// Package templates holds the job presets that are built into gangctl: plain YAML objects that flags override.
package templates

import (
	"embed"
	"path"
	"strings"
)

//go:embed tf.yaml
var tf []byte

// TF is the preset of `gangctl submit tf`: a TFJob (kubeflow.org/v1) in YAML with every role that the command knows.
func TF() []byte { return tf }

//go:embed pytorch.yaml
var pytorch []byte

// PyTorch is the preset of `gangctl submit pytorch`: a PyTorchJob (kubeflow.org/v1) with both of its roles.
func PyTorch() []byte { return pytorch }

//go:embed mpi.yaml
var mpi []byte

// MPI is the preset of `gangctl submit mpi`: an MPIJob (kubeflow.org) with both of its roles, in what v1 of the Training Operator
// and v2beta1 of the MPI Operator have in common.
func MPI() []byte { return mpi }

//go:embed job.yaml
var job []byte

// Job is the preset of `gangctl submit job`: a Job (batch/v1).
func Job() []byte { return job }

//go:embed ray.yaml
var ray []byte

// Ray is the preset of `gangctl submit ray`: a RayJob (ray.io/v1) with a head and one group of workers.
func Ray() []byte { return ray }

//go:embed job/*.yaml
var jobs embed.FS

// Jobs are the templates that are built in, by name: jobs in YAML, which begin with a comment on their purpose.
func Jobs() map[string][]byte {
	entries, err := jobs.ReadDir("job")
	if err != nil {
		panic(err) // the directory is in the program
	}
	all := map[string][]byte{}
	for _, e := range entries {
		text, err := jobs.ReadFile(path.Join("job", e.Name()))
		if err != nil {
			panic(err)
		}
		all[strings.TrimSuffix(e.Name(), ".yaml")] = text
	}
	return all
}

// Package submit is `gangctl submit`: it renders a job and its gang, and creates both or neither.
package submit

import (
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cmd/factory"
	"github.com/gangctl/gangctl/pkg/failure"
)

// NewCommand returns the command, with one subcommand for each kind of job.
func NewCommand(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "submit KIND",
		Short:      "Submit a gang job",
		Long:       "Submit a job whose members start together or not at all.",
		SuggestFor: []string{"sbatch", "srun", "qsub", "create", "run"},
		Example: `  # 4 workers with 2 GPUs each
  gangctl submit tf llama --image tensorflow/tensorflow:2.17.0-gpu --workers 4 --gpus 2 -- python train.py

  # the same, but only show what would be created
  gangctl submit tf llama --image tensorflow/tensorflow:2.17.0-gpu --workers 4 --gpus 2 --dry-run=client -o yaml -- python train.py`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return failure.Usagef("submit needs the kind of job").WithHint("gangctl submit tf --help")
			}
			return failure.Usagef("submit %q: the kinds of job are: tf", args[0]).WithHint("gangctl submit tf --help")
		},
	}
	cmd.AddCommand(NewTFCommand(f, nil))
	return cmd
}

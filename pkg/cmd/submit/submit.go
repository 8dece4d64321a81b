// Package submit is `gangctl submit`: it renders a job and its gang, or completes those of a file, and creates both or neither.
package submit

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// NewCommand returns the command, with one subcommand for each kind of job that flags can describe.
func NewCommand(f *cmdutil.Factory) *cobra.Command {
	var words []string
	o := &FileOptions{Submission: Submission{IO: f.IO}, Suffix: f.Suffix}
	cmd := &cobra.Command{
		Use:   "submit KIND | -f FILE",
		Short: "Submit a gang job",
		Long: `Submit a job whose members start together or not at all: described by flags, or by a file.

A file holds TFJobs in YAML or JSON, of any version from v1alpha2 on, the PodGroups of their gangs if you wish, and what they
need beside: ConfigMaps, Services, volume claims. Old versions and layouts are converted, and what changed is told. What the
file says stays. What a job lacks to be a gang is added: the PodGroup, or in --dialect labels the labels that stand for it, the
marks on the pods, the scheduler and the job's scheduling policy. A field that gangctl does not know is told, with its line, and
left to the API server, which takes it or refuses it.

All that a file holds is created, or nothing: what the jobs need first, then each job and its gang. An object that is there
already, and is as the file has it, is used.

--dry-run=fit says whether the gang would start now, and if not, why, with the answer and the exit code of why-pending, but
0 where it would. Of several jobs each is judged as if those before it had been submitted: one that starts takes its room, its
quota and its share of a queue. The exit code is then the worst.`,
		SuggestFor: []string{"sbatch", "srun", "qsub", "create", "run"},
		Example: `  # 4 workers with 2 GPUs each
  gangctl submit tf llama --image tensorflow/tensorflow:2.17.0-gpu --workers 4 --gpus 2 -- python train.py

  # the same in PyTorch, and without any operator
  gangctl submit pytorch llama --image pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime --workers 4 --gpus 2 -- torchrun train.py
  gangctl submit job llama --image tensorflow/tensorflow:2.17.0-gpu --workers 4 --gpus 2 --framework tensorflow -- python train.py

  # a job that is kept in a file, as a gang; return when all its members run
  gangctl submit -f job.yaml --wait

  # would it start now?
  gangctl submit -f job.yaml --dry-run=fit`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Namespace, o.Client, o.Suffix = f.Namespace, f.Client, f.Suffix
			if cmd.Flags().Changed("filename") {
				o.CommandLine = commandLine(f.Args, cmd.Flags(), cmd.InheritedFlags())
				return o.submit(cmd, args)
			}
			if len(args) == 0 {
				return failure.Usagef("submit needs the kind of job, or a file").WithHint("gangctl submit tf --help, or gangctl submit -f FILE")
			}
			return failure.Usagef("submit %q: the kinds of job are: %s", args[0], strings.Join(words, ", ")).WithHint("gangctl submit tf --help")
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&o.File, "filename", "f", "", "File that holds the job; - is standard input")
	o.add(cmd)
	o.addFlags(cmd)
	for _, k := range kinds() {
		words = append(words, k.word)
		cmd.AddCommand(newKindCommand(f, k, nil))
	}
	cmd.AddCommand(newTemplatesCommand(f))
	return cmd
}

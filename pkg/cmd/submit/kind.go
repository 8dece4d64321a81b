package submit

import (
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// kind is what is particular to submitting one kind of job. Everything else is the same for all.
type kind struct {
	// word is the name of the command, and begins names that are generated.
	word string
	// short, long and example are its help.
	short, long, example string
	// reader reads what is submitted.
	reader gang.JobReader
	// preset is the job that flags are laid over.
	preset func() []byte
	// write returns the writer of a job in an API version; an empty one is that of the preset.
	write func(version string) render.Kind
	// roles are those that flags speak of, in the order in which members are shown.
	roles func() []*role
	// spread turns the roles of the flags into those of the job; nil where they are the same.
	spread func([]render.Role) []render.Role
	// restart are the restart policies that the kind knows.
	restart []kubeflowv1.RestartPolicy
	// cleans reports whether the kind knows which pods to delete when the job ends.
	cleans bool
	// flags adds the flags that only this kind has; nil without.
	flags func(o *Options, cmd *cobra.Command)
	// check refuses what flags of the kind cannot mean; nil without.
	check func(o *Options, typed func(string) bool) error
}

// kinds are the kinds of job that flags can describe, the most usual first.
func kinds() []kind { return []kind{tfKind(), pytorchKind(), mpiKind(), jobKind()} }

// role is what the command line says about one role.
type role struct {
	resources
	// Name is the role as the kind spells it.
	Name     string
	Replicas int32
	Image    string

	// count is the flag that says how many members the role has, and usage its help; empty where that is not for the user to say.
	count, usage string
	// fallback, low and high are the number without the flag, and the range.
	fallback, low, high int32
	// trains reports whether --gpus is meant for the role.
	trains bool
}

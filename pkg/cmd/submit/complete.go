package submit

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/await"
)

// complete reads NAME and the command after --, and fills in the defaults that depend on other flags.
func (o *Options) complete(cmd *cobra.Command, args []string) error {
	o.typed = cmd.Flags().Changed
	if err := refuseEmpty(cmd.Flags()); err != nil {
		return err
	}
	if err := refuseBytes(cmd.Flags(), args); err != nil {
		return err
	}
	positional := args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		positional, o.Command = args[:dash], args[dash:]
	}
	hint := "the command of the job goes after --: gangctl submit " + o.kind.word + " NAME [flags] -- COMMAND"
	if len(positional) > 1 {
		return failure.Usagef("unexpected argument %q after NAME %q", positional[1], positional[0]).WithHint("%s", hint)
	}
	if len(positional) == 1 {
		name := positional[0]
		switch {
		case o.Name != "" && cmd.Flags().Changed("name"):
			return failure.Usagef("the name is given twice: %q and --name %q", name, o.Name).WithHint("leave out one of them")
		case o.Wait != "" && slices.Contains([]await.Target{await.Scheduled, await.Running, await.Done}, await.Target(name)):
			// pflag gives a flag with an optional value nothing but what follows "=".
			return failure.Usagef("--wait %s: the value goes after an equals sign", name).WithHint("--wait=%s", name)
		}
		o.Name = name
	}
	if o.Name == "" {
		o.Name = o.kind.word + "-" + o.Suffix()
	}
	if err := o.layTemplate(); err != nil {
		return err
	}
	for _, r := range o.Roles {
		r.Image = cmp.Or(r.Image, o.Image)
		r.CPU, r.Memory = cmp.Or(r.CPU, o.All.CPU), cmp.Or(r.Memory, o.All.Memory)
		if r.GPUs == unset {
			r.GPUs = 0
			if r.trains {
				r.GPUs = o.All.GPUs
			}
		}
	}
	if o.kind.word == "mpi" && o.SlotsPerWorker == 0 {
		o.SlotsPerWorker = max(1, int32(o.Roles[1].GPUs)) //nolint:gosec // its flag has a range
	}
	if o.MinAvailable == 0 {
		o.MinAvailable = o.members()
	}
	return nil
}

func (o *Options) members() int32 {
	var n int32
	for _, r := range o.Roles {
		n += r.Replicas
	}
	return n
}

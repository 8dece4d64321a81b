// Package program is the whole of gangctl: the tree of commands, and those that run other commands of it, which the tree cannot know.
package program

import (
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cmd/factory"
	"github.com/gangctl/gangctl/pkg/cmd/fit"
	"github.com/gangctl/gangctl/pkg/cmd/resubmit"
	"github.com/gangctl/gangctl/pkg/cmd/root"
)

// groupJobs is the group of the help under which the commands of jobs are.
const groupJobs = "jobs"

// NewCommand returns `gangctl` with every command under it; see [root.NewCommand]. Further commands are those that libraries must
// not know.
func NewCommand(f *factory.Factory, further ...*cobra.Command) *cobra.Command {
	again := func(f *factory.Factory) *cobra.Command { return NewCommand(f, further...) }
	own := []*cobra.Command{fit.NewCommand(f, nil), resubmit.NewCommand(f, again, nil)}
	for _, cmd := range own {
		cmd.GroupID = groupJobs
	}
	return root.NewCommand(f, append(own, further...)...)
}

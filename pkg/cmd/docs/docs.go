// Package docs is `gangctl docs`: the command reference, made from the command
// tree, so that it cannot say anything else than the help does.
package docs

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/flagvalue"
)

// format is the value of --format.
type format string

const (
	markdown format = "markdown"
	man      format = "man"
)

// Options are what the command works with.
type Options struct {
	Root *cobra.Command

	Format format
	Dir    string
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(runF func(*Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:    "docs --dir DIR",
		Short:  "Write the command reference",
		Long:   "Write one page for each command into a directory, which is created if need be.",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Dir == "" {
				return failure.Usagef("--dir is missing").WithHint("see '%s --help'", cmd.CommandPath())
			}
			o.Root = cmd.Root()
			if runF != nil {
				return runF(o)
			}
			return o.run()
		},
	}
	flagvalue.Enum(cmd, cmd.Flags(), &o.Format, "format", markdown, "Format of the pages", markdown, man)
	cmd.Flags().StringVar(&o.Dir, "dir", "", "Directory to write to")
	return cmd
}

func (o *Options) run() error {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fmt.Errorf("write the reference: %w", err)
	}
	// No date in the pages: the same tree makes the same pages.
	o.Root.DisableAutoGenTag = true
	write := doc.GenMarkdownTree
	if o.Format == man {
		write = func(root *cobra.Command, dir string) error {
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "gangctl", Manual: "gangctl"}, dir)
		}
	}
	if err := write(o.Root, o.Dir); err != nil {
		return fmt.Errorf("write the reference to %s: %w", o.Dir, err)
	}
	return nil
}

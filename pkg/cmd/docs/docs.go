// Package docs is `gangctl docs`: the command reference, made from the command
// tree, so that it cannot say anything else than the help does.
package docs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
	for _, topic := range o.Root.Commands() {
		if !topic.IsAdditionalHelpTopicCommand() {
			continue // cobra has written it
		}
		if err := o.topic(topic); err != nil {
			return fmt.Errorf("write the reference to %s: %w", o.Dir, err)
		}
	}
	return nil
}

// topic writes the page of a help topic, which is no command: it has no options.
func (o *Options) topic(topic *cobra.Command) error {
	if o.Format == man {
		page, err := os.Create(filepath.Join(o.Dir, o.Root.Name()+"-"+topic.Name()+".1"))
		if err != nil {
			return err
		}
		alone := &cobra.Command{Use: o.Root.Name() + "-" + topic.Name(), Short: topic.Short, Long: topic.Long, DisableAutoGenTag: true}
		return errors.Join(doc.GenMan(alone, &doc.GenManHeader{Section: "1", Source: "gangctl", Manual: "gangctl"}, page), page.Close())
	}
	text := fmt.Sprintf("## %s help %s\n\n%s\n\n### Synopsis\n\n%s\n\n### SEE ALSO\n\n* [%s](%s.md)\t - %s\n\n",
		o.Root.Name(), topic.Name(), topic.Short, topic.Long, o.Root.Name(), o.Root.Name(), o.Root.Short)
	return os.WriteFile(filepath.Join(o.Dir, o.Root.Name()+"_"+topic.Name()+".md"), []byte(text), 0o644)
}

// Package docs is `gangctl docs`: the command reference, made from the command
// tree, so that it cannot differ from the help.
package docs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cli/wrap"
)

// format is the value of --format.
type format string

const (
	markdown format = "markdown"
	man      format = "man"
)

// Options are the dependencies, flags and arguments of the command.
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
		return o.manTopic(topic)
	}
	text := fmt.Sprintf("## %s help %s\n\n%s\n\n### Synopsis\n\n%s\n\n### SEE ALSO\n\n* [%s](%s.md)\t - %s\n\n",
		o.Root.Name(), topic.Name(), topic.Short, topic.Long, o.Root.Name(), o.Root.Name(), o.Root.Short)
	return os.WriteFile(filepath.Join(o.Dir, o.Root.Name()+"_"+topic.Name()+".md"), []byte(text), 0o644)
}

// manColumns is how wide tables of topics are in man pages, which do not break them.
const manColumns = 72

// manTopic lets cobra write the page of a command of the topic's name, and names how to get to it.
func (o *Options) manTopic(topic *cobra.Command) error {
	name := o.Root.Name() + "-" + topic.Name()
	alone := &cobra.Command{Use: name, Short: topic.Short, Long: wrap.Prose(topic.Long, manColumns), DisableAutoGenTag: true, DisableFlagsInUseLine: true}
	var page bytes.Buffer
	if err := doc.GenMan(alone, &doc.GenManHeader{Section: "1", Source: "gangctl", Manual: "gangctl"}, &page); err != nil {
		return err
	}
	text := strings.Replace(page.String(), `\fB`+name+`\fP`, `\fB`+o.Root.Name()+" help "+topic.Name()+`\fP`, 1)
	return os.WriteFile(filepath.Join(o.Dir, name+".1"), []byte(text), 0o644)
}

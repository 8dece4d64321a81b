package submit

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// Repeated is a command line of `gangctl submit` that is to be run again.
type Repeated struct {
	// Words are the command line without the program's name, and without what was for that one run: --wait, -o and the
	// like, and without the namespace.
	Words []string
	// Named is true if the line says the name of the job; else each run generates one.
	Named bool
	// File is true if the job was in a file, which may be another one by now.
	File bool
}

// oneRun are the flags that say how a job is submitted, and nothing of the job.
var oneRun = []string{"wait", "timeout", "follow", "dry-run", "from", "output"}

// Repeat reads the words of a kept command line, the program's name first. A name that is not empty takes the place of the one in
// it, and more words are put before the command of the job. It is nil for a line
// that is not of submit, and for words that submit does not take.
func Repeat(words []string, name string, more ...string) *Repeated {
	root := &cobra.Command{Use: "gangctl"}
	kube.NewFactory("", io.Discard).AddFlags(root.PersistentFlags())
	root.AddCommand(NewCommand(&cmdutil.Factory{IO: &iostreams.IOStreams{}}))
	if len(words) < 2 {
		return nil
	}
	cmd, _, err := root.Find(words[1:])
	if err != nil || !strings.HasPrefix(cmd.CommandPath(), "gangctl submit") || cmd.ParseFlags(nil) != nil {
		return nil
	}
	w := reader{all: cmd.Flags(), inherited: cmd.InheritedFlags()}
	for _, word := range more {
		if name := flagOf(word, w); name != "" && w.all.Lookup(name) == nil {
			return nil
		}
	}
	r := &Repeated{}
	commands := strings.Fields(cmd.CommandPath())[1:] // submit, tf
	for words = words[1:]; len(words) > 0 && words[0] != "--"; {
		_, size := w.next(words)
		piece, flag := slices.Clone(words[:size]), flagOf(words[0], w)
		words = words[size:]
		switch {
		case slices.Contains(oneRun, flag), flag == "namespace":
			continue
		case flag == "filename":
			r.File = true
		case flag == "name":
			r.Named = true
			if name != "" {
				piece = []string{"--name=" + name}
			}
		case flag == "" && len(commands) > 0 && piece[0] == commands[0]:
			commands = commands[1:]
		case flag == "":
			r.Named = true
			if name != "" {
				piece = []string{name}
			}
		}
		r.Words = append(r.Words, piece...)
	}
	if name != "" && !r.Named {
		r.Words = append(r.Words, "--name="+name)
		r.Named = true
	}
	r.Words = append(append(r.Words, more...), words...)
	return r
}

// flagOf is the name of the flag that a word is, or "".
func flagOf(word string, w reader) string {
	if name, ok := strings.CutPrefix(word, "--"); ok {
		name, _, _ = strings.Cut(name, "=")
		return name
	}
	if len(word) > 1 && word[0] == '-' {
		if flag := w.all.ShorthandLookup(word[1:2]); flag != nil {
			return flag.Name
		}
		return "?"
	}
	return ""
}

// AddRunFlags adds the flags that say how a job is submitted, and nothing of the job, to a command that passes them on.
func AddRunFlags(f *cmdutil.Factory, cmd *cobra.Command) {
	s := &Submission{IO: f.IO}
	all := &cobra.Command{}
	s.addFlags(all)
	for _, name := range oneRun {
		if flag := all.Flags().Lookup(name); flag != nil {
			cmd.Flags().AddFlag(flag)
		}
	}
}

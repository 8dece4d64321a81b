package submit

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// maxCommandLine is the longest command line, in bytes, that is kept on a job. All annotations of an object share 256 KiB, and
// what is kept for the curious must not be what makes a job too large.
const maxCommandLine = 32 << 10

// commandLine is the shell-quoted command line to keep on the job, or "" if it is too long. The flags of every command stay
// out: they say how this user reaches the cluster, which may take a password, and everybody who may read the job would read
// it. The namespace stays. Both flag sets are those of a command whose words have been parsed without an error.
func commandLine(words []string, all, inherited *pflag.FlagSet) string {
	r := reader{all: all, inherited: inherited}
	kept := []string{"gangctl"}
	for len(words) > 0 {
		keep, size := r.next(words)
		kept, words = append(kept, keep...), words[size:]
	}
	line := shell.Join(kept...)
	if len(line) > maxCommandLine {
		return ""
	}
	return line
}

// reader reads words as pflag does.
type reader struct{ all, inherited *pflag.FlagSet }

// next returns what to keep of the first words, and how many they are: a flag with its value, or any other word, or everything
// from "--" on.
func (r reader) next(words []string) (keep []string, size int) {
	word := words[0]
	switch {
	case word == "--":
		return words, len(words)
	case strings.HasPrefix(word, "--"):
		name, _, hasValue := strings.Cut(word[2:], "=")
		flag, size := r.all.Lookup(name), 1
		if !hasValue && wantsValue(flag) {
			size = min(2, len(words))
		}
		if r.drops(flag) {
			return nil, size
		}
		return words[:size], size
	case strings.HasPrefix(word, "-"):
		return r.letters(words)
	}
	return words[:1], 1
}

// letters is next for a word of one-letter flags. A letter may have its value right behind it, with or without "=", and the
// last one in the word that follows.
func (r reader) letters(words []string) (keep []string, size int) {
	word, kept := words[0], ""
	size = 1
	for i := 1; i < len(word); {
		flag, end := r.all.ShorthandLookup(word[i:i+1]), i+1
		follows := end == len(word) && wantsValue(flag) && len(words) > 1
		if end < len(word) && (word[end] == '=' || wantsValue(flag)) {
			end = len(word)
		}
		drop := r.drops(flag)
		if !drop {
			kept += word[i:end]
		}
		if follows {
			size = 2
			if !drop {
				keep = words[1:2]
			}
		}
		i = end
	}
	if kept != "" || word == "-" {
		keep = append([]string{"-" + kept}, keep...)
	}
	return keep, size
}

// drops reports whether a flag stays out of what is kept.
func (r reader) drops(flag *pflag.Flag) bool {
	return flag != nil && flag.Name != "namespace" && r.inherited.Lookup(flag.Name) != nil
}

// wantsValue reports whether a flag without "=" takes what follows for its value.
func wantsValue(flag *pflag.Flag) bool { return flag != nil && flag.NoOptDefVal == "" }

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

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
// out: they are how this user reaches the cluster, which may take a password, and everybody who may read the job would read
// it. The namespace stays. Both flag sets are those of a command whose arguments have been parsed without an error.
func commandLine(args []string, all, inherited *pflag.FlagSet) string {
	r := reader{all: all, inherited: inherited}
	kept := []string{"gangctl"}
	for len(args) > 0 {
		keep, size := r.next(args)
		kept, args = append(kept, keep...), args[size:]
	}
	line := shell.Join(kept...)
	if len(line) > maxCommandLine {
		return ""
	}
	return line
}

// reader reads arguments as pflag does.
type reader struct{ all, inherited *pflag.FlagSet }

// next returns what to keep of the first arguments, and how many they are: a flag with its value, or any other argument, or everything
// from "--" on.
func (r reader) next(args []string) (keep []string, size int) {
	arg := args[0]
	switch {
	case arg == "--":
		return args, len(args)
	case strings.HasPrefix(arg, "--"):
		name, _, hasValue := strings.Cut(arg[2:], "=")
		flag, size := r.all.Lookup(name), 1
		if !hasValue && wantsValue(flag) {
			size = min(2, len(args))
		}
		if r.drops(flag) {
			return nil, size
		}
		return args[:size], size
	case strings.HasPrefix(arg, "-"):
		return r.letters(args)
	}
	return args[:1], 1
}

// letters is next for an argument of one-letter flags. A letter may have its value right behind it, with or without "=", and the
// last one in the argument that follows.
func (r reader) letters(args []string) (keep []string, size int) {
	arg, kept := args[0], ""
	size = 1
	for i := 1; i < len(arg); {
		flag, end := r.all.ShorthandLookup(arg[i:i+1]), i+1
		follows := end == len(arg) && wantsValue(flag) && len(args) > 1
		if end < len(arg) && (arg[end] == '=' || wantsValue(flag)) {
			end = len(arg)
		}
		drop := r.drops(flag)
		if !drop {
			kept += arg[i:end]
		}
		if follows {
			size = 2
			if !drop {
				keep = args[1:2]
			}
		}
		i = end
	}
	if kept != "" || arg == "-" {
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
	// Args are the command line without the program's name, and without what was for that one run: --wait, -o and the
	// like, and without the namespace.
	Args []string
	// Named is true if the line has the name of the job; else each run generates one.
	Named bool
	// File is true if the job was in a file, which may be another one by now.
	File bool
}

// oneRun are the flags for how a job is submitted; they are no part of the job.
var oneRun = []string{"wait", "timeout", "follow", "dry-run", "from", "output"}

// Repeat reads the arguments of a kept command line, the program's name first. A name that is not empty takes the place of the one in
// it, and more are put before the command of the job. It is nil for a line
// that is not of submit, and for arguments that submit does not take.
func Repeat(args []string, name string, more ...string) *Repeated {
	root := &cobra.Command{Use: "gangctl"}
	kube.NewFactory("", io.Discard).AddFlags(root.PersistentFlags())
	root.AddCommand(NewCommand(&cmdutil.Factory{IO: &iostreams.IOStreams{}}))
	if len(args) < 2 {
		return nil
	}
	cmd, _, err := root.Find(args[1:])
	if err != nil || !strings.HasPrefix(cmd.CommandPath(), "gangctl submit") || cmd.ParseFlags(nil) != nil {
		return nil
	}
	w := reader{all: cmd.Flags(), inherited: cmd.InheritedFlags()}
	for _, arg := range more {
		if name := flagOf(arg, w); name != "" && w.all.Lookup(name) == nil {
			return nil
		}
	}
	r := &Repeated{}
	commands := strings.Fields(cmd.CommandPath())[1:] // submit, tf
	for args = args[1:]; len(args) > 0 && args[0] != "--"; {
		_, size := w.next(args)
		piece, flag := slices.Clone(args[:size]), flagOf(args[0], w)
		args = args[size:]
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
		r.Args = append(r.Args, piece...)
	}
	if name != "" && !r.Named {
		r.Args = append(r.Args, "--name="+name)
		r.Named = true
	}
	r.Args = append(append(r.Args, more...), args...)
	return r
}

// flagOf is the name of the flag that an argument is, or "".
func flagOf(arg string, w reader) string {
	if name, ok := strings.CutPrefix(arg, "--"); ok {
		name, _, _ = strings.Cut(name, "=")
		return name
	}
	if len(arg) > 1 && arg[0] == '-' {
		if flag := w.all.ShorthandLookup(arg[1:2]); flag != nil {
			return flag.Name
		}
		return "?"
	}
	return ""
}

// AddRunFlags adds the flags for how a job is submitted, which are no part of the job, to a command that passes them on.
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

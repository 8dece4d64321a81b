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
	"github.com/gangctl/gangctl/pkg/submit/provenance"
	"github.com/gangctl/gangctl/pkg/submit/redact"
)

// maxCommandLine is the longest command line, in bytes, that is kept on a job. All annotations of an object share 256 KiB, and
// what is kept for the curious must not be what makes a job too large.
const maxCommandLine = 32 << 10

// commandLine is the shell-quoted command line to keep on the job, or "" if it is too long. The flags of every command stay
// out: they are how this user reaches the cluster, which may take a password, and everybody who may read the job would read
// it. The namespace stays. Values of variables stay out, too: resubmit reads them from the job. Both flag sets are those of a command
// whose arguments have been parsed without an error.
func commandLine(args []string, all, inherited *pflag.FlagSet) string {
	r := reader{all: all, inherited: inherited}
	kept := []string{"gangctl"}
	for len(args) > 0 {
		keep, size := r.next(args)
		kept, args = append(kept, withoutValue(keep)...), args[size:]
	}
	line := shell.Join(kept...)
	if len(line) > maxCommandLine {
		return ""
	}
	return line
}

// withoutValue is a flag with its value as it may be kept: an annotation is read, listed and copied by many who may not read the rest.
func withoutValue(flag []string) []string {
	if len(flag) == 0 || !strings.HasPrefix(flag[0], "--") || flag[0] == "--" {
		return flag
	}
	if name, value, joined := strings.Cut(flag[0][2:], "="); joined {
		return []string{"--" + name + "=" + redact.Flag(name, value)}
	}
	if len(flag) == 2 {
		return []string{flag[0], redact.Flag(flag[0][2:], flag[1])}
	}
	return flag
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
	// like, and without the namespace. They are nil for a line with a flag that reads a local file, or leads to another cluster or
	// settings: whoever may write the job may have written the line, and the content has to come from the job. They are nil, too, for a
	// line that leaves a value out that the job does not have.
	Args []string
	// Named is true if the line has the name of the job; else each run generates one.
	Named bool
}

// oneRun are the flags for how a job is submitted; they are no part of the job.
var oneRun = []string{"wait", "timeout", "follow", "dry-run", "from", "output"}

// Replacement is the change of a command line that is run again.
type Replacement struct {
	// Name, if it is not empty, takes the place of the one in the line.
	Name string
	// More are put before the command of the job.
	More []string
	// Variable is the value of an environment variable of the job. Kept lines have none.
	Variable func(name string) (value string, ok bool)
}

// Repeat reads the arguments of a kept command line, the program's name first. It is nil for a line that is not of submit, and for
// arguments that submit does not take.
func Repeat(args []string, with Replacement) *Repeated {
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
	for _, arg := range with.More {
		if name := flagOf(arg, w); name != "" && w.all.Lookup(name) == nil {
			return nil
		}
	}
	r, fromJob := &Repeated{}, false
	commands := strings.Fields(cmd.CommandPath())[1:] // submit, tf
	for args = args[1:]; len(args) > 0 && args[0] != "--"; {
		_, size := w.next(args)
		piece, flag := slices.Clone(args[:size]), flagOf(args[0], w)
		args = args[size:]
		switch known := w.all.Lookup(flag); {
		case flag != "" && (known == nil || known.Name == "help"):
			return nil
		case slices.Contains(oneRun, flag), flag == "namespace":
			continue
		case slices.Contains(provenance.Files(), flag), w.drops(known):
			fromJob, r.Named = true, r.Named || flag == "filename" // which names its jobs
			continue
		case flag == "name":
			r.Named = true
			if with.Name != "" {
				piece = []string{"--name=" + with.Name}
			}
		case flag == "" && len(commands) > 0 && piece[0] == commands[0]:
			commands = commands[1:]
		case flag == "":
			r.Named = true
			if with.Name != "" {
				piece = []string{with.Name}
			}
		default:
			restored := restore(piece, flag, with.Variable)
			piece, fromJob = restored, fromJob || restored == nil
		}
		r.Args = append(r.Args, piece...)
	}
	if with.Name != "" && !r.Named {
		r.Args = append(r.Args, "--name="+with.Name)
		r.Named = true
	}
	r.Args = append(append(r.Args, with.More...), args...)
	if fromJob {
		r.Args = nil
	}
	return r
}

// restore is a kept flag with the value that was left out; nil if it is not known.
func restore(piece []string, flag string, variable func(string) (string, bool)) []string {
	value := piece[len(piece)-1]
	if len(piece) == 1 {
		_, value, _ = strings.Cut(value, "=")
	}
	if !redact.Hides(value) {
		return piece
	}
	name, ok := strings.CutSuffix(value, "="+redact.Hidden)
	if !ok || flag != "env" || variable == nil {
		return nil
	}
	if value, ok = variable(name); !ok {
		return nil
	}
	return []string{"--env=" + name + "=" + value}
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

// Package paste completes the commands that gangctl prints, so that one that is typed as it is printed acts on the cluster of the run that
// printed it. Commands are written without how a user reaches their cluster: who writes them, such as the scheduler with its published
// answers, does not know that.
package paste

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gangctl/gangctl/pkg/cli/localfile"
	"github.com/gangctl/gangctl/pkg/cli/shell"
)

// redacted stands for a value that is a secret. No API server takes it, so that a command with it acts for no other user.
const redacted = "REDACTED"

// elsewhere stands for a file with what was read of standard input.
const elsewhere = "FILE"

// Completer adds to commands the flags of one run: those of the connection, -n, --profile and --from.
type Completer struct {
	root       *cobra.Command
	connection *pflag.FlagSet
	// namespaced is the group of commands that are about jobs, and unconnected that of commands that contact no cluster.
	namespaced, unconnected string
	// from is the file that the run answers from; empty for the cluster.
	from string
}

// New returns a Completer for a tree of commands. The flags of the connection are among its persistent flags. The groups are those of the
// commands that take a namespace, and of those that contact no cluster.
func New(root *cobra.Command, connection *pflag.FlagSet, namespaced, unconnected string) *Completer {
	return &Completer{root: root, connection: connection, namespaced: namespaced, unconnected: unconnected}
}

// Run takes the flags of the command that runs.
func (c *Completer) Run(cmd *cobra.Command) {
	flag := cmd.Flags().Lookup("from")
	if flag == nil {
		return
	}
	if c.from = flag.Value.String(); c.from == localfile.Stdin || strings.HasPrefix(c.from, "/dev/") { // as standard input and <(…) are, which cannot be read a second time
		c.from = elsewhere
	}
}

// program finds where a command may begin: at the name of a program that reaches clusters.
var program = regexp.MustCompile("(?:^|[\\s`'\"(])(gangctl|kubectl) ")

// Complete completes every command in a text. Those of an administrator are without the flags by which the cluster knows the user of the run:
// an administrator has rights of their own. A command that follows the word in its line is one.
func (c *Completer) Complete(text string, admin bool) string {
	found := program.FindAllStringSubmatchIndex(text, -1)
	var out strings.Builder
	at := 0
	for i, match := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		before := text[strings.LastIndexByte(text[:match[2]], '\n')+1 : match[2]]
		l := line{program: text[match[2]:match[3]], args: args(text[match[1]:end]), admin: admin || strings.Contains(before, "administrator")}
		insert := func(end int, flags []string) {
			out.WriteString(text[at:end])
			at = end
			if len(flags) > 0 {
				out.WriteString(" " + shell.Join(flags...))
			}
		}
		insert(match[2], nil)
		out.WriteString(c.name(l))
		at = match[3]
		insert(match[3], c.global(l))
		if own, path := c.own(l); own != nil {
			insert(match[1]+len(path), own)
		}
	}
	return out.String() + text[at:]
}

// line is a command that stands in a text.
type line struct {
	program string
	// args are its arguments as they are written, the verb first.
	args  []string
	admin bool
}

// has reports whether a command has a flag.
func (l line) has(names ...string) bool {
	return slices.ContainsFunc(l.args, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains(names, name)
	})
}

// args are the arguments of a command that stands in a text: up to the end of the line, of the quotation, or of the part of the sentence.
func args(text string) []string {
	for _, end := range []string{"\n", "`", ", ", "; ", " | ", " && "} {
		text, _, _ = strings.Cut(text, end)
	}
	all := strings.Fields(text)
	for i := range all {
		all[i] = strings.Trim(all[i], `'".,:;)`)
	}
	return all
}

// kubectlVerbs are the commands of kubectl that reach a cluster. What else follows its name is a sentence about it.
var kubectlVerbs = []string{"annotate", "api-resources", "apply", "auth", "config", "cordon", "create", "delete", "describe", "drain", "edit", "events", "exec", "get", "label", "logs", "patch",
	"replace", "rollout", "scale", "taint", "top", "uncordon", "version", "wait"}

// command is the command of gangctl that a line runs, and its path; nil where it runs none that contacts a cluster.
func (c *Completer) command(l line) (cmd *cobra.Command, path string) {
	if l.program != "gangctl" || l.has("--help") {
		return nil, ""
	}
	at, names := c.root, []string(nil)
	for _, arg := range l.args {
		i := slices.IndexFunc(at.Commands(), func(sub *cobra.Command) bool { return sub.Name() == arg })
		if i < 0 {
			break
		}
		at, names = at.Commands()[i], append(names, arg)
	}
	if group := groupOf(at); group == "" || group == c.unconnected {
		return nil, ""
	}
	return at, strings.Join(names, " ")
}

// groupOf is the group of a command in the help, or of the command that it is of.
func groupOf(cmd *cobra.Command) string {
	for ; cmd != nil; cmd = cmd.Parent() {
		if cmd.GroupID != "" {
			return cmd.GroupID
		}
	}
	return ""
}

// name is the name of the program of a line, as its user has called it: gangctl may be kubectl's plugin.
func (c *Completer) name(l line) string {
	known := func(cmd *cobra.Command) bool { return len(l.args) > 0 && cmd.Name() == l.args[0] }
	if l.program == "gangctl" && slices.ContainsFunc(c.root.Commands(), known) {
		return c.root.CommandPath()
	}
	return l.program
}

// global are the flags that a command lacks, and that follow the name of the program.
func (c *Completer) global(l line) []string {
	if l.program == "kubectl" {
		return c.ofKubectl(l)
	}
	cmd, _ := c.command(l)
	if cmd == nil {
		return nil
	}
	flags := c.flags(l, func(flag *pflag.Flag) bool { return flag.Changed }) // it reads the settings itself
	if profile := c.root.PersistentFlags().Lookup("profile"); profile != nil && profile.Changed && !l.has("--profile") {
		flags = append(flags, assigned(profile)...)
	}
	if n := c.connection.Lookup("namespace"); n != nil && n.Changed && groupOf(cmd) == c.namespaced && !l.has("-n", "--namespace", "-A", "--all-namespaces") && cmd.Name() != "node" {
		flags = append(flags, "-n", n.Value.String())
	}
	return flags
}

// ofKubectl are the flags that a command of kubectl lacks. It does not read gangctl's settings.
func (c *Completer) ofKubectl(l line) []string {
	if len(l.args) == 0 || l.has("--help", "--local") || !strings.HasPrefix(l.args[0], "-") && !slices.Contains(kubectlVerbs, l.args[0]) {
		return nil
	}
	return c.flags(l, func(flag *pflag.Flag) bool {
		switch {
		case flag.Value.String() == flag.DefValue || flag.Name == "proxy-url": // which kubectl has not
			return false
		case l.args[0] == "config":
			return flag.Name == "kubeconfig" || flag.Name == "context"
		}
		return true
	})
}

// own are the flags that a command lacks, and that follow its path: the file that the answer is from, unless the command is about another cluster.
func (c *Completer) own(l line) (flags []string, path string) {
	cmd, path := c.command(l)
	if cmd == nil || c.from == "" || cmd.Flags().Lookup("from") == nil || cmd.Flags().Lookup("dry-run") != nil || l.has("--from", "--save", "--context") {
		return nil, ""
	}
	return []string{"--from", c.from}, path
}

// notCarried are the flags of the connection that do not lead anywhere else.
var notCarried = []string{"namespace", "request-timeout"}

// identity are the flags that are about who makes the requests.
var identity = []string{"client-certificate", "client-key", "token", "as", "as-uid", "as-group", "user"}

// impersonation are those of them with which the requests are another one's: of a command that names a user, all are its own.
var impersonation = []string{"as", "as-uid", "as-group"}

// anyCluster are the flags that mean the same with another context.
var anyCluster = []string{"kubeconfig", "as", "as-uid", "as-group"}

// flags are the flags of the connection that count, as a command lacks them.
func (c *Completer) flags(l line, counts func(*pflag.Flag) bool) []string {
	var all []string
	other := l.has("--context")
	c.connection.VisitAll(func(flag *pflag.Flag) {
		if counts(flag) && !slices.Contains(notCarried, flag.Name) && !l.has("--"+flag.Name) &&
			!(l.admin && slices.Contains(identity, flag.Name)) && !(l.has("--as") && slices.Contains(impersonation, flag.Name)) && (!other || slices.Contains(anyCluster, flag.Name)) {
			all = append(all, assigned(flag)...)
		}
	})
	return all
}

// assigned is a flag with its value, or values.
func assigned(flag *pflag.Flag) []string {
	values := []string{flag.Value.String()}
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		values = list.GetSlice()
	}
	var all []string
	for _, value := range values {
		switch {
		case flag.Name == "token":
			value = redacted
		case flag.Name == "proxy-url":
			if u, err := url.Parse(value); err == nil {
				value = u.Redacted()
			}
		}
		switch {
		case flag.Value.Type() == "bool" || value == "" || strings.HasPrefix(value, "-"):
			all = append(all, "--"+flag.Name+"="+value)
		default:
			all = append(all, "--"+flag.Name, value)
		}
	}
	return all
}

package root

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

func newRoot(t *testing.T, args ...string) (*cobra.Command, *cmdutil.Factory, func() (string, string)) {
	t.Helper()
	io, _, out, errOut := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	home := t.TempDir()
	f := &cmdutil.Factory{IO: io, Args: args, Getenv: func(key string) string { return map[string]string{"HOME": home}[key] }}
	return NewCommand(f), f, func() (string, string) { return out.String(), errOut.String() }
}

// The libraries of Kubernetes log nothing between the output of commands; a further command, as the scheduler, is a server with logs.
func TestLibrariesAreSilent(t *testing.T) {
	io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	for _, line := range []string{"version", "serve"} {
		var ctx context.Context
		serve := &cobra.Command{Use: "serve", Run: func(cmd *cobra.Command, _ []string) { ctx = cmd.Context() }}
		f := &cmdutil.Factory{IO: io, Args: []string{line}, Getenv: func(string) string { return "" }}
		root := NewCommand(f, serve)
		if own, _, err := root.Find([]string{line}); err != nil {
			t.Fatal(err)
		} else if own != serve {
			own.RunE = func(cmd *cobra.Command, _ []string) error { ctx = cmd.Context(); return nil }
		}
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if silent := klog.FromContext(ctx).GetSink() == nil; silent != (line == "version") {
			t.Errorf("%s: silent is %t", line, silent)
		}
	}
}

func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		walk(sub, visit)
	}
}

// Every command that is ours is explained by two examples whose command lines are accepted.
func TestExamples(t *testing.T) {
	root, _, _ := newRoot(t)
	checked := 0
	walk(root, func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.IsAdditionalHelpTopicCommand() {
			return
		}
		examples := 0
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			examples++
			args, err := shell.Split(line)
			if err != nil {
				t.Errorf("%s: %s: %v", cmd.CommandPath(), line, err)
				continue
			}
			if args[0] != "gangctl" {
				continue // inside a construct of the shell
			}
			if pipe := slices.Index(args, "|"); pipe > 0 {
				args = args[:pipe] // what follows is another program's
			}
			fresh, _, _ := newRoot(t)
			target, rest, err := fresh.Find(args[1:])
			if err != nil || target == fresh {
				t.Errorf("%s: %s: no such command: %v", cmd.CommandPath(), line, err)
				continue
			}
			if err := target.ParseFlags(rest); err != nil {
				t.Errorf("%s: %s: %v", cmd.CommandPath(), line, err)
			}
			checked++
		}
		if examples < 2 {
			t.Errorf("%s has %d examples, want 2", cmd.CommandPath(), examples)
		}
		if cmd.Long == "" || cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: the help is incomplete", cmd.CommandPath())
		}
	})
	if checked < 10 {
		t.Errorf("only %d examples were checked", checked)
	}
}

// Every command of the first level is in a group of the help.
func TestGroups(t *testing.T) {
	root, f, output := newRoot(t, "--help")
	if code := Execute(t.Context(), f, root); code != failure.CodeOK {
		t.Fatal(code)
	}
	help, _ := output()
	walk(root, func(cmd *cobra.Command) {
		if cmd.HasParent() && !cmd.Hidden && !cmd.IsAdditionalHelpTopicCommand() && cmd.Parent() == root && (cmd.GroupID == "" || !strings.Contains(help, "\n  "+cmd.Name()+" ")) {
			t.Errorf("%s is in no group of the help", cmd.Name())
		}
	})
}

func TestSuggestions(t *testing.T) {
	for typed, want := range map[string]string{"squeue": "list", "sinfo": "top", "sbatch": "submit", "srun": "submit", "scancel": "delete", "versoin": "version", "lst": "list", "delet": "delete"} {
		root, f, output := newRoot(t, typed)
		code := Execute(t.Context(), f, root)
		if _, stderr := output(); code != failure.CodeUsage || stderr != "error: unknown command \""+typed+"\"\nhint: did you mean 'gangctl "+want+"'?\n" {
			t.Errorf("%s: %d, %s", typed, code, stderr)
		}
	}
}

func TestUsageErrorsPointToHelp(t *testing.T) {
	for args, command := range map[string]string{"list --foo": "gangctl list", "submit tf a --image i -o wide": "gangctl submit tf", "completion bash x": "gangctl completion bash"} {
		root, f, output := newRoot(t, strings.Fields(args)...)
		code := Execute(t.Context(), f, root)
		if _, stderr := output(); code != failure.CodeUsage || !strings.HasSuffix(stderr, "hint: see '"+command+" --help'\n") {
			t.Errorf("%s: %d, %s", args, code, stderr)
		}
	}
}

// A flag that is not known gets those that were probably meant.
func TestMistypedFlags(t *testing.T) {
	for args, meant := range map[string]string{"submit tf a --worker 2": "--workers or --worker-cpu or --worker-gpus", "submit tf a --gpu 2": "--gpus or --gpu-resource", "list --namespce x": "--namespace", "delete a --frobnicate": ""} {
		root, f, output := newRoot(t, strings.Fields(args)...)
		code := Execute(t.Context(), f, root)
		_, stderr := output()
		if hinted := strings.Contains(stderr, "did you mean "+meant+"? see 'gangctl "); code != failure.CodeUsage || hinted != (meant != "") {
			t.Errorf("%s: %d, %s", args, code, stderr)
		}
	}
}

// Settings are defaults for jobs: `no-fit` is that of resize. What is installed, and what is deleted, is only what was typed. Where the cluster is
// counts for all commands.
func TestSettingsLeaveTheInstallationAlone(t *testing.T) {
	const settings = "no-fit: true\nyes: true\nforce-conflicts: true\nnamespace: team\nimage: i\ncontext: lab\n"
	for line, own := range map[string]bool{"upgrade": true, "uninstall": true, "install scheduler": true, "install operator": true, "resize llama": false} {
		root, f, output := newRoot(t, strings.Fields(line)...)
		environment := f.Getenv
		f.Getenv = func(key string) string {
			return cmp.Or(map[string]string{"GANGCTL_DELETE_CRDS": "true", "GANGCTL_CONFIRM": "podgroups.scheduling.x-k8s.io"}[key], environment(key))
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(f.ConfigPath), 0o700), os.WriteFile(f.ConfigPath, []byte(settings), 0o600)); err != nil {
			t.Fatal(err)
		}
		target, _, err := root.Find(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		ran := false
		target.RunE = func(cmd *cobra.Command, _ []string) error {
			ran = true
			if got := cmd.Flag("context").Value.String(); got != "lab" {
				t.Errorf("%s: --context is %q", line, got)
			}
			cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
				if got := flag.Value.String(); own && got != flag.DefValue {
					t.Errorf("%s: --%s is %s, want %s", line, flag.Name, got, flag.DefValue)
				}
			})
			if noFit := cmd.Flag("no-fit"); !own && noFit.Value.String() != "true" {
				t.Errorf("%s: --no-fit is %s", line, noFit.Value)
			}
			return nil
		}
		if code := Execute(t.Context(), f, root); code != failure.CodeOK || !ran {
			_, stderr := output()
			t.Errorf("%s: %d, %s", line, code, stderr)
		}
	}
}

// Flags whose values the cluster or the user's files know complete.
func TestFlagsComplete(t *testing.T) {
	cmd, _, _ := newRoot(t)
	for line, flags := range map[string][]string{
		"submit tf": {"template", "gpu-resource", "data", "topology", "topology-preferred", "affinity-domain", "queue"}, "top node": {"by"},
	} {
		sub, _, err := cmd.Find(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		for _, flag := range flags {
			if _, known := sub.GetFlagCompletionFunc(flag); !known {
				t.Errorf("%s --%s does not complete", line, flag)
			}
		}
	}
}

// What is for the report of a bug works with settings that cannot be read.
func TestVersionWithBrokenSettings(t *testing.T) {
	for line, want := range map[string]failure.Code{"version": failure.CodeOK, "list": failure.CodeError} {
		cmd, f, printed := newRoot(t, line)
		if err := errors.Join(os.MkdirAll(filepath.Dir(f.ConfigPath), 0o700), os.WriteFile(f.ConfigPath, []byte("a: [\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if code := Execute(t.Context(), f, cmd); code != want {
			out, errOut := printed()
			t.Errorf("%s: exit %d, %s%s", line, code, out, errOut)
		}
	}
}

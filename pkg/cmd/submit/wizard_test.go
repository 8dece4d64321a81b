package submit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/prompttest"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/shell"
)

// prompted is a wizard for `submit tf` and typed arguments, with answers.
func prompted(t *testing.T, typed []string, answers ...string) (w *wizard, p *prompttest.Fake, stderr func() string, err error) {
	t.Helper()
	io, _, _, errOut := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	argv := append([]string{"submit", "tf"}, typed...)
	o := &Options{Submission: Submission{IO: io, Namespace: func() (string, error) { return "research", nil }}, Suffix: func() string { return "abcde" }, kind: tfKind(), Roles: tfKind().roles()}
	cmd := &cobra.Command{Use: "tf", SilenceErrors: true, SilenceUsage: true}
	o.addFlags(cmd)
	p = &prompttest.Fake{Texts: answers}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		w = &wizard{Prompter: p, o: o, cmd: cmd, argv: argv, dash: cmd.ArgsLenAtDash() >= 0,
			capacity: func(context.Context) (string, []string) { return "2 x 8 (workers x GPUs)", []string{"vision"} }}
		rest, err := w.promptAll(cmd.Context(), args)
		if err != nil {
			return err
		}
		if err := o.complete(cmd, rest); err != nil {
			return err
		}
		return o.validate(cmd.Flags())
	}
	cmd.SetArgs(typed)
	err = cmd.ExecuteContext(t.Context())
	return w, p, errOut.String, err
}

// answered are the answers to the prompts, in the order of the prompts, but for what was typed.
func answered(t *testing.T, typed string, answers [8]string) []string {
	t.Helper()
	o := &Options{kind: tfKind(), Roles: tfKind().roles()}
	cmd := &cobra.Command{Use: "tf"}
	o.addFlags(cmd)
	var left []string
	for i, name := range []string{"name", "template", "workers", "ps", "gpus", "queue", "image", "command"} {
		if !strings.Contains(typed, "--"+name+" ") && (name == "command" || cmd.Flags().Lookup(name) != nil) {
			left = append(left, answers[i])
		}
	}
	return left
}

// The line that the wizard prints makes the very objects that it shows, whatever the answers are.
func TestWizardsLine(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 2026)) //nolint:gosec // the same answers each time
	pick := func(args ...string) string { return args[random.IntN(len(args))] }
	for i := range 300 {
		command := shell.Join(pick("python", "sh"), pick("-c", "", "a b", "--image"), pick("echo \"q\" 'x'", "$HOME", "ü\n", "--", "-n"))
		typed := pick("", "--cpu 4", "--ps 1 --min-available 1", "--env A=b=c --gpus 2", "--workers 3")
		answers := answered(t, typed, [8]string{fmt.Sprintf("%s-%d", pick("a", "llama", "x1"), i), pick("", "", "parameter-server", "all-reduce", "chief-evaluator"), pick("1", "2", "40", ""), pick("0", "3", ""), pick("0", "1", "8", ""),
			pick("", "vision"), pick("i", "repo.example/a:1", "registry:5000/a"), pick(command, "")})
		w, p, _, err := prompted(t, strings.Fields(typed), answers...)
		if err != nil || len(p.Texts) > 0 {
			t.Fatalf("%q, %q: %v, left %q", typed, answers, err, p.Texts)
		}
		shown, err := w.o.preview(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		args, err := shell.Split(w.line())
		if err != nil || args[0] != "gangctl" {
			t.Fatalf("%s: %v", w.line(), err)
		}
		end := slices.Index(args, "--")
		if end < 0 {
			end = len(args)
		}
		out, _, failed := typeLine(t.Context(), noCluster, "", slices.Concat(args[1:end], []string{"--dry-run=client", "--output=yaml"}, args[end:])...)
		if failed != nil {
			t.Fatalf("%s: %+v", w.line(), failed)
		}
		if diff := cmp.Diff(bare(shown), bare(out)); diff != "" {
			t.Fatalf("%s\n-shown +line\n%s", w.line(), diff)
		}
	}
}

// bare is YAML without the command line that jobs keep: the flags of the dry run are in one of the two.
func bare(text string) string {
	return regexp.MustCompile(`(?m)^  annotations:\n    gangctl.dev/command: (.*\n)(      .*\n|\n)*`).ReplaceAllString(text, "")
}

// What was typed is not prompted for, and free capacity is printed before the prompt for GPUs.
func TestWizardPromptsForWhatIsMissing(t *testing.T) {
	typed := "llama --workers 2 --ps 0 --gpus 8 -- python x"
	w, p, stderr, err := prompted(t, strings.Fields(typed), answered(t, typed+" --name --command ", [8]string{"", "", "", "", "", "", "i", ""})...)
	if err != nil || w.line() != "gangctl submit tf llama --workers 2 --ps 0 --gpus 8 --image=i -- python x" {
		t.Errorf("got %v, %s, prompts %q", err, w.line(), p.Prompts)
	}
	if stderr() != "Would start now: 2 x 8 (workers x GPUs)\n" {
		t.Errorf("notes %q", stderr())
	}
}

// A bad answer is refused, with what is accepted.
func TestWizardRefuses(t *testing.T) {
	if _, p, _, err := prompted(t, nil, "Bad_Name", "", "1"); err == nil || !strings.Contains(err.Error(), "must start with a lower-case letter") || len(p.Texts) != 2 {
		t.Errorf("got %v, left %q", err, p.Texts)
	}
	for i, answers := range [][]string{{"a", "", "0"}, {"a", "", "x"}, {"a", "", "1", "0", "-1"}} {
		if _, _, _, err := prompted(t, nil, answers...); err == nil || !strings.Contains(err.Error(), "must be a whole number from") {
			t.Errorf("%d: got %v", i, err)
		}
	}
}

// What is shown can be submitted, saved, or left.
func TestWizardDecides(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.yaml")
	for _, tt := range []struct {
		answers []string
		submits bool
	}{{[]string{doSubmit}, true}, {[]string{doStop}, false}, {[]string{doSave, path}, false}} {
		typed := "llama --image i --workers 1 --ps 0 --gpus 0"
		w, _, stderr, err := prompted(t, strings.Fields(typed), answered(t, typed+" --name ", [8]string{})...)
		if err != nil {
			t.Fatal(err)
		}
		w.Prompter = &prompttest.Fake{Texts: tt.answers}
		text, err := w.o.preview(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		submits, err := w.review(text)
		if err != nil || submits != tt.submits || !strings.Contains(stderr(), "kind: TFJob") || !strings.Contains(stderr(), "\nThe same in one line:\n  gangctl submit tf llama") {
			t.Errorf("%q: got %v, %v\n%s", tt.answers, submits, err, stderr())
		}
	}
	saved, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(saved), "kind: TFJob") || !strings.Contains(string(saved), "---\n") {
		t.Errorf("saved %s, %v", saved, err)
	}
}

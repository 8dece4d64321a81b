package whypending

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/prompttest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// What is done is what is shown, after it was confirmed.
func TestApply(t *testing.T) {
	a := &answer.Answer{Verdict: answer.Blocked, Headline: "llama: too large", Job: answer.Job{Kind: "TFJob", Namespace: "team", Name: "llama"}, Unblock: []answer.Action{
		{Kind: answer.Wait, By: answer.Nobody, Text: "research/a ends"},
		{Number: 1, Kind: answer.Uncordon, By: answer.Admin, Text: "uncordon n1", Command: "kubectl uncordon n1"},
		{Number: 2, Kind: answer.Fewer, By: answer.User, Text: "2 workers instead of 4", Cost: "less compute", Resize: "gangctl resize llama --workers 2 -n team", Command: "kubectl …"},
		{Number: 3, Kind: answer.AddNodes, By: answer.Admin, Text: "add 2 nodes", How: "whoever runs the cluster adds them"},
	}}
	for name, tt := range map[string]struct {
		apply   string
		yes     bool
		answers *prompttest.Fake
		args    string
		message string
		hint    string
	}{
		"confirmed":   {apply: "2", answers: &prompttest.Fake{Choices: []bool{true}}, args: "tfjob/llama --workers 2"},
		"with --yes":  {apply: "2", yes: true, args: "tfjob/llama --workers 2"},
		"declined":    {apply: "2", answers: &prompttest.Fake{Choices: []bool{false}}, message: "not confirmed; TFJob team/llama stays as it is"},
		"no terminal": {apply: "2", message: "cannot prompt whether to apply it: stdin and stderr must be terminals", hint: "gangctl why-pending tfjob/llama -n team --apply '2 workers instead of 4' --yes"},
		"by its text": {apply: "2 workers instead of 4", yes: true, args: "tfjob/llama --workers 2"},
		"by its line": {apply: "gangctl resize llama --workers 2 -n team", yes: true, args: "tfjob/llama --workers 2"},
		"a way that is gone": {apply: "3 workers instead of 4", yes: true,
			message: `--apply: the answer for TFJob team/llama offers no way "3 workers instead of 4" (any more); it offers [1] uncordon n1, [2] 2 workers instead of 4, [3] add 2 nodes`, hint: "gangctl why-pending tfjob/llama -n team -v"},
		"kubectl's":   {apply: "1", yes: true, message: "--apply 1: gangctl cannot do that for TFJob team/llama: uncordon n1", hint: "kubectl uncordon n1"},
		"no command":  {apply: "3", yes: true, message: "--apply 3: gangctl cannot do that for TFJob team/llama: add 2 nodes", hint: "whoever runs the cluster adds them"},
		"not offered": {apply: "4", yes: true, message: "--apply 4: the answer for TFJob team/llama offers 3", hint: "gangctl why-pending tfjob/llama -n team -v"},
	} {
		t.Run(name, func(t *testing.T) {
			io, _, _, errOut := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
			var done []string
			o := &Options{IO: io, Yes: tt.yes, Prompter: tt.answers, Resize: func(_ context.Context, args []string) error {
				done = args
				return nil
			}}
			if err := o.Apply.Set(tt.apply); err != nil {
				t.Fatal(err)
			}
			failed := failure.From(o.apply(t.Context(), a))
			if (failed == nil) != (tt.message == "") || failed != nil && (failed.Message != tt.message || !strings.Contains(failed.Hint, tt.hint)) {
				t.Errorf("got %+v", failed)
			}
			if !slices.Equal(done, strings.Fields(tt.args)) {
				t.Errorf("did %q", done)
			}
			if tt.args != "" && !strings.Contains(errOut.String(), "[2] 2 workers instead of 4 (less compute)\n    gangctl resize llama --workers 2 -n team\n") {
				t.Errorf("shown: %s", errOut)
			}
		})
	}
}

// The line of a way is the way with the flags of the run, too: that is how it was printed.
func TestApplyALineAsItWasPrinted(t *testing.T) {
	io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	io.SetCommands(func(text string, _ bool) string {
		return strings.Replace(text, "gangctl ", "gangctl --context staging ", 1)
	})
	o := &Options{IO: io}
	if err := o.Apply.Set("gangctl --context staging resize llama --workers 2 -n team"); err != nil {
		t.Fatal(err)
	}
	a := &answer.Answer{Unblock: []answer.Action{{Number: 1, Kind: answer.Fewer, Text: "2 workers instead of 4", Resize: "gangctl resize llama --workers 2 -n team"}}}
	if x, err := o.chosen(a); err != nil || x.Number != 1 {
		t.Errorf("got %+v, %v", x, err)
	}
}

// A job is named with its kind, as it was typed where two kinds are called the same.
func TestNamed(t *testing.T) {
	for _, tt := range []struct{ typed, kind, want string }{
		{"", "TFJob", "tfjob/llama"}, {"pod", "TFJob", "tfjob/llama"}, {"job.batch", "Job", "batchjob/llama"}, {"vcjob", "Job", "vcjob/llama"}, {"", "Job", "llama"},
	} {
		if got := (&Options{Kind: tt.typed}).named(&answer.Answer{Job: answer.Job{Kind: tt.kind, Name: "llama"}}); got != tt.want {
			t.Errorf("%s, a %s: %s, want %s", tt.typed, tt.kind, got, tt.want)
		}
	}
}

package suspend

import (
	"testing"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/internal/prompttest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
)

// What another user submitted is confirmed before its members are ended, or made again, and --yes answers.
func TestJobsOfOthers(t *testing.T) {
	const bobs = "TFJob research/llama was submitted by bob"
	for name, tt := range map[string]struct {
		suspend, yes bool
		answers      *prompttest.Fake
		message      string
		hint         string
		prompt       string
	}{
		"no terminal":         {suspend: true, answers: nil, message: bobs + "; cannot prompt: stdin and stderr must be terminals", hint: "to suspend it all the same: gangctl suspend tfjob/llama -n research --yes"},
		"no":                  {suspend: true, answers: &prompttest.Fake{Choices: []bool{false}}, message: bobs + ", and stays as it is", prompt: bobs + ". Suspend it?"},
		"yes":                 {suspend: true, answers: &prompttest.Fake{Choices: []bool{true}}, prompt: bobs + ". Suspend it?"},
		"--yes":               {suspend: true, yes: true},
		"resume, no terminal": {message: bobs + "; cannot prompt: stdin and stderr must be terminals", hint: "to resume it all the same: gangctl resume tfjob/llama -n research --yes"},
		"resume, yes":         {answers: &prompttest.Fake{Choices: []bool{true}}, prompt: bobs + ". Resume it?"},
	} {
		t.Run(name, func(t *testing.T) {
			s := kubetest.New(t)
			of := func(suspended bool) change {
				return func(j *kubeflowv1.TFJob) {
					set(suspended)(j)
					j.Annotations = map[string]string{"gangctl.dev/submitted-by": "bob"}
				}
			}
			keep(s, "llama", of(!tt.suspend), of(tt.suspend))
			s.Answer("GET "+podsPath, 200, kubetest.PodList())
			s.Answer("POST /apis/authentication.k8s.io/v1/selfsubjectreviews", 201, map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
				"status": map[string]any{"userInfo": map[string]any{"username": "ann"}}})
			io, _, out, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
			o := &Options{IO: io, Client: s.Client, Namespace: func() (string, error) { return "research", nil }, Names: []string{"llama"}, Prompter: tt.answers, Suspend: tt.suspend, Yes: tt.yes}
			failed := failure.From(o.run(t.Context()))
			if (failed == nil) != (tt.message == "") || failed != nil && (failed.Message != tt.message || failed.Hint != tt.hint) || (out.Len() > 0) != (failed == nil) {
				t.Errorf("got %+v, %q", failed, out)
			}
			if tt.answers != nil && (len(tt.answers.Prompts) != 1 || tt.answers.Prompts[0] != tt.prompt) {
				t.Errorf("prompts %q", tt.answers.Prompts)
			}
		})
	}
}

// A mistake in one name does not pass for one of the command line once another job is suspended: then something was done.
func TestMistakeAmongOthers(t *testing.T) {
	s := kubetest.New(t)
	keep(s, "a", asIs, set(true))
	stdout, _, failed := run(t.Context(), s, "suspend", "a", "foo/x")
	if failed == nil || failed.Code != failure.CodeError || stdout != "tfjob.kubeflow.org/a suspended\n" {
		t.Errorf("got %+v, %q", failed, stdout)
	}
	if _, _, failed = run(t.Context(), kubetest.New(t), "suspend", "foo/x"); failed == nil || failed.Code != failure.CodeUsage {
		t.Errorf("alone: got %+v", failed)
	}
}

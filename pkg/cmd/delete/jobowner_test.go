package delete

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/internal/prompttest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// What another user submitted is confirmed, and --yes answers. Jobs of one's own, and those of unknown users, are deleted at once.
func TestJobsOfOthers(t *testing.T) {
	const bobs = "TFJob research/bobs was submitted by bob"
	for name, tt := range map[string]struct {
		caller  string
		answers *prompttest.Fake
		args    []string
		deleted []string
		prompts []string
		message string
	}{
		"no terminal":          {"ann", nil, nil, []string{"anns", "nobodys"}, nil, bobs + "; cannot prompt: stdin and stderr must be terminals"},
		"no":                   {"ann", &prompttest.Fake{Choices: []bool{false}}, nil, []string{"anns", "nobodys"}, []string{bobs + ". Delete it?"}, bobs + ", and stays as it is"},
		"yes":                  {"ann", &prompttest.Fake{Choices: []bool{true}}, nil, []string{"anns", "bobs", "nobodys"}, []string{bobs + ". Delete it?"}, ""},
		"with --yes":           {"ann", &prompttest.Fake{Choices: []bool{false}}, []string{"--yes"}, []string{"anns", "bobs", "nobodys"}, nil, ""},
		"one's own":            {"bob", &prompttest.Fake{Choices: []bool{true}}, nil, []string{"anns", "bobs", "nobodys"}, []string{"TFJob research/anns was submitted by ann. Delete it?"}, ""},
		"the server is silent": {"", &prompttest.Fake{Choices: []bool{true, false}}, nil, []string{"anns", "nobodys"}, []string{"TFJob research/anns was submitted by ann. Delete it?", bobs + ". Delete it?"}, bobs + ", and stays as it is"},
	} {
		t.Run(name, func(t *testing.T) {
			s := kubetest.New(t)
			for job, user := range map[string]string{"anns": "ann", "bobs": "bob", "nobodys": ""} {
				object := kubetest.Job("research", job, 1)
				if user != "" {
					object.Annotations = map[string]string{"gangctl.dev/submitted-by": user}
				}
				s.Answer("GET "+jobsPath+"/"+job, 200, object)
				s.Answer("DELETE "+jobsPath+"/"+job, 200, &metav1.Status{Status: metav1.StatusSuccess})
			}
			if tt.caller != "" {
				s.Answer("POST /apis/authentication.k8s.io/v1/selfsubjectreviews", 201, map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
					"status": map[string]any{"userInfo": map[string]any{"username": tt.caller}}})
			}
			io, _, out, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
			o := &Options{IO: io, Client: s.Client, Namespace: func() (string, error) { return "research", nil }, Names: []string{"anns", "bobs", "nobodys"}, Prompter: tt.answers, Yes: slices.Contains(tt.args, "--yes")}
			failed := failure.From(o.run(t.Context()))
			var deleted []string
			for line := range strings.Lines(out.String()) {
				deleted = append(deleted, strings.TrimSuffix(strings.TrimPrefix(line, "tfjob.kubeflow.org/"), " deleted\n"))
			}
			if !slices.Equal(deleted, tt.deleted) || tt.answers != nil && !slices.Equal(tt.answers.Prompts, tt.prompts) {
				t.Errorf("deleted %q, asked %+v", deleted, tt.answers)
			}
			if (failed == nil) != (tt.message == "") || failed != nil && (failed.Message != tt.message || failed.Code != failure.CodeError) {
				t.Errorf("got %+v", failed)
			}
			if name == "no terminal" && failed.Hint != "to delete it all the same: gangctl delete tfjob/bobs -n research --yes" {
				t.Errorf("hint: %s", failed.Hint)
			}
		})
	}
}

// Ctrl-C at a prompt ends the command: no other job is deleted.
func TestInterruptedAtAPrompt(t *testing.T) {
	s := kubetest.New(t)
	for job, user := range map[string]string{"anns": "ann", "bobs": "bob", "nobodys": ""} {
		object := kubetest.Job("research", job, 1)
		if user != "" {
			object.Annotations = map[string]string{"gangctl.dev/submitted-by": user}
		}
		s.Answer("GET "+jobsPath+"/"+job, 200, object)
		s.Answer("DELETE "+jobsPath+"/"+job, 200, &metav1.Status{Status: metav1.StatusSuccess})
	}
	io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	o := &Options{
		IO: io, Client: s.Client, Namespace: func() (string, error) { return "research", nil }, Names: []string{"anns", "bobs", "nobodys"},
		Prompter: &prompttest.Fake{Choices: []bool{true}, Interrupt: true},
	}
	failed := failure.From(o.run(t.Context()))
	if failed == nil || failed.Code != failure.CodeInterrupted || failed.Message != "interrupted; not tried: bobs, nobodys" {
		t.Errorf("got %+v", failed)
	}
	if requests := s.Requests(); slices.ContainsFunc(requests, func(r string) bool { return strings.HasPrefix(r, "DELETE") && !strings.Contains(r, "anns") }) {
		t.Errorf("got %q", requests)
	}
}

func TestYes(t *testing.T) {
	f := &cmdutil.Factory{}
	io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	f.IO = io
	if flag := NewCommand(f, nil).Flags().Lookup("yes"); flag == nil || flag.Shorthand != "y" {
		t.Errorf("got %v", flag)
	}
}

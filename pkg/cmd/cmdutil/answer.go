package cmdutil

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	answertext "github.com/gangctl/gangctl/pkg/diagnose/text"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// PrintAnswer writes an answer in the form of -o. A text is broken at the width of the terminal, and its commands are completed; style,
// width and commands of the options are filled in. As JSON or YAML an answer is the same for everybody: its commands name no context.
func PrintAnswer(io *iostreams.IOStreams, output *printer.Flags, a *answer.Answer, o answertext.Options) error {
	if !output.IsTable() {
		return Encode(io, output, a)
	}
	o.Width = io.Width()
	o.Commands = func(text string, by answer.Who) string {
		if by == answer.Admin {
			return io.AdminCommands(text)
		}
		return io.Commands(text)
	}
	o.Style = func(v answer.Verdict, text string) string { return io.OutStyled(colour(v), text) }
	return answertext.Write(io.Out, a, o)
}

// WhyPending explains one job from the cluster, without advice: for the commands that remark in a line what why-pending would print.
func WhyPending(ctx context.Context, client *kube.Client, now func() time.Time, job *gang.Job) (*answer.Answer, error) {
	q := diagnose.Query{Kind: job.Reader.Names[0], Namespace: job.Meta.Namespace, Name: job.Meta.Name}
	s, err := collect.Collect(ctx, client, collect.Options{Namespace: q.Namespace, Kind: q.Kind, Name: q.Name, Now: now})
	if err != nil {
		return nil, err
	}
	a, err := diagnose.Explain(ctx, s, q, diagnose.Options{NoAdvice: true})
	if err != nil {
		return nil, err
	}
	return ElsePublished(ctx, client, now(), a), nil
}

// WhyPendingLine returns a function that writes the first line of what why-pending prints about a job.
func WhyPendingLine(client *kube.Client, now func() time.Time) func(context.Context, *gang.Job) (string, error) {
	return func(ctx context.Context, job *gang.Job) (string, error) {
		a, err := WhyPending(ctx, client, now, job)
		if err != nil {
			return "", err
		}
		return a.Line(), nil
	}
}

// colour is how a verdict looks; its name is there without it.
func colour(v answer.Verdict) iostreams.Style {
	switch v {
	case answer.Running, answer.Done, answer.FitsNow:
		return iostreams.Green
	case answer.Waiting, answer.Starting, answer.Uncertain:
		return iostreams.Yellow
	default:
		return iostreams.Red
	}
}

// Encode writes one of our own values, which are no API objects, in the form of -o.
func Encode(io *iostreams.IOStreams, output *printer.Flags, value any) error {
	return output.Encode(io.Out, value)
}

// ExitError ends a command whose answer was printed: it holds the exit code of the answer, and is nil for success.
func ExitError(code int) error {
	if code == answer.ExitOK {
		return nil
	}
	return &failure.Error{Code: failure.Code(code)}
}

// ForbiddenError is the error for an answer without a diagnosis, because its job may not be read: it names the first right that is missing,
// and the hint what grants all that are needed to begin with. It is nil for any other answer.
func ForbiddenError(a *answer.Answer) *failure.Error {
	if a == nil || a.Primary == nil || a.Primary.Code != answer.NoPermission || a.Job.UID != "" || a.Rights == nil || len(a.Stages) > 0 {
		return nil
	}
	hint := "ask an administrator to apply this: kubectl apply -f - <<'EOF'\n" + a.Rights.Grant + "EOF"
	return failure.WithCode(failure.Code(a.Exit), "%s", a.Primary.Message).WithHint("%s", hint)
}

// CheckJobKinds returns the error for a cluster that knows no kind of job but the batch Job, and has none of those.
func CheckJobKinds(s *snapshot.Snapshot) error {
	if s.Server.Resources == nil || len(s.Jobs) > 0 {
		return nil
	}
	var missing []string
	for _, r := range kind.Readers() {
		resource := r.Resource + "." + r.Group
		switch {
		case r.Group == "batch":
		case slices.ContainsFunc(s.Server.Resources, func(served string) bool { return strings.HasPrefix(served, resource+"/") }):
			return nil
		default:
			missing = append(missing, resource)
		}
	}
	return failure.Errorf("list jobs: the cluster does not serve %s", strings.Join(missing, ", ")).
		WithHint("ask an administrator to install the Kubeflow Training Operator (v1.7 to v1.9), as `gangctl install operator` does, or try a local cluster that has it: gangctl-sandbox up")
}

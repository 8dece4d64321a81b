package await

import (
	"context"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/diagnose"
	answertext "github.com/gangctl/gangctl/pkg/diagnose/text"
	"github.com/gangctl/gangctl/pkg/gang"
)

// WhyPending returns the first line of what why-pending says of a job.
func WhyPending(client *kube.Client, io *iostreams.IOStreams) func(ctx context.Context, job *gang.Job) (string, error) {
	return func(ctx context.Context, job *gang.Job) (string, error) {
		kind := job.Reader.Words[0]
		s, err := collect.Collect(ctx, client, collect.Options{Namespace: job.Meta.Namespace, Kind: kind, Name: job.Meta.Name, Now: io.Clock.Now})
		if err != nil {
			return "", err
		}
		a, err := diagnose.Explain(ctx, s, diagnose.Query{Kind: kind, Namespace: job.Meta.Namespace, Name: job.Meta.Name}, diagnose.Options{})
		if err != nil {
			return "", err
		}
		var text strings.Builder
		if err := answertext.Write(&text, a, answertext.Options{Quiet: true}); err != nil {
			return "", err
		}
		return strings.TrimSpace(text.String()), nil
	}
}

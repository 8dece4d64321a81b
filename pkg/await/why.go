package await

import (
	"context"
	"strings"

	"github.com/gangctl/gangctl/pkg/explain"
	"github.com/gangctl/gangctl/pkg/explain/report"
	"github.com/gangctl/gangctl/pkg/iostreams"
	"github.com/gangctl/gangctl/pkg/jobs"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/snapshot/collect"
)

// WhyPending returns the first line of what why-pending says of a job.
func WhyPending(client *kube.Client, io *iostreams.IOStreams) func(ctx context.Context, job *jobs.Job) (string, error) {
	return func(ctx context.Context, job *jobs.Job) (string, error) {
		kind := job.Reader.Words[0]
		s, err := collect.Collect(ctx, client, collect.Options{Namespace: job.Meta.Namespace, Kind: kind, Name: job.Meta.Name, Lean: true, Now: io.Clock.Now})
		if err != nil {
			return "", err
		}
		a, err := explain.Explain(ctx, s, explain.Question{Kind: kind, Namespace: job.Meta.Namespace, Name: job.Meta.Name}, explain.Options{})
		if err != nil {
			return "", err
		}
		var text strings.Builder
		if err := report.Write(&text, a, report.Options{Quiet: true}); err != nil {
			return "", err
		}
		return strings.TrimSpace(text.String()), nil
	}
}

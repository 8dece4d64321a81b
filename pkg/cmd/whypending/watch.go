package whypending

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

// watch answers again whenever the first line of the answer changes, and ends when the gang runs or has ended.
func (o *Options) watch(ctx context.Context, namespace string) error {
	last := ""
	ticker := o.IO.Clock.NewTicker(o.Interval)
	defer ticker.Stop()
	for {
		s, err := o.snapshot(ctx, namespace)
		if err != nil {
			return err
		}
		a, err := o.explain(ctx, s, namespace)
		if err != nil {
			return err
		}
		if key := string(a.Verdict) + a.Headline; key != last {
			if last != "" && o.Output.IsTable() {
				fmt.Fprintln(o.IO.Out)
			}
			last = key
			if err := o.print(a); err != nil {
				return err
			}
		}
		switch a.Verdict {
		case answer.Running, answer.Done, answer.Failed:
			return quietExit(a.Exit)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C():
		}
	}
}

func age(s *snapshot.Snapshot, a *answer.Answer) string {
	return duration.HumanDuration(s.At.Sub(*a.Job.Created))
}

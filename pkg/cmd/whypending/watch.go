package whypending

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
)

// watch answers again whenever the first line of the answer changes, and ends when the gang runs or has ended. Trouble with the
// API server after the first answer is reported once, and the next look tried in time.
func (o *Options) watch(ctx context.Context, namespace string) error {
	last, trouble := "", ""
	ticker := o.IO.Clock.NewTicker(o.Interval)
	defer ticker.Stop()
	for {
		s, client, err := o.snapshot(ctx, namespace)
		switch {
		case ctx.Err() != nil:
			return o.interrupted(last)
		case err != nil && last == "":
			return err
		case err != nil:
			if text := failure.From(err).Message; text != trouble {
				trouble = text
				fmt.Fprintf(o.IO.ErrOut, "note: %s; trying again every %s\n", text, o.Interval)
			}
		default:
			if trouble != "" {
				trouble = ""
				fmt.Fprintln(o.IO.ErrOut, "note: the API server answers again")
			}
			var ended bool
			if last, ended, err = o.look(ctx, s, client, namespace, last); ended || err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return o.interrupted(last)
		case <-ticker.C():
		}
	}
}

// look answers once, and prints the answer unless it is the last one, whose gist is given. It returns the gist of this one, and
// whether there is nothing left to watch.
func (o *Options) look(ctx context.Context, s *snapshot.Snapshot, client *kube.Client, namespace, last string) (gist string, ended bool, err error) {
	a, err := o.explain(ctx, s, client, namespace)
	var missing *gang.JobNotFoundError
	switch {
	case errors.As(err, &missing) && last != "":
		return last, true, failure.Errorf("%s is gone: it was deleted while it was watched", o.Name).WithHint("see what is there: gangctl list -n %s", namespace)
	case err != nil:
		return last, true, err
	}
	gist = string(a.Verdict) + " " + withoutAges(a.Headline)
	if gist != last {
		if last != "" && o.Output.IsTable() && !o.Quiet {
			fmt.Fprintln(o.IO.Out)
		}
		if err := o.print(a); err != nil {
			return gist, true, err
		}
	}
	switch a.Verdict {
	case answer.Running, answer.Done, answer.Failed:
		return gist, true, cmdutil.ExitError(a.Exit)
	default:
		return gist, false, nil
	}
}

// ages are durations in a sentence: a line in which only they differ is no news.
var ages = regexp.MustCompile(`\b\d+[smhdy](\d+[smhd])?\b(?: cpu\b)?`)

// withoutAges leaves durations out; 500m of CPU is none.
func withoutAges(line string) string {
	return ages.ReplaceAllStringFunc(line, func(found string) string {
		if strings.HasSuffix(found, " cpu") {
			return found
		}
		return "…"
	})
}

// interrupted is how Ctrl-C ends a watch: nothing that was watched is touched.
func (o *Options) interrupted(last string) error {
	if last == "" {
		return failure.WithCode(failure.CodeInterrupted, "interrupted before there was an answer")
	}
	return failure.WithCode(failure.CodeInterrupted, "interrupted; %s goes on waiting", o.Name)
}

func age(s *snapshot.Snapshot, a *answer.Answer) string {
	return phrase.Age(s.At.Sub(*a.Job.Created))
}

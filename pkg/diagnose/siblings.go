package diagnose

import (
	"context"
	"fmt"

	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
	"github.com/gangctl/gangctl/pkg/gang"
)

// maxCompared is how many other gangs of a job are diagnosed for an answer about one: each takes as long as the answer itself.
const maxCompared = 4

// siblings is how the other gangs of a job are, for an answer about one of them.
func siblings(ctx context.Context, w *view.View, job *gang.Job, r *stage.Diagnosis, o Options) []string {
	if r.Gang.Siblings == 0 {
		return nil
	}
	whole := w.Gang(job)
	running, all := whole.Replicas()
	var alike, different []string
	next := "" // of those that may wait for something else
	for _, one := range whole.Each {
		switch {
		case *one.Replica == *r.Gang.Replica || one.Up():
		case len(alike)+len(different) == maxCompared:
		case code(stages.Evaluate(ctx, w, one.Job, o.stages())) == code(r):
			alike = append(alike, one.PortionTitle())
		default:
			if different = append(different, one.PortionTitle()); next == "" {
				next = one.Portion()
			}
		}
	}
	note := fmt.Sprintf("%s has %s, each a gang of its own: %d %s, and this is about %s", job.Meta.Name, phrase.Count(all, whole.PortionNoun()), running,
		phrase.Verb(int(running), "runs", "run"), r.Gang.PortionTitle())
	if len(alike) > 0 {
		note += fmt.Sprintf("; %s %s for the same reason", phrase.And(alike), phrase.Verb(len(alike), "waits", "wait"))
	}
	if len(different) > 0 {
		note += fmt.Sprintf("; %s %s for another", phrase.And(different), phrase.Verb(len(different), "waits", "wait"))
	}
	if n := all - running - 1 - int32(len(alike)+len(different)); n > 0 {
		note += fmt.Sprintf("; %d more %s", n, phrase.Verb(int(n), "waits", "wait"))
	}
	if next == "" {
		return []string{note}
	}
	return []string{note, "about another: " + shell.Join("gangctl", "-n", job.Meta.Namespace, "why-pending", job.Reader.Argument(job.Meta.Name), "--replica", next)}
}

// code is that of the finding that counts; empty without one.
func code(r *stage.Diagnosis) answer.Code {
	if r.Primary == nil {
		return ""
	}
	return r.Primary.Code
}

package whypending

import (
	"context"
	"fmt"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/text"
)

// print shows one answer. One that has no more than that the job may not be looked for is an error, for people; programs get
// it in the form of -o, and the error besides.
func (o *Options) print(a *answer.Answer) error {
	refused := cmdutil.ForbiddenError(a)
	if refused == nil || !o.Output.IsTable() {
		if err := cmdutil.PrintAnswer(o.IO, &o.Output, a, text.Options{Quiet: o.Quiet, Verbose: o.Verbose, Node: o.Node}); err != nil {
			return err
		}
	}
	if refused != nil {
		return refused
	}
	return nil
}

// list prints every gang that waits, one line each. The exit code is that of the worst.
func (o *Options) list(ctx context.Context, s *snapshot.Snapshot, client *kube.Client, namespace string) error {
	if err := cmdutil.CheckJobKinds(s); err != nil {
		return err // that nothing can wait is another thing than that nothing waits
	}
	nodes := diagnose.EveryNode
	if o.Output.IsTable() {
		nodes = diagnose.NoNodes
	}
	all := diagnose.NewExplainer(s).Pending(ctx, namespace, diagnose.Options{Nodes: nodes})
	worst := answer.ExitOK
	for i, a := range all {
		all[i] = o.elsePublished(ctx, client, a)
		worst = max(worst, all[i].Exit)
	}
	// Jobs that may not be listed must not pass for jobs that are not there.
	unlisted := cmdutil.ForbiddenError(diagnose.Unlisted(s, diagnose.Query{Namespace: namespace}))
	if err := o.rows(s, all, namespace, unlisted != nil); err != nil {
		return err
	}
	if len(all) == 0 {
		cmdutil.NoteMissingNamespace(ctx, o.IO, client, namespace)
	}
	if unlisted != nil {
		unlisted.Code = max(unlisted.Code, failure.Code(worst))
		return unlisted
	}
	return cmdutil.ExitError(worst)
}

func (o *Options) rows(s *snapshot.Snapshot, all []*answer.Answer, namespace string, incomplete bool) error {
	switch {
	case !o.Output.IsTable():
		if all == nil {
			all = []*answer.Answer{}
		}
		return cmdutil.Encode(o.IO, &o.Output, map[string]any{"apiVersion": answer.APIVersion, "kind": "List", "items": all})
	case len(all) == 0 && incomplete:
		return nil
	case len(all) == 0:
		where := "in namespace " + namespace
		if namespace == "" {
			where = "in any namespace"
		}
		fmt.Fprintf(o.IO.ErrOut, "no gang waits %s\n", where)
		return nil
	}
	rows := make([][]string, 0, len(all))
	for _, a := range all {
		code, since := "", "-"
		switch {
		case a.Primary != nil:
			code = string(a.Primary.Code)
		case len(a.AlsoBlocking) > 0: // what keeps members that it does without
			code = string(a.AlsoBlocking[0].Code)
		}
		if a.Job.Created != nil {
			since = age(s, a)
		}
		rows = append(rows, []string{a.Job.Namespace, a.Job.Name, string(a.Verdict), since, code, strings.TrimPrefix(a.Headline, a.Job.Name+": ")})
	}
	columns := []printer.Column{{Name: "Namespace"}, {Name: "Name"}, {Name: "Verdict", Spare: 1}, {Name: "Age", Spare: 2}, {Name: "Code"}, {Name: "Reason"}}
	if namespace != "" { // which the user knows
		columns[0].Spare = 3
	}
	return printer.PrintTable(o.IO.Out, o.Output, o.IO.Width(), columns, rows)
}

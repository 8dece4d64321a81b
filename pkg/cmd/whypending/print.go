package whypending

import (
	"context"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/explain"
	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/report"
	"github.com/gangctl/gangctl/pkg/iostreams"
	"github.com/gangctl/gangctl/pkg/printer"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

// style says how a verdict looks; the word is there without it.
func (o *Options) style(v answer.Verdict, text string) string {
	switch v {
	case answer.Running, answer.Done, answer.FitsNow:
		return o.IO.OutStyled(iostreams.Green, text)
	case answer.Waiting, answer.Starting, answer.Uncertain:
		return o.IO.OutStyled(iostreams.Yellow, text)
	}
	return o.IO.OutStyled(iostreams.Red, text)
}

func (o *Options) print(a *answer.Answer) error {
	if !o.Output.IsTable() {
		return o.encode(a)
	}
	return report.Write(o.IO.Out, a, report.Options{Quiet: o.Quiet, Verbose: o.Verbose, Node: o.Node, Style: o.style})
}

// encode writes our own answers, which are no API objects.
func (o *Options) encode(value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if o.Output.Output == printer.YAML {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
	} else {
		text = append(text, '\n')
	}
	_, err = o.IO.Out.Write(text)
	return err
}

// list prints every gang that waits, one line each. The exit code is that of the worst.
func (o *Options) list(ctx context.Context, s *snapshot.Snapshot, namespace string) error {
	all := explain.Pending(ctx, s, namespace, explain.Options{})
	worst := answer.ExitOK
	for _, a := range all {
		worst = max(worst, a.Exit)
	}
	if !o.Output.IsTable() {
		if all == nil {
			all = []*answer.Answer{}
		}
		if err := o.encode(map[string]any{"apiVersion": answer.APIVersion, "kind": "List", "items": all}); err != nil {
			return err
		}
		return quietExit(worst)
	}
	if len(all) == 0 {
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
		if a.Primary != nil {
			code = string(a.Primary.Code)
		}
		if a.Job.Created != nil {
			since = age(s, a)
		}
		rows = append(rows, []string{a.Job.Namespace, a.Job.Name, string(a.Verdict), since, code, a.Headline})
	}
	columns := []printer.Column{{Name: "Namespace"}, {Name: "Name"}, {Name: "Verdict"}, {Name: "Age"}, {Name: "Code"}, {Name: "Reason"}}
	if err := printer.PrintTable(o.IO.Out, o.Output, o.IO.Width(), columns, rows); err != nil {
		return err
	}
	return quietExit(worst)
}

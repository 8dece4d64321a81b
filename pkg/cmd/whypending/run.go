package whypending

import (
	"context"
	"fmt"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func (o *Options) run(ctx context.Context) error {
	namespace := ""
	if !o.AllNamespaces {
		var err error
		if namespace, err = o.Namespace(); err != nil {
			return err
		}
	}
	if o.Watch {
		return o.watch(ctx, namespace)
	}
	if a, err := o.fromScheduler(ctx, namespace); err != nil {
		return err
	} else if a != nil {
		if err := o.print(a); err != nil {
			return err
		}
		return cmdutil.ExitError(a.Exit)
	}
	s, err := o.snapshot(ctx, namespace)
	if err != nil {
		return err
	}
	if o.Save != "" {
		if err := s.Save(o.Save); err != nil {
			return failure.Errorf("%w", err).WithHint("name a file in a directory that you may write to, such as --save cluster.yaml.gz")
		}
		fmt.Fprintf(o.IO.ErrOut, "saved what was seen to %s\n", o.Save)
	}
	if o.Name == "" {
		return o.list(ctx, s, namespace)
	}
	a, err := o.explain(ctx, s, namespace)
	if err != nil {
		return err
	}
	if o.Apply.given() {
		return o.apply(ctx, a)
	}
	if err := o.print(a); err != nil {
		return err
	}
	return cmdutil.ExitError(a.Exit)
}

// snapshot reads the file, or the cluster.
func (o *Options) snapshot(ctx context.Context, namespace string) (*snapshot.Snapshot, error) {
	count, done := cmdutil.Collecting(o.IO)
	defer done()
	s, _, err := collect.Read(ctx, o.From, o.IO.In, o.Client, collect.Options{
		Namespace: namespace, Kind: o.Kind, Name: o.Name, Probe: !o.NoProbe && o.Name != "", Now: o.IO.Clock.Now, Count: count,
	})
	return s, err
}

func (o *Options) explain(ctx context.Context, s *snapshot.Snapshot, namespace string) (*answer.Answer, error) {
	q := diagnose.Query{Kind: o.Kind, Namespace: namespace, Name: o.Name, Portion: o.Replica}
	a, err := diagnose.Explain(ctx, s, q, diagnose.Options{})
	if err != nil {
		return nil, cmdutil.ExplainName(err, o.From)
	}
	if o.Node != "" && a.Nodes != nil && !knowsNode(a, o.Node) {
		return nil, failure.Errorf("no node %q", o.Node).WithHint("see the nodes: gangctl top node")
	}
	return a, nil
}

func knowsNode(a *answer.Answer, node string) bool {
	for _, row := range a.Nodes.Rows {
		if row.Node == node {
			return true
		}
	}
	return false
}

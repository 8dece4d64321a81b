package whypending

import (
	"context"
	"fmt"
	"os"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// free reports a file that is there already, before anything is read for it. What is no file, such as a pipe, is written to.
func (o *Options) free() error {
	if o.Save == "" || o.Overwrite {
		return nil
	}
	if there, err := os.Stat(o.Save); err != nil || !there.Mode().IsRegular() {
		return nil // what keeps it from being written is reported then
	}
	return failure.Errorf("save snapshot: %s is there already", o.Save).WithHint("choose another name, or add --overwrite")
}

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
	if err := o.free(); err != nil {
		return err
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
	s, _, err := cmdutil.ReadSnapshot(ctx, o.IO, o.From, o.Client, collect.Options{Namespace: namespace, Kind: o.Kind, Name: o.Name, Probe: !o.NoProbe && o.Name != ""})
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

package whypending

import (
	"context"
	"fmt"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// saving is what messages call it that --save does.
const saving = "save snapshot"

// save saves what was seen.
func (o *Options) save(s *snapshot.Snapshot) error {
	if o.Save == "" {
		return nil
	}
	save := s.SaveNew
	if o.Overwrite {
		save = s.Save
	}
	if err := cmdutil.WrittenFile(saving, save(o.Save)); err != nil {
		return err
	}
	fmt.Fprintf(o.IO.ErrOut, "saved what was seen to %s\n", o.Save)
	return nil
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
	if err := cmdutil.FreeFile(saving, o.Save, o.Overwrite); err != nil {
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
	s, client, err := o.snapshot(ctx, namespace)
	if err != nil {
		return err
	}
	if err := o.save(s); err != nil {
		return err
	}
	if o.Name == "" {
		return o.list(ctx, s, client, namespace)
	}
	a, err := o.explain(ctx, s, client, namespace)
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

// snapshot reads the file, or the cluster. The client is nil for a file.
func (o *Options) snapshot(ctx context.Context, namespace string) (*snapshot.Snapshot, *kube.Client, error) {
	return cmdutil.ReadSnapshot(ctx, o.IO, o.From, o.Client, collect.Options{Namespace: namespace, Kind: o.Kind, Name: o.Name, Probe: !o.NoProbe && o.Name != ""})
}

func (o *Options) explain(ctx context.Context, s *snapshot.Snapshot, client *kube.Client, namespace string) (*answer.Answer, error) {
	q := diagnose.Query{Kind: o.Kind, Namespace: namespace, Name: o.Name, Portion: o.Replica}
	a, err := diagnose.Explain(ctx, s, q, diagnose.Options{})
	if err != nil {
		return nil, cmdutil.ExplainName(err, o.From)
	}
	if o.Node != "" && a.Nodes != nil && !knowsNode(a, o.Node) {
		return nil, failure.Errorf("no node %q", o.Node).WithHint("see the nodes: gangctl top node")
	}
	return o.elsePublished(ctx, client, a), nil
}

func knowsNode(a *answer.Answer, node string) bool {
	for _, row := range a.Nodes.Rows {
		if row.Node == node {
			return true
		}
	}
	return false
}

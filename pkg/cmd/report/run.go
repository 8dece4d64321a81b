package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/history"
	"github.com/gangctl/gangctl/pkg/diagnose/history/page"
)

func (o *Options) run(ctx context.Context) error {
	if err := o.free(); err != nil {
		return err
	}
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	s, err := o.snapshot(ctx, namespace)
	if err != nil {
		return err
	}
	r, err := o.report(ctx, s, namespace)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := encode(&out, r, o.Output.Output); err != nil {
		return err
	}
	if o.File == "" {
		_, err := out.WriteTo(o.IO.Out)
		return err
	}
	if err := o.write(out.Bytes()); err != nil {
		return err
	}
	fmt.Fprintf(o.IO.ErrOut, "wrote the report on %s %s/%s to %s\n", r.Job.Kind, r.Job.Namespace, r.Job.Name, o.File)
	return nil
}

func encode(out *bytes.Buffer, r *history.Report, format string) error {
	if format == html {
		return page.Write(out, r)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (o *Options) snapshot(ctx context.Context, namespace string) (*snapshot.Snapshot, error) {
	s, _, err := collect.Read(ctx, o.From, o.IO.In, o.Client, collect.Options{Namespace: namespace, Kind: o.Kind, Name: o.Name, Now: o.IO.Clock.Now})
	return s, err
}

// report asks why the job waits, and puts it together with the rest.
func (o *Options) report(ctx context.Context, s *snapshot.Snapshot, namespace string) (*history.Report, error) {
	q := diagnose.Query{Kind: o.Kind, Namespace: namespace, Name: o.Name}
	now, err := diagnose.Explain(ctx, s, q, diagnose.Options{Clock: o.IO.Clock.Now})
	if err != nil {
		return nil, o.notFound(s, err)
	}
	if refused := cmdutil.ForbiddenError(now); refused != nil {
		refused.Code = failure.CodeError
		return nil, refused
	}
	w := view.New(s)
	subject, err := w.Find(q)
	if err != nil {
		return nil, o.notFound(s, err)
	}
	return history.Build(w, subject, now), nil
}

// notFound adds what was probably meant. Where no kind of job is known there cannot be one.
func (o *Options) notFound(s *snapshot.Snapshot, err error) error {
	if unknown := cmdutil.CheckJobKinds(s); unknown != nil {
		return unknown
	}
	var missing *view.NotFoundError
	var several *view.AmbiguousError
	switch {
	case errors.As(err, &missing) && len(missing.Near) > 0:
		return failure.Errorf("%w", err).WithHint("did you mean %s?", strings.Join(missing.Near, " or "))
	case errors.As(err, &missing) && len(missing.Elsewhere) > 0:
		return failure.Errorf("%w", err).WithHint("there is one in namespace %s: add -n %s", strings.Join(missing.Elsewhere, ", "), missing.Elsewhere[0])
	case errors.As(err, &missing):
		return failure.Errorf("%w", err).WithHint("see the jobs of every namespace: gangctl list -A")
	case errors.As(err, &several):
		return failure.Errorf("%w", err).WithHint("say which: gangctl report %s", several.Choices[0])
	}
	return err
}

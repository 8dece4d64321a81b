package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/localfile"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/history"
	"github.com/gangctl/gangctl/pkg/diagnose/history/page"
	"github.com/gangctl/gangctl/pkg/submit/redact"
)

// writing is what messages call it that --file does.
const writing = "write report"

func (o *Options) run(ctx context.Context) error {
	if err := cmdutil.FreeFile(writing, o.File, o.Overwrite); err != nil {
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
	withoutCredentials(s)
	r, err := o.report(ctx, s, namespace)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := encode(&out, r, o.Output.Output); err != nil {
		return err
	}
	if o.File == "" {
		_, err := out.WriteTo(o.IO.VerbatimOut()) // escaped already
		return err
	}
	err = localfile.Write(o.File, o.Overwrite, func(file io.Writer) error {
		_, err := file.Write(out.Bytes())
		return err
	})
	if err := cmdutil.WrittenFile(writing, err); err != nil {
		return err
	}
	fmt.Fprintf(o.IO.ErrOut, "wrote the report on %s %s/%s to %s\n", r.Job.Kind, r.Job.Namespace, r.Job.Name, o.File)
	return nil
}

// encode writes the report without control characters: a file is looked at in a terminal, too, and what turns the direction of text
// misleads in a browser as well. In JSON their notation means the same.
func encode(out *bytes.Buffer, r *history.Report, format string) error {
	var text bytes.Buffer
	if format == html {
		if err := page.Write(&text, r); err != nil {
			return err
		}
	} else {
		e := json.NewEncoder(&text)
		e.SetIndent("", "  ")
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	_, err := out.WriteString(iostreams.Escape(text.String()))
	return err
}

func (o *Options) snapshot(ctx context.Context, namespace string) (*snapshot.Snapshot, error) {
	s, _, err := cmdutil.ReadSnapshot(ctx, o.IO, o.From, o.Client, collect.Options{Namespace: namespace, Kind: o.Kind, Name: o.Name})
	return s, err
}

// withoutCredentials takes out of a snapshot what programs reported on jobs and may have been given: a report is passed on to people who
// may not read the job. A saved snapshot is without it already.
func withoutCredentials(s *snapshot.Snapshot) {
	for _, e := range s.Events {
		e.Message = redact.Text(e.Message)
	}
	for _, p := range s.Pods {
		p.Status.Message = redact.Text(p.Status.Message)
		for i := range p.Status.Conditions {
			c := &p.Status.Conditions[i]
			c.Message = redact.Text(c.Message)
		}
		for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses} {
			for i := range list {
				stateWithoutCredentials(&list[i].State)
				stateWithoutCredentials(&list[i].LastTerminationState)
			}
		}
	}
	for _, j := range s.Jobs {
		for i := range j.Status.Conditions {
			j.Status.Conditions[i].Message = redact.Text(j.Status.Conditions[i].Message)
		}
	}
	for _, objects := range s.Custom {
		for _, o := range objects {
			redact.Object(o.Object)
		}
	}
}

func stateWithoutCredentials(state *corev1.ContainerState) {
	if state.Waiting != nil {
		state.Waiting.Message = redact.Text(state.Waiting.Message)
	}
	if state.Terminated != nil {
		state.Terminated.Message = redact.Text(state.Terminated.Message)
	}
}

// report explains why the job waits, and puts it together with the rest.
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
	job, err := w.Find(q)
	if err != nil {
		return nil, o.notFound(s, err)
	}
	return history.Build(w, job, now), nil
}

// notFound adds what was probably meant. Where no kind of job is known there cannot be one.
func (o *Options) notFound(s *snapshot.Snapshot, err error) error {
	if unknown := cmdutil.CheckJobKinds(s); unknown != nil {
		return unknown
	}
	return cmdutil.ExplainName(err, o.From)
}

package top

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	clusterview "github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

func (o *Options) run(ctx context.Context) error {
	namespace := ""
	if o.What == Job && !o.AllNamespaces {
		var err error
		if namespace, err = o.Namespace(); err != nil {
			return err
		}
	}
	if o.Watch {
		return o.watch(ctx, namespace)
	}
	s, client, err := cmdutil.ReadSnapshot(ctx, o.IO, o.From, o.Client, o.reads(namespace))
	if err != nil {
		return err
	}
	v, err := o.view(ctx, s, namespace, o.gauge(client, namespace))
	if err != nil {
		return err
	}
	if v.empty != "" && o.What == Job {
		cmdutil.NoteMissingNamespace(ctx, o.IO, client, namespace)
	}
	for _, note := range v.notes {
		fmt.Fprintln(o.IO.ErrOut, note)
	}
	if !o.Output.IsTable() {
		if err := cmdutil.Encode(o.IO, &o.Output, v.value()); err != nil {
			return err
		}
		return v.refused
	}
	if v.empty != "" {
		fmt.Fprintln(o.IO.ErrOut, v.empty)
		return nil
	}
	if err := o.print(v.frame(o.layout(v, nil))); err != nil {
		return err
	}
	return v.refused
}

func (o *Options) print(lines []string) error {
	_, err := fmt.Fprintln(o.IO.Out, strings.Join(lines, "\n"))
	return err
}

// view is one look at the cluster; of the reports the requested one is set.
type view struct {
	// at is when the cluster was like that.
	at      time.Time
	nodes   *usage.Nodes
	domains *usage.Domains
	jobs    *usage.Jobs
	queues  *usage.Queues
	// refused is the error for jobs that are not shown, as their kind may not be listed.
	refused error
	// notes are what else could not be had, or is not in the numbers.
	notes []string
	// empty is the text where there is nothing to show.
	empty string
	// lines are its frame at a width, which a watch shows every second.
	lines []string
	width int
}

func (v *view) value() any {
	switch {
	case v.nodes != nil:
		return v.nodes
	case v.domains != nil:
		return v.domains
	case v.jobs != nil:
		return v.jobs
	}
	return v.queues
}

// frame is the report as lines, which are drawn once for each width.
func (v *view) frame(l layout) []string {
	if v.lines == nil || v.width != l.width {
		v.lines, v.width = v.draw(l), l.width
	}
	return v.lines
}

func (v *view) draw(l layout) []string {
	switch {
	case v.nodes != nil:
		return nodeFrame(*v.nodes, l)
	case v.domains != nil:
		return domainFrame(*v.domains, l)
	case v.jobs != nil:
		return jobFrame(*v.jobs, l)
	}
	return queueFrame(*v.queues, l)
}

func (o *Options) layout(v *view, before letters) layout {
	l := layout{width: o.IO.Width(), wide: o.Output.Output == printer.Wide, headers: !o.Output.NoHeaders, all: o.AllNamespaces}
	if l.wide && v.nodes != nil {
		l.letters = before.assign(*v.nodes)
	}
	return l
}

// reads returns the options of the collection.
func (o *Options) reads(namespace string) collect.Options {
	return collect.Options{Namespace: namespace, Now: o.IO.Clock.Now}
}

// view reports on a snapshot. What may not be seen is an error: half a sum is worse than none. Pods of jobs that are not seen are in no job, and in the sum all the same.
func (o *Options) view(ctx context.Context, s *snapshot.Snapshot, namespace string, g *gauge) (*view, error) {
	if err := o.unseen(s, namespace); err != nil {
		return nil, err
	}
	w := clusterview.New(s)
	v := &view{at: s.At, notes: unclaimed(s)}
	switch o.What {
	case Node:
		if o.By != "" {
			if err := unlabelled(w, o.By); err != nil {
				return nil, err
			}
			r := usage.OfDomains(w, o.By)
			if v.domains = &r; len(r.Domains) == 0 {
				v.empty = "no nodes"
			}
			return v, nil
		}
		r := usage.OfNodes(w)
		g.read(ctx, s.At)
		r.Measure(g.used)
		if v.nodes = &r; len(r.Nodes) == 0 {
			v.empty = "no nodes"
		}
	case Job:
		r := usage.OfJobs(w)
		if namespace != "" {
			r = r.In(namespace)
		}
		o.explained(ctx, g.client, w, namespace, &r)
		g.read(ctx, s.At)
		r.Measure(w, g.used)
		if v.refused = unlisted(s, namespace); v.refused != nil && (o.Watch || len(r.Jobs) == 0) {
			return nil, v.refused
		}
		if v.jobs = &r; len(r.Jobs) == 0 {
			if v.empty = "no jobs hold or wait for anything in namespace " + namespace; namespace == "" {
				v.empty = "no jobs hold or wait for anything in any namespace"
			}
		}
	case Queue:
		r := usage.OfQueues(w)
		if v.queues = &r; len(r.Queues) == 0 {
			v.empty = "no queues, and no jobs outside of queues"
		}
	}
	if note := g.note(); note != "" {
		v.notes = append(v.notes, note)
	}
	return v, nil
}

// gauge measures what the view shows; a saved file, which has no client, has nothing to measure.
func (o *Options) gauge(client *kube.Client, namespace string) *gauge {
	switch o.What {
	case Node:
		return &gauge{client: client, what: "nodes"}
	case Job:
		return &gauge{client: client, what: "pods", namespace: namespace}
	case Queue:
	}
	return &gauge{}
}

// explained fills in why jobs wait.
func (o *Options) explained(ctx context.Context, client *kube.Client, w *clusterview.View, namespace string, r *usage.Jobs) {
	answers := map[string]*answer.Answer{}
	for _, a := range diagnose.ExplainerOf(w).Pending(ctx, namespace, diagnose.Options{Nodes: diagnose.NoNodes}) {
		if client != nil {
			a = cmdutil.ElsePublished(ctx, client, o.IO.Clock.Now(), a)
		}
		answers[a.Job.Kind+"/"+a.Job.Namespace+"/"+a.Job.Name] = a
	}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if a := answers[j.Kind+"/"+j.Namespace+"/"+j.Name]; a != nil {
			j.Why = a.Headline
			if a.Primary != nil {
				j.Code = string(a.Primary.Code)
			}
		}
	}
}

// Package events is `gangctl events`.
package events

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	jobevents "github.com/gangctl/gangctl/pkg/cluster/events"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/redact"
)

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	cmdutil.JobOptions

	// Types are Normal and Warning; empty for both.
	Types  []string
	Output printer.Flags
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "events NAME",
		Short: "Show what happened to a job, its gang and its pods",
		Long: `Show the events of a job, of the objects that declare its gang, and of its pods, those that are gone included, in the order in
which they happened; with pod/NAME, or the name of a member's pod, only those of that pod.
The API server keeps events for an hour, unless it is configured otherwise.`,
		Example: `  # what happened, the latest last
  gangctl events llama

  # only what went wrong
  gangctl events llama --types Warning`,
		SuggestFor: []string{"event", "history"},
	}
	cmd.Flags().StringSliceVar(&o.Types, "types", nil, "Only events of these types: Normal, Warning")
	flagvalue.Check(cmd.Flags(), o.checkTypes, "types")
	cmd.Flags().BoolVar(&o.Output.NoHeaders, "no-headers", false, "Print no column headers")
	o.Output.AddFlags(cmd, printer.WithTemplates(printer.JSON, printer.YAML, printer.Wide)...)
	o.Bind(cmd, f, o.validate, func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, o)
		}
		return o.run(ctx)
	})
	cmd.ValidArgsFunction = cmdutil.CompleteMembers(f)
	return cmd
}

func (o *Options) validate(cmd *cobra.Command) error {
	if err := o.checkTypes(); err != nil {
		return err
	}
	if cmd.Flags().Changed("no-headers") && !o.Output.IsTable() {
		return failure.Usagef("--no-headers has no effect with -o %s", o.Output.Output).WithHint("leave it out")
	}
	return o.Output.Validate()
}

func (o *Options) checkTypes() error {
	for _, t := range o.Types {
		if t != corev1.EventTypeNormal && t != corev1.EventTypeWarning {
			return failure.Usagef("--types %q: must be Normal or Warning", t)
		}
	}
	return nil
}

func (o *Options) run(ctx context.Context) error {
	client, namespace, err := cmdutil.Connect(o.Client, o.Namespace)
	if err != nil {
		return err
	}
	meant, err := cmdutil.ResolveTarget(ctx, client, namespace, o.Name)
	if err != nil {
		return err
	}
	all, err := list(ctx, client, namespace)
	if err != nil {
		return err
	}
	of := pick(all, meant.Job, meant.Pods)
	if meant.Member != nil {
		of = slices.DeleteFunc(of, func(e corev1.Event) bool { return !regards(&e, meant.Member.Pod) })
	}
	found := slices.DeleteFunc(slices.Clone(of), func(e corev1.Event) bool { return len(o.Types) > 0 && !slices.Contains(o.Types, e.Type) })
	if !o.Output.IsTable() {
		return o.printObjects(found)
	}
	if len(found) == 0 && len(of) > 0 {
		fmt.Fprintf(o.IO.ErrOut, "no events of type %s of %s in namespace %s; of other types: %d\n", strings.Join(o.Types, " or "), o.Name, namespace, len(of))
		return nil
	}
	if len(found) == 0 {
		fmt.Fprintf(o.IO.ErrOut, "no events of %s in namespace %s: the API server keeps them for a time only\n", o.Name, namespace)
		return nil
	}
	return o.printTable(found)
}

// regards reports whether an event is about a pod. One of that name before it was another.
func regards(e *corev1.Event, pod *corev1.Pod) bool {
	about := e.InvolvedObject
	return about.Kind == "Pod" && about.Name == pod.Name && (about.UID == "" || about.UID == pod.UID)
}

// pick are the events of the job, without what reads like a credential; the latest is the last.
func pick(all []*corev1.Event, job *gang.Job, pods []*corev1.Pod) []corev1.Event {
	var found []corev1.Event
	for _, e := range jobevents.Pick(all, jobevents.NewFamily(job, pods)) {
		shown := *e
		shown.Message = redact.Text(e.Message)
		found = append(found, shown)
	}
	return found
}

// list returns the events of a namespace, from the cache of the API server.
func list(ctx context.Context, client *kube.Client, namespace string) ([]*corev1.Event, error) {
	pages, err := paging.All(ctx, metav1.ListOptions{ResourceVersion: "0"}, client.Typed.CoreV1().Events(namespace).List)
	if err != nil {
		return nil, failure.Op{Verb: "list", Resource: corev1.SchemeGroupVersion.WithResource("events"), Kind: "event", Namespace: namespace}.Wrap(err)
	}
	var events []*corev1.Event
	for _, page := range pages {
		for i := range page.Items {
			events = append(events, &page.Items[i])
		}
	}
	return events, nil
}

// Of returns the events of a job, its gang and its pods, those that are gone included; the latest is the last.
func Of(ctx context.Context, client *kube.Client, job *gang.Job, pods []*corev1.Pod) ([]corev1.Event, error) {
	all, err := list(ctx, client, job.Meta.Namespace)
	if err != nil {
		return nil, err
	}
	return pick(all, job, pods), nil
}

// Print prints events as the table of `gangctl events`.
func Print(io *iostreams.IOStreams, events []corev1.Event) error {
	return (&Options{JobOptions: cmdutil.JobOptions{IO: io}}).printTable(events)
}

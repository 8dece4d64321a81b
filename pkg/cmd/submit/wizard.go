package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cli/prompt"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

// wizard prompts for what the command line lacks.
type wizard struct {
	prompt.Prompter
	o   *Options
	cmd *cobra.Command
	// argv is the command line so far, without the program's name.
	argv []string
	// dash is true if the command of the job was typed.
	dash bool
	// capacity returns what would start now, for each size of a worker, and the queues; empty if that is not known.
	capacity func(context.Context) (string, []string)
}

// needsWizard reports whether there is a terminal to prompt on, and something that only the user knows: the image, which has no default.
func (o *Options) needsWizard(cmd *cobra.Command, p prompt.Prompter) bool {
	if !p.Available() || o.DryRun != dryRunNone || cmd.Flags().Changed("filename") || o.Image != "" {
		return false
	}
	full, err := o.withTemplate(cmd)
	if err != nil {
		return false // which is reported when the template is used
	}
	for _, r := range full.Roles {
		if r.Image == "" && (r.Replicas > 0 || r.count == "") {
			return true
		}
	}
	return false
}

// withTemplate is a copy of the options with what was typed and its template.
func (o *Options) withTemplate(cmd *cobra.Command) (*Options, error) {
	full := *o
	full.changed, full.Roles = cmd.Flags().Changed, nil
	for _, r := range o.Roles {
		own := *r
		full.Roles = append(full.Roles, &own)
	}
	return &full, full.applyTemplate()
}

// promptAll prompts for everything that was not typed, in the order in which users think of it, and sets the flags by the answers.
// args are the positional arguments; what it returns takes their place.
func (w *wizard) promptAll(ctx context.Context, args []string) ([]string, error) {
	named := len(args) > 0 && w.cmd.ArgsLenAtDash() != 0 || w.cmd.Flags().Changed("name")
	if !named {
		if err := w.flag("name", "Name of the job:", w.o.kind.name+"-"+w.o.Suffix(), ""); err != nil {
			return nil, err
		}
	}
	if err := w.template(); err != nil {
		return nil, err
	}
	full, err := w.o.withTemplate(w.cmd)
	if err != nil {
		return nil, err
	}
	text, queues := w.capacity(ctx)
	gpus, image := full.All.GPUs, full.Image
	for _, r := range full.shown() {
		if r.count != "" && r.high > 1 && (r.count == "workers" || r.count == "ps") {
			if err := w.flag(r.count, r.usage+":", fmt.Sprint(r.Replicas), fmt.Sprint(r.Replicas)); err != nil {
				return nil, err
			}
		}
		if r.trains && r.GPUs != unset {
			gpus = r.GPUs
		}
		if r.trains || image == "" {
			image = cmp.Or(r.Image, image)
		}
	}
	if text != "" {
		fmt.Fprintf(w.o.IO.ErrOut, "Would start now: %s\n", text)
	}
	if err := w.flag("gpus", "GPUs of each worker:", fmt.Sprint(gpus), fmt.Sprint(gpus)); err != nil {
		return nil, err
	}
	if w.cmd.Flags().Lookup("queue") != nil && !w.cmd.Flags().Changed("queue") && len(queues) > 0 {
		queue, err := w.Choose("Queue:", append([]string{none}, queues...))
		if err != nil {
			return nil, err
		}
		if queue != none {
			if err := w.set("queue", queue); err != nil {
				return nil, err
			}
		}
	}
	if err := w.flag("image", "Container image:", image, image); err != nil {
		return nil, err
	}
	if w.dash {
		return args, nil
	}
	return args, w.command()
}

// none is the choice where nothing has to be chosen.
const none = "(none)"

// template prompts for the job to start from, unless that was typed.
func (w *wizard) template() error {
	if flag := w.cmd.Flags().Lookup("template"); flag == nil || flag.Changed {
		return nil
	}
	all, err := templatesIn(w.o.ConfigPath)
	if err != nil {
		return err
	}
	names := []string{none}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].kind() == w.o.kind.reader.Kind {
			names = append(names, name)
		}
	}
	if len(names) == 1 {
		return nil
	}
	name, err := w.Choose("Start from a template:", names)
	if err != nil || name == none {
		return err
	}
	return w.set("template", name)
}

// flag prompts for the value of a flag, unless it was typed. holds is what counts without the flag: it is not set for that.
func (w *wizard) flag(name, message, fallback, holds string) error {
	flag := w.cmd.Flags().Lookup(name)
	if flag.Changed {
		return nil
	}
	was := flag.Value.String()
	answer, err := w.InputValid(message, fallback, func(text string) error {
		text = strings.TrimSpace(text)
		if text == "" {
			return fmt.Errorf("it needs an answer")
		}
		if name == "name" {
			if problem, _ := nameProblem(w.o.kind.reader, text, nil); problem != "" {
				return errors.New(problem)
			}
		}
		return flag.Value.Set(text)
	})
	if err != nil {
		return err
	}
	if answer = strings.TrimSpace(answer); answer == holds {
		return flag.Value.Set(was) // the check has set another
	}
	return w.set(name, answer)
}

// set sets a flag as if it had been typed.
func (w *wizard) set(name, value string) error {
	if err := w.cmd.Flags().Set(name, value); err != nil {
		return failure.Usagef("--%s: %w", name, err)
	}
	arg := "--" + name + "=" + value
	for i, before := range w.argv {
		if before == "--" {
			w.argv = append(w.argv[:i:i], append([]string{arg}, w.argv[i:]...)...)
			return nil
		}
	}
	w.argv = append(w.argv, arg)
	return nil
}

// command prompts for the command of the members, which is split as a shell splits it, and no further.
func (w *wizard) command() error {
	line, err := w.InputValid("Command (empty: the image's own):", "", func(text string) error {
		_, err := shell.Split(text)
		return err
	})
	if err != nil {
		return err
	}
	command, err := shell.Split(line)
	if err != nil {
		return err
	}
	w.o.Command = command
	if len(command) > 0 {
		w.argv = append(append(w.argv, "--"), command...)
	}
	return nil
}

// line is the command line that does the same.
func (w *wizard) line() string { return shell.Join(append([]string{"gangctl"}, w.argv...)...) }

// What can be done with the job.
const (
	doSubmit = "submit it"
	doSave   = "save it to a file"
	doStop   = "stop"
)

// review shows the objects, as YAML, and prompts for what to do with them. It returns whether to submit them.
func (w *wizard) review(text string) (bool, error) {
	errOut := w.o.IO.ErrOut
	fmt.Fprintf(errOut, "\n%s\nThe same in one line:\n  %s\n\n", text, w.line())
	what, err := w.Choose("What now?", []string{doSubmit, doSave, doStop})
	if err != nil {
		return false, err
	}
	switch what {
	case doSubmit:
		return true, nil
	case doSave:
		path, err := w.InputValid("File:", w.o.Name+".yaml", func(path string) error {
			if _, err := os.Lstat(path); err == nil {
				return fmt.Errorf("%s exists", path)
			}
			return nil
		})
		if err != nil {
			return false, err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return false, failure.Errorf("save the job: %w", err)
		}
		fmt.Fprintf(errOut, "saved; submit it with: %s\n", w.o.IO.Commands("gangctl submit -f "+shell.Join(path)))
	}
	return false, nil
}

// wizard prompts for what is missing, shows what it makes, and returns it if that is to be submitted, else nil.
func (o *Options) wizard(ctx context.Context, cmd *cobra.Command, args []string, p prompt.Prompter, argv []string) (*batch, error) {
	w := &wizard{Prompter: p, o: o, cmd: cmd, argv: append([]string{}, argv...), dash: cmd.ArgsLenAtDash() >= 0, capacity: o.capacity}
	rest, err := w.promptAll(ctx, args)
	o.CommandLine = cmp.Or(commandLine(w.argv, cmd.Flags(), cmd.InheritedFlags()), o.CommandLine)
	if err != nil {
		return nil, err
	}
	if err := o.parse(cmd, rest); err != nil {
		return nil, err
	}
	text, err := o.preview(ctx)
	if err != nil {
		return nil, err
	}
	if yes, err := w.review(text); err != nil || !yes {
		return nil, err
	}
	return o.batch()
}

// preview is the objects that would be submitted, as --dry-run=client -o yaml shows it.
func (o *Options) preview(ctx context.Context) (string, error) {
	var text strings.Builder
	shown, streams := *o, *o.IO
	streams.Out = &text
	shown.IO, shown.DryRun, shown.Wait, shown.Follow, shown.Output = &streams, dryRunClient, "", false, printer.Flags{Output: printer.YAML}
	err := shown.run(ctx, func(context.Context) (*batch, error) { return shown.batch() })
	return text.String(), err
}

// capacity returns what would start now in the cluster, and which queues there are. The wizard can do without: an error is a note.
func (o *Options) capacity(ctx context.Context) (text string, queues []string) {
	note := func(err error) {
		fmt.Fprintf(o.IO.ErrOut, "note: what is free now is not known: %s\n", failure.From(err).Message)
	}
	namespace, err := o.Namespace()
	if err != nil {
		note(err)
		return "", nil
	}
	client, err := o.Client()
	if err != nil {
		note(err)
		return "", nil
	}
	snap, err := collect.Collect(ctx, client, collect.Options{Namespace: namespace, Now: o.IO.Clock.Now})
	if err != nil {
		note(err)
		return "", nil
	}
	var sizes []string
	for _, total := range usage.OfNodes(view.New(snap)).Totals {
		for _, l := range total.Largest {
			if total.Kind == corev1.ResourceName(o.GPUResource) && l.Members > 0 {
				sizes = append(sizes, fmt.Sprintf("%d x %d", l.Members, l.Devices))
			}
		}
	}
	for _, kind := range []schema.GroupKind{{Group: "scheduling.volcano.sh", Kind: "Queue"}, {Group: "kueue.x-k8s.io", Kind: "LocalQueue"}} {
		for _, queue := range snap.Custom[kind] {
			if queue.GetNamespace() == "" || queue.GetNamespace() == namespace {
				queues = append(queues, queue.GetName())
			}
		}
	}
	slices.Sort(queues)
	if len(sizes) == 0 {
		return "no worker with a GPU", queues
	}
	return strings.Join(sizes, ", or ") + " (workers x GPUs)", queues
}

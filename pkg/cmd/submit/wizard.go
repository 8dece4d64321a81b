package submit

import (
	"cmp"
	"context"
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

// wizard asks a person for what the command line does not say.
type wizard struct {
	prompt.Prompter
	o   *Options
	cmd *cobra.Command
	// words are the command line so far, without the program's name.
	words []string
	// dash is true if the command of the job was typed.
	dash bool
	// free says what would start now, for each size of a worker; empty if nobody knows.
	free func(context.Context) (string, []string)
}

// needsWizard reports whether there is somebody to ask, and something that only they know: the image, which has no default.
func (o *Options) needsWizard(cmd *cobra.Command, p prompt.Prompter) bool {
	if !p.Available() || o.DryRun != dryRunNone || cmd.Flags().Changed("filename") || o.Image != "" {
		return false
	}
	laid, err := o.laid(cmd)
	if err != nil {
		return false // which is said when the template is used
	}
	for _, r := range laid.Roles {
		if r.Image == "" && (r.Replicas > 0 || r.count == "") {
			return true
		}
	}
	return false
}

// laid are the options as they are with what was typed and its template. They are a copy.
func (o *Options) laid(cmd *cobra.Command) (*Options, error) {
	laid := *o
	laid.typed, laid.Roles = cmd.Flags().Changed, nil
	for _, r := range o.Roles {
		own := *r
		laid.Roles = append(laid.Roles, &own)
	}
	return &laid, laid.layTemplate()
}

// ask asks everything that was not typed, in the order in which one thinks of it, and sets the flags by the answers. args are the
// words that are no flags; what it returns takes their place.
func (w *wizard) ask(ctx context.Context, args []string) ([]string, error) {
	named := len(args) > 0 && w.cmd.ArgsLenAtDash() != 0 || w.cmd.Flags().Changed("name")
	if !named {
		if err := w.flag("name", "Name of the job:", w.o.kind.name+"-"+w.o.Suffix(), ""); err != nil {
			return nil, err
		}
	}
	if err := w.template(); err != nil {
		return nil, err
	}
	laid, err := w.o.laid(w.cmd)
	if err != nil {
		return nil, err
	}
	text, queues := w.free(ctx)
	gpus, image := laid.All.GPUs, laid.Image
	for _, r := range laid.shown() {
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

// none is what is chosen where nothing has to be.
const none = "(none)"

// template asks which job to start from, unless that was typed.
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

// flag asks for the value of a flag, unless it was typed. holds is what counts without the flag: it is not set for that.
func (w *wizard) flag(name, question, fallback, holds string) error {
	flag := w.cmd.Flags().Lookup(name)
	if flag.Changed {
		return nil
	}
	was := flag.Value.String()
	answer, err := w.Ask(question, fallback, func(text string) error {
		text = strings.TrimSpace(text)
		if text == "" {
			return fmt.Errorf("it needs an answer")
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
	word := "--" + name + "=" + value
	for i, before := range w.words {
		if before == "--" {
			w.words = append(w.words[:i:i], append([]string{word}, w.words[i:]...)...)
			return nil
		}
	}
	w.words = append(w.words, word)
	return nil
}

// command asks for the command of the members, which is read as a shell reads words, and no further.
func (w *wizard) command() error {
	line, err := w.Ask("Command (empty: the image's own):", "", func(text string) error {
		_, err := shell.Split(text)
		return err
	})
	if err != nil {
		return err
	}
	words, err := shell.Split(line)
	if err != nil {
		return err
	}
	w.o.Command = words
	if len(words) > 0 {
		w.words = append(append(w.words, "--"), words...)
	}
	return nil
}

// line is the command line that does the same.
func (w *wizard) line() string { return shell.Join(append([]string{"gangctl"}, w.words...)...) }

// What can be done with what was asked for.
const (
	doSubmit = "submit it"
	doSave   = "save it to a file"
	doStop   = "stop"
)

// decide shows the objects, as YAML, and asks what to do with them. It returns whether to submit them.
func (w *wizard) decide(text string) (bool, error) {
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
		path, err := w.Ask("File:", w.o.Name+".yaml", func(path string) error {
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
		fmt.Fprintf(errOut, "saved; submit it with: gangctl submit -f %s\n", shell.Join(path))
	}
	return false, nil
}

// wizard prompts for what is missing, shows what it makes, and returns it if that is to be submitted, else nil.
func (o *Options) wizard(ctx context.Context, cmd *cobra.Command, args []string, p prompt.Prompter, words []string) (*batch, error) {
	w := &wizard{Prompter: p, o: o, cmd: cmd, words: append([]string{}, words...), dash: cmd.ArgsLenAtDash() >= 0, free: o.free}
	rest, err := w.ask(ctx, args)
	o.CommandLine = cmp.Or(commandLine(w.words, cmd.Flags(), cmd.InheritedFlags()), o.CommandLine)
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
	if yes, err := w.decide(text); err != nil || !yes {
		return nil, err
	}
	return o.batch()
}

// preview is what would be submitted, as --dry-run=client -o yaml shows it.
func (o *Options) preview(ctx context.Context) (string, error) {
	var text strings.Builder
	shown, streams := *o, *o.IO
	streams.Out = &text
	shown.IO, shown.DryRun, shown.Wait, shown.Follow, shown.Output = &streams, dryRunClient, "", false, printer.Flags{Output: printer.YAML}
	err := shown.run(ctx, func(context.Context) (*batch, error) { return shown.batch() })
	return text.String(), err
}

// free says what would start now in the cluster, and which queues there are. Who asks can do without: that it cannot be found out is a
// note.
func (o *Options) free(ctx context.Context) (text string, queues []string) {
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
	snap, err := collect.Collect(ctx, client, collect.Options{Namespace: namespace, Lean: true, Now: o.IO.Clock.Now})
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

package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/gang"
	jobkinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/submit/manifest"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// FileOptions are what `gangctl submit -f` works with.
type FileOptions struct {
	Submission
	gangFlags
	Suffix      func() string
	CommandLine string
	// File is a path, or "-" for standard input.
	File string
	// Kind is the kind of job that the command line names; empty for any.
	Kind schema.GroupKind

	// typed tells a flag that was typed from a default.
	typed func(flag string) bool
	// serves reports whether the cluster serves group objects of an API group; nil if it was not asked.
	serves func(group string) bool
	// several says that the file holds more than one job, so that errors name it.
	several bool
}

// fileFlags are the flags that say something of a job whose file says the rest.
var fileFlags = []string{"filename", "scheduler", "min-available", "dialect", "queue", "dry-run", "from", "wait", "timeout", "follow", "output"}

// submit checks the command line of `gangctl submit -f` or `gangctl submit tf -f`, and runs it.
func (o *FileOptions) submit(cmd *cobra.Command, args []string) error {
	if err := o.validate(cmd, args); err != nil {
		return err
	}
	return o.run(cmd.Context())
}

func (o *FileOptions) validate(cmd *cobra.Command, args []string) error {
	flags := cmd.Flags()
	o.typed = flags.Changed
	if o.File == "" {
		return failure.Usagef("--filename is empty").WithHint("give it a path, or - for standard input")
	}
	if len(args) > 0 {
		what := "the name"
		if dash := cmd.ArgsLenAtDash(); dash == 0 {
			what = "the command"
		}
		return failure.Usagef("%q has no effect with -f: %s of the job is in the file", args[0], what).WithHint("leave it out, or change the file")
	}
	if err := o.refuseOthers(cmd.LocalFlags()); err != nil {
		return err
	}
	if o.File == "-" && o.From == "-" {
		return failure.Usagef("-f - and --from - both read standard input").WithHint("give one of them a path")
	}
	for name, value := range map[string]string{"scheduler": o.Scheduler, "queue": o.Queue} {
		if o.typed(name) && strings.TrimSpace(value) == "" {
			return failure.Usagef("--%s is empty", name).WithHint("give it a value, or leave it out")
		}
		if err := validateObjectName(name, value); err != nil {
			return err
		}
	}
	if o.Dialect == gang.None && o.typed("min-available") {
		return failure.Usagef("--min-available has no effect with --dialect none: its members are scheduled one by one").
			WithHint("leave out one of the two flags")
	}
	return o.Submission.validate(flags)
}

// refuseOthers refuses the flags that say what the file says.
func (o *FileOptions) refuseOthers(flags *pflag.FlagSet) error {
	var refused []string
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && !slices.Contains(fileFlags, flag.Name) {
			refused = append(refused, flag.Name)
		}
	})
	if len(refused) == 0 {
		return nil
	}
	return failure.Usagef("--%s has no effect with -f: the file says what the job is", refused[0]).
		WithHint("change the file, or leave out --%s", strings.Join(refused, " and --"))
}

func (o *FileOptions) run(ctx context.Context) error {
	m, err := o.read()
	if err != nil {
		return err
	}
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	for _, job := range m.Jobs {
		if kind := job.GroupVersionKind().GroupKind(); !o.Kind.Empty() && kind != o.Kind {
			return failure.Usagef("%s holds a %s, not a %s", o.name(), kind.Kind, o.Kind.Kind).WithHint("leave out the kind: gangctl submit -f %s", o.File)
		}
	}
	parts, err := o.settle(m, namespace)
	if err != nil {
		return err
	}
	o.say(m)
	o.several = len(parts) > 1
	if o.serves, err = o.look(ctx, parts); err != nil {
		return err
	}
	b := batch{others: m.Others, namespace: namespace}
	for _, p := range parts {
		planned, err := o.plan(p)
		if err != nil {
			return err
		}
		b.plans = append(b.plans, planned)
	}
	return o.runBatch(ctx, b)
}

// plan makes a gang of a job of the file. One that names a scheduler, or declares a gang itself, is not for the cluster to decide on.
func (o *FileOptions) plan(p part) (plan, error) {
	said := false
	scheduler, marked, err := render.Declared(p.job)
	if err != nil {
		return plan{}, o.explain(p.job, err)
	}
	reader, _ := jobkinds.ByKind(p.job.GroupVersionKind().GroupKind())
	return plan{
		namespace: p.job.GetNamespace(), reader: reader, gang: o.gangFlags, declared: p.group != nil || marked || scheduler != "",
		make: func(d decision) (*render.Objects, error) {
			c, err := render.Complete(p.job, p.group, render.FileSpec{
				Dialect: d.dialect, Version: d.version, Queue: d.queue, Scheduler: d.scheduler, MinAvailable: o.MinAvailable,
				DialectTyped: o.typed("dialect") && o.Dialect != auto, SchedulerTyped: o.typed("scheduler"), Serves: o.serves, CommandLine: o.CommandLine,
			})
			if err != nil {
				return nil, o.explain(p.job, err)
			}
			if d.local != "" {
				inQueue(c.Job, d.local)
			}
			if !said {
				said = true
				o.note(c.Notes)
			}
			return c.Objects(), nil
		},
	}, nil
}

// read reads the file.
func (o *FileOptions) read() (*manifest.Manifest, error) {
	in, name := o.IO.In, "standard input"
	if o.File != "-" {
		file, err := os.Open(o.File)
		if err != nil {
			return nil, failure.Errorf("read the job: %w", err)
		}
		defer file.Close()
		in, name = file, o.File
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, failure.Errorf("read the job from %s: %w", name, err)
	}
	m, err := manifest.Parse(data)
	if err != nil {
		return nil, failure.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// say tells on standard error what is not as the file has it, or as one would expect.
func (o *FileOptions) say(m *manifest.Manifest) {
	if len(m.Dropped) > 0 {
		o.note([]string{"left out what only API servers write: " + strings.Join(m.Dropped, ", ")})
	}
	o.note(m.Notes)
}

func (o *FileOptions) note(notes []string) {
	for _, note := range notes {
		fmt.Fprintf(o.IO.ErrOut, "note: %s\n", note)
	}
}

// explain says of a job of the file that cannot be made a gang what to do.
func (o *FileOptions) explain(job *unstructured.Unstructured, err error) error {
	name := o.name()
	if o.several {
		name += ": " + named(job)
	}
	var contradiction *render.ContradictionError
	switch {
	case errors.As(err, &contradiction):
		return failure.Usagef("%s: %w", name, err).WithHint("leave out --%s, or change the file", contradiction.Flag)
	case errors.Is(err, render.ErrNotEnforced):
		return failure.Errorf("%s: %w", name, err).
			WithHint("leave schedulerName out of the file for a scheduler of gangs, or add --dialect none to let members start one by one")
	}
	return failure.Errorf("%s: %w", name, err)
}

// name is what errors call the file.
func (o *FileOptions) name() string {
	return cmp.Or(map[string]string{"-": "standard input"}[o.File], o.File)
}

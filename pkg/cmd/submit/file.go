package submit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/localfile"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cluster/document"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/pkg/submit/choose"
	"github.com/gangctl/gangctl/pkg/submit/manifest"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// FileOptions are the dependencies and flags of `gangctl submit -f`.
type FileOptions struct {
	Submission
	gangFlags
	Suffix      func() string
	CommandLine string
	// Files are paths, or "-" for standard input.
	Files []string
	// Kind is the kind of job that the command line names; empty for any.
	Kind schema.GroupKind

	// changed reports whether the user set a flag, rather than a default.
	changed func(flag string) bool
	// source is what errors call what describes the job where that is no file.
	source string
	// several is true if the file holds more than one job, so that errors name it.
	several bool
	// runtimes are those that the file has for its TrainJobs.
	runtimes []*unstructured.Unstructured
}

// fileFlags are the flags that a job of a file takes.
var fileFlags = []string{"filename", "scheduler", "min-available", "dialect", "queue", "dry-run", "from", "wait", "timeout", "follow", "output"}

// submit checks the command line of `gangctl submit -f` or `gangctl submit tf -f`, and runs it.
func (o *FileOptions) submit(cmd *cobra.Command, args []string) error {
	if err := o.validate(cmd, args); err != nil {
		return err
	}
	return o.run(cmd.Context(), o.batch)
}

func (o *FileOptions) validate(cmd *cobra.Command, args []string) error {
	flags := cmd.Flags()
	o.changed = flags.Changed
	if len(o.Files) == 0 || slices.Contains(o.Files, "") {
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
	for i, path := range o.Files {
		if slices.Contains(o.Files[:i], path) {
			return failure.Usagef("--filename %s is there twice", path).WithHint("name each file once")
		}
	}
	if slices.Contains(o.Files, "-") && o.From == "-" {
		return failure.Usagef("-f - and --from - both read standard input").WithHint("give one of them a path")
	}
	return o.validateGang(flags)
}

// validateGang refuses flags about the gang, and about the submission, that cannot be meant.
func (o *FileOptions) validateGang(flags *pflag.FlagSet) error {
	for _, given := range []struct{ flag, name string }{{"scheduler", o.Scheduler}, {"queue", o.Queue}} {
		if o.changed(given.flag) && strings.TrimSpace(given.name) == "" {
			return failure.Usagef("--%s is empty", given.flag).WithHint("give it a value, or leave it out")
		}
		if err := validateObjectName(given.flag, given.name); err != nil {
			return err
		}
	}
	if o.Dialect == gang.None && o.changed("min-available") {
		return failure.Usagef("--min-available has no effect with --dialect none: its members are scheduled one by one").
			WithHint("leave out one of the two flags")
	}
	return o.Submission.validate(flags)
}

// refuseOthers refuses the flags whose values the file has.
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
	return failure.Usagef("--%s has no effect with -f: the file defines the job", refused[0]).
		WithHint("change the file, or leave out --%s", strings.Join(refused, " and --"))
}

// batch is the jobs that the file holds.
func (o *FileOptions) batch(ctx context.Context) (*batch, error) {
	m, err := o.read(ctx)
	if err != nil {
		return nil, err
	}
	return o.batchOf(m)
}

// batchOf is the batch of a manifest.
func (o *FileOptions) batchOf(m *manifest.Manifest) (*batch, error) {
	namespace, err := o.Namespace()
	if err != nil {
		return nil, err
	}
	for _, job := range m.Jobs {
		if kind := job.GroupVersionKind().GroupKind(); !o.Kind.Empty() && kind != o.Kind {
			return nil, failure.Usagef("%s holds a %s, not a %s", o.name(), kind.Kind, o.Kind.Kind).WithHint("leave out the kind: gangctl submit %s", o.flags())
		}
	}
	parts, err := o.applyDefaults(m, namespace)
	if err != nil {
		return nil, err
	}
	if len(m.Dropped) > 0 {
		o.note("left out what only API servers write: " + strings.Join(m.Dropped, ", "))
	}
	o.note(m.Notes...)
	if o.several = len(parts) > 1; o.several && o.Follow {
		return nil, failure.Usagef("--follow is for one job, and the file holds %d", len(parts)).WithHint("leave it out, and read each with `gangctl logs NAME -f`")
	}
	for _, other := range m.Others {
		if kind := other.GroupVersionKind(); kind.Group == trainjob.Group {
			o.runtimes = append(o.runtimes, other)
		}
	}
	b := &batch{others: ownedBy(parts, m.Others), namespace: namespace}
	for _, p := range parts {
		b.owned = append(b.owned, p.owned...)
		j, err := o.job(p)
		if err != nil {
			return nil, err
		}
		b.jobs = append(b.jobs, j)
	}
	return b, b.check()
}

// job makes a gang of a job of the file. One that names a scheduler, or declares a gang itself, is not for the cluster to decide on.
func (o *FileOptions) job(p part) (*desiredJob, error) {
	scheduler, member, err := render.Declared(p.job)
	if err != nil {
		return nil, o.explain(p.job, err)
	}
	var prepare func(context.Context, *target) error
	if p.kind.GroupKind == trainjob.Reader().GroupKind {
		p.runtime = &runtimeOf{job: p.job, given: o.runtimes}
		prepare = p.runtime.read
	}
	j := &desiredJob{
		prepare:   prepare,
		namespace: p.job.GetNamespace(), source: o.name(), kind: p.kind, request: o.request(p.kind.GroupKind), schedulers: o.schedulers(p.read),
		foreign: slices.ContainsFunc(p.groups, func(group *unstructured.Unstructured) bool {
			return slices.Contains([]gang.Dialect{gang.Volcano, gang.KubeBatch}, render.DialectOf(group))
		}),
		objects: func(d choose.Decision, serves func(string) bool) (*render.Objects, []string, error) {
			c, err := o.complete(p, render.FileSpec{
				Dialect: d.Dialect, Version: d.Version, Queue: d.Queue, Scheduler: d.Scheduler, MinAvailable: o.MinAvailable,
				DialectSet: o.changed("dialect") && o.Dialect != choose.Auto, SchedulerSet: o.changed("scheduler"), QueueSet: o.changed("queue"), Serves: serves, Operator: d.Operator, CommandLine: o.CommandLine,
			})
			if err != nil {
				return nil, nil, o.explain(p.job, err)
			}
			objects := c.Objects()
			objects.Owned = slices.Concat(objects.Owned, p.owned)
			enqueue(objects, d.LocalQueue)
			return objects, c.Notes, nil
		},
	}
	j.request.Declared = len(p.groups) > 0 || member || scheduler != ""
	return j, nil
}

// complete makes a gang of a job of the file.
func (o *FileOptions) complete(p part, s render.FileSpec) (*render.Completed, error) {
	if p.runtime != nil {
		return render.CompleteTrainJob(p.job, p.runtime.object, p.groups, s)
	}
	return render.Complete(p.job, p.groups, s)
}

// schedulers are those that the members of a job request by a name that is neither Kubernetes' own nor gangctl's. A name that
// contradicts --scheduler is left out: it is refused.
func (o *FileOptions) schedulers(job gang.Job) []string {
	var names []string
	for _, role := range job.Roles {
		name := role.Template.Spec.SchedulerName
		contradicts := o.changed("scheduler") && name != o.Scheduler
		if !contradicts && !slices.Contains([]string{"", corev1.DefaultSchedulerName, schedulerplugins.DefaultScheduler}, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// maxFile is how large a file with jobs may be, in bytes: ten times what the API server takes for one object.
const maxFile = 16 << 20

// read reads the files, as if all were in one.
func (o *FileOptions) read(ctx context.Context) (*manifest.Manifest, error) {
	var all [][]byte
	size := 0
	for _, path := range o.Files {
		data, err := o.open(ctx, path)
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if err != nil {
			return nil, err
		}
		if size += len(data); size > maxFile {
			return nil, failure.Errorf("%s: more than %d MiB", o.name(), maxFile>>20)
		}
		all = append(all, data)
	}
	m, err := manifest.ParseOf(o.Kind, bytes.Join(all, []byte("\n---\n")))
	if err == nil {
		return m, nil
	}
	for i, data := range all { // the error of one file has its name, and where in it
		if _, own := document.Split(data); len(all) > 1 && own != nil {
			return nil, failure.Errorf("%s: %w", localfile.Name(o.Files[i]), own)
		}
	}
	var none *manifest.NoJobError
	if errors.As(err, &none) {
		return nil, failure.Errorf("%s: %w", o.name(), err).WithHint("%s", none.Hint(o.flags()))
	}
	return nil, failure.Errorf("%s: %w", o.name(), err)
}

// flags are the flags that name the files.
func (o *FileOptions) flags() string {
	var named []string
	for _, path := range o.Files {
		named = append(named, "-f", path)
	}
	return shell.Join(named...)
}

// open reads a file.
func (o *FileOptions) open(ctx context.Context, path string) ([]byte, error) {
	in, err := localfile.OpenUntil(ctx, path, o.IO.In)
	if err != nil && strings.Contains(path, "://") {
		return nil, failure.Errorf("read the job: %w", err).WithHint("addresses are not read: curl -fsSL %s | gangctl submit -f -", shell.Quote(path))
	}
	if err != nil {
		return nil, failure.Errorf("read the job: %w", err).WithHint("name a file with -f, once for each; -f - reads standard input")
	}
	defer in.Close()
	data, err := localfile.Text(in, maxFile)
	if err != nil {
		return nil, failure.Errorf("read the job from %s: %w", localfile.Name(path), err).WithHint("a job is YAML or JSON, as `kubectl get -o yaml` prints it")
	}
	return data, nil
}

// explain adds to an error of a job that cannot be made a gang what to do.
func (o *FileOptions) explain(job *unstructured.Unstructured, err error) error {
	name := o.name()
	if o.several {
		name += ": " + named(job)
	}
	var contradiction *render.ContradictionError
	switch {
	case errors.As(err, &contradiction):
		return failure.Usagef("%s: %w", name, err).WithHint("leave out --%s, or change the file", contradiction.Flag)
	case errors.Is(err, render.ErrSequential):
		return failure.Errorf("%s: %w", name, err).WithHint("add --dialect none to let members start as they are made, or change the file")
	case errors.Is(err, render.ErrNoPods):
		return failure.Errorf("%s: %w", name, err).WithHint("choose a runtime without podGroupPolicy, or have an administrator install these PodGroups")
	case errors.Is(err, render.ErrLeftAlone):
		return failure.Errorf("%s: %w", name, err).
			WithHint("change the label in the file, or have an administrator change --batch-scheduler of the operator; --dialect none submits it without a gang")
	case errors.Is(err, render.ErrNotEnforced):
		return failure.Errorf("%s: %w", name, err).
			WithHint("leave schedulerName out of the file for a scheduler of gangs, or add --dialect none to let members start one by one")
	}
	return failure.Errorf("%s: %w", name, err)
}

// name is the name of the files in errors.
func (o *FileOptions) name() string {
	names := make([]string, 0, len(o.Files))
	for _, path := range o.Files {
		names = append(names, localfile.Name(path))
	}
	return cmp.Or(o.source, strings.Join(names, ", "))
}

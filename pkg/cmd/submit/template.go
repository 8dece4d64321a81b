package submit

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/localfile"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/convert"
	"github.com/gangctl/gangctl/pkg/submit/resize"
	"github.com/gangctl/gangctl/templates"
)

// template is a job that flags override.
type template struct {
	name string
	// path is the file; empty for one that is built in.
	path string
	text []byte
}

// templatesIn are the templates of a user, in a directory next to the settings, and those that are built in, by name. A user's own
// hides a built-in one.
func templatesIn(configPath string) (map[string]template, error) {
	all := map[string]template{}
	for name, text := range templates.Jobs() {
		all[name] = template{name: name, text: text}
	}
	if configPath == "" {
		return all, nil
	}
	dir := filepath.Join(filepath.Dir(configPath), "templates")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, failure.Errorf("read the templates: %w", err)
	}
	for _, e := range entries {
		name, isYAML := strings.CutSuffix(e.Name(), ".yaml")
		if e.IsDir() || !isYAML {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, err := readTemplate(path)
		if err != nil {
			return nil, failure.Errorf("read the templates: %w", err).WithHint("correct the file, or move it out of the directory of templates")
		}
		all[name] = template{name: name, path: path, text: text}
	}
	return all, nil
}

// readTemplate reads the file of a template.
func readTemplate(path string) ([]byte, error) {
	in, err := localfile.Open(path, nil)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := localfile.Text(in, maxFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}

// find finds a template by its name, or reads it from a file: what has a slash or an ending is a path.
func findTemplate(configPath, name string) (template, error) {
	if name == localfile.Stdin {
		return template{}, failure.Usagef("--template -: a template is not read from standard input").WithHint("write it to a file, and name that; or submit the job itself: -f -")
	}
	if strings.ContainsRune(name, filepath.Separator) || filepath.Ext(name) != "" {
		text, err := readTemplate(name)
		if err != nil {
			return template{}, failure.Errorf("read the template: %w", err).WithHint("name one of `gangctl submit templates list`, or the path of a file that holds a job")
		}
		return template{name: name, path: name, text: text}, nil
	}
	all, err := templatesIn(configPath)
	if err != nil {
		return template{}, err
	}
	t, ok := all[name]
	if !ok {
		names := slices.Sorted(maps.Keys(all))
		hint := "there are: " + strings.Join(names, ", ") + "; a file is given with its path, such as ./" + name + ".yaml"
		if nearest := suggest.Nearest(name, names); nearest != "" {
			hint = "did you mean " + nearest + "?"
		}
		return template{}, failure.Usagef("--template %q: there is no template of this name", name).WithHint("%s", hint)
	}
	return t, nil
}

// read reads the job of a template.
func (t template) read(k kind) (*unstructured.Unstructured, gang.Job, error) {
	u := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSONStrict(t.text)
	if err == nil {
		err = u.UnmarshalJSON(raw)
	}
	if err != nil {
		return nil, gang.Job{}, failure.Errorf("template %s: %w", t.name, err)
	}
	if u.GroupVersionKind().GroupKind() != k.reader.GroupKind {
		return nil, gang.Job{}, failure.Usagef("template %s is a %s, not a %s", t.name, u.GetKind(), k.reader.Kind).WithHint("see the templates with `gangctl submit templates list`")
	}
	if convert.Reads(u.GroupVersionKind()) {
		converted, err := convert.TFJob(u)
		if err != nil {
			return nil, gang.Job{}, failure.Errorf("template %s: %w", t.name, err)
		}
		u = converted.Job
	}
	job, err := k.reader.Read(u)
	if err != nil {
		return nil, gang.Job{}, failure.Errorf("template %s: %w", t.name, err)
	}
	return u, job, nil
}

// applyTemplate makes the values of a template the defaults of the flags that set them. All else of it stays in the job. It must see
// the flags before their own defaults fill them in.
func (o *Options) applyTemplate() error {
	if o.Template == "" {
		return nil
	}
	t, err := findTemplate(o.ConfigPath, o.Template)
	if err != nil {
		return err
	}
	u, job, err := t.read(o.kind)
	if err != nil {
		return err
	}
	for _, p := range []struct {
		flag string
		take func()
	}{
		{"image", func() { o.Image = "" }}, {"cpu", func() { o.All.CPU = nil }}, {"memory", func() { o.All.Memory = nil }}, {resize.FlagStorage, func() { o.All.Storage = nil }},
		{"restart-policy", func() { o.RestartPolicy = "" }}, {"clean-pod-policy", func() { o.CleanPodPolicy = "" }},
		{"priority-class", func() {
			o.PriorityClass = cmp.Or(job.PriorityClass, firstOf(job, func(s corev1.PodSpec) string { return s.PriorityClassName }))
		}},
		{"min-available", func() {
			if job.MinMember != nil {
				o.MinAvailable = *job.MinMember
			}
		}},
		{"scheduler", func() {
			o.Scheduler = cmp.Or(firstOf(job, func(s corev1.PodSpec) string { return s.SchedulerName }), o.Scheduler)
		}},
	} {
		if !o.changed(p.flag) {
			p.take()
		}
	}
	for _, r := range o.Roles {
		o.applyTemplateRole(r, job)
	}
	o.preset, err = o.merge(u)
	if err != nil {
		return failure.Errorf("template %s: %w", t.name, err)
	}
	return nil
}

// firstOf is a field of the first role that has it.
func firstOf(job gang.Job, field func(corev1.PodSpec) string) string {
	for _, r := range job.Roles {
		if value := field(r.Template.Spec); value != "" {
			return value
		}
	}
	return ""
}

// applyTemplateRole takes over what a template has for a role.
func (o *Options) applyTemplateRole(r *role, job gang.Job) {
	i := slices.IndexFunc(job.Roles, func(have gang.Role) bool { return strings.EqualFold(have.Name, r.Name) })
	replicas := int32(0)
	if i >= 0 {
		replicas = job.Roles[i].Replicas
	}
	if o.kind.splitRoles != nil { // the template's roles are one on the command line
		replicas, i = job.Total(), max(i, 0)
	}
	if r.count != "" && !o.changed(r.count) {
		r.Replicas = replicas
	}
	if i < 0 || i >= len(job.Roles) {
		return
	}
	have := job.Roles[i]
	for _, c := range have.Template.Spec.Containers {
		if c.Name != have.Main && len(have.Template.Spec.Containers) > 1 {
			continue
		}
		if !o.changed("image") {
			r.Image = cmp.Or(r.Image, c.Image)
		}
		if gpus, found := c.Resources.Limits[corev1.ResourceName(o.GPUResource)]; found && r.GPUs == unset && !(r.trains && o.changed("gpus")) {
			r.GPUs = gpus.Value()
		}
	}
}

// merge is a template with those roles of the kind's own preset that it lacks, so that flags can set them, and with the
// policies that gangctl sets by default.
func (o *Options) merge(u *unstructured.Unstructured) ([]byte, error) {
	preset := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON(o.kind.preset())
	if err == nil {
		err = preset.UnmarshalJSON(raw)
	}
	if err != nil {
		return nil, err
	}
	if at := o.kind.reader.Template("ROLE"); len(at) > 2 && o.kind.cleans {
		path := at[:len(at)-2]
		own, _, _ := unstructured.NestedMap(preset.Object, path...)
		roles, _, err := unstructured.NestedMap(u.Object, path...)
		if err != nil {
			return nil, err
		}
		merged := map[string]any{}
		for name, role := range own {
			merged[name] = role
			for theirs, have := range roles {
				if strings.EqualFold(theirs, name) {
					merged[name] = have
					delete(roles, theirs)
				}
			}
			if m, ok := merged[name].(map[string]any); ok && m["restartPolicy"] == nil {
				m["restartPolicy"] = string(kubeflowv1.RestartPolicyOnFailure)
			}
		}
		for name := range roles {
			return nil, fmt.Errorf("%s.%s: unknown role: must be one of %s", strings.Join(path, "."), name, strings.Join(slices.Sorted(maps.Keys(own)), ", "))
		}
		if err := unstructured.SetNestedMap(u.Object, merged, path...); err != nil {
			return nil, err
		}
		if _, found, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "runPolicy", "cleanPodPolicy"); !found {
			if err := unstructured.SetNestedField(u.Object, string(kubeflowv1.CleanPodPolicyRunning), "spec", "runPolicy", "cleanPodPolicy"); err != nil {
				return nil, err
			}
		}
	}
	return printer.MarshalYAML(u.Object)
}

// newTemplatesCommand returns `gangctl submit templates`.
func newTemplatesCommand(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "templates",
		Short: "Show the jobs that --template can start from",
		Long: `Show the jobs that --template can start from: those that are built in, and your own, which are YAML files in the directory
templates next to the settings (gangctl config path). One of yours hides a built-in one of the same name.`,
		Example: `  gangctl submit templates list

  # start from one
  gangctl submit tf llama --template parameter-server --image tensorflow/tensorflow:2.17.0 --ps 1 --workers 2`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return failure.Usagef("submit templates has no subcommand %q", args[0]).WithHint("gangctl submit templates list, or gangctl submit templates show NAME")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List the templates",
		Long: `List the templates, with the kind of job that each makes, the file that it comes from, and what it is for.`,
		Example: `  gangctl submit templates list

  # those for TensorFlow
  gangctl submit templates list | grep TFJob`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return failure.Usagef("submit templates list takes no arguments, got %q", args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error { return listTemplates(f) },
	}, &cobra.Command{
		Use: "show NAME", Short: "Show a template",
		Long: `Show the YAML of a template, comments and all. Flags of submit override it.`,
		Example: `  gangctl submit templates show parameter-server

  # make one of your own
  gangctl submit templates show all-reduce > ~/.config/gangctl/templates/mine.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return failure.Usagef("submit templates show needs the name of one template, got %d", len(args)).WithHint("see them with `gangctl submit templates list`")
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return CompleteTemplates(f)(cmd, args, prefix)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := findTemplate(f.ConfigPath, args[0])
			if err != nil {
				return err
			}
			_, err = f.IO.Out.Write(t.text)
			return err
		},
	})
	return cmd
}

// CompleteTemplates completes with the names of templates, of the command's kind if it has one, and with files where none begins like that.
func CompleteTemplates(f *cmdutil.Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		all, err := templatesIn(f.ConfigPath)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		of := ""
		for _, k := range kinds() {
			if k.name == cmd.Name() {
				of = k.reader.Kind
			}
		}
		var names []cobra.Completion
		for name, t := range all {
			if of == "" || t.kind() == of {
				names = append(names, name)
			}
		}
		if found := cmdutil.FilterCompletions(names, prefix); len(found) > 0 {
			return found, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
}

func listTemplates(f *cmdutil.Factory) error {
	all, err := templatesIn(f.ConfigPath)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t := all[name]
		from := t.path
		if from == "" {
			from = "built in"
		}
		rows = append(rows, []string{name, t.kind(), from, t.purpose()})
	}
	columns := []printer.Column{{Name: "Name"}, {Name: "Kind", Spare: 1}, {Name: "From", Spare: 2}, {Name: "Purpose"}}
	return printer.PrintTable(f.IO.Out, printer.Flags{}, f.IO.Width(), columns, rows)
}

// kind is that of the template's job; "?" if it cannot be read, which `submit` reports.
func (t template) kind() string {
	var job struct{ Kind string }
	if err := yaml.Unmarshal(t.text, &job); err != nil || job.Kind == "" {
		return "?"
	}
	return job.Kind
}

// purpose is the comment with which the template begins.
func (t template) purpose() string {
	line, _, _ := strings.Cut(string(t.text), "\n")
	comment, isComment := strings.CutPrefix(line, "#")
	if !isComment {
		return ""
	}
	return strings.TrimSpace(comment)
}

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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/convert"
	"github.com/gangctl/gangctl/templates"
)

// template is a job that flags are laid over.
type template struct {
	name string
	// path is the file; empty for one that is built in.
	path string
	text []byte
}

// templatesIn are the templates of a user, in a directory beside the settings, and those that are built in, by name. A user's own
// hides a built-in one.
func templatesIn(configPath string) (map[string]template, error) {
	all := map[string]template{}
	for name, text := range templates.Jobs() {
		all[name] = template{name: name, text: text}
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
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, failure.Errorf("read the templates: %w", err)
		}
		all[name] = template{name: name, path: path, text: text}
	}
	return all, nil
}

// find finds a template by its name, or reads it from a file: what has a slash or an ending is a path.
func findTemplate(configPath, name string) (template, error) {
	if strings.ContainsRune(name, filepath.Separator) || filepath.Ext(name) != "" {
		text, err := os.ReadFile(name)
		if err != nil {
			return template{}, failure.Errorf("read the template: %w", err)
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

// lay makes what a template says the default of the flags that speak of it. Everything else of it stays in the job. It must see
// the flags before their own defaults fill them in.
func (o *Options) layTemplate() error {
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
		{"image", func() { o.Image = "" }}, {"cpu", func() { o.All.CPU = nil }}, {"memory", func() { o.All.Memory = nil }},
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
		if !o.typed(p.flag) {
			p.take()
		}
	}
	for _, r := range o.Roles {
		o.layRole(r, job)
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

// layRole takes over what a template says of a role.
func (o *Options) layRole(r *role, job gang.Job) {
	i := slices.IndexFunc(job.Roles, func(have gang.Role) bool { return strings.EqualFold(have.Name, r.Name) })
	replicas := int32(0)
	if i >= 0 {
		replicas = job.Roles[i].Replicas
	}
	if o.kind.spread != nil { // the template's roles are one on the command line
		replicas, i = job.Total(), max(i, 0)
	}
	if r.count != "" && !o.typed(r.count) {
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
		if !o.typed("image") {
			r.Image = cmp.Or(r.Image, c.Image)
		}
		if gpus, found := c.Resources.Limits[corev1.ResourceName(o.GPUResource)]; found && r.GPUs == unset && !(r.trains && o.typed("gpus")) {
			r.GPUs = gpus.Value()
		}
	}
}

// merge is a template with those roles of the kind's own preset that it lacks, so that flags can ask for them, and with the
// policies that gangctl sets where nobody says otherwise.
func (o *Options) merge(u *unstructured.Unstructured) ([]byte, error) {
	preset := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON(o.kind.preset())
	if err == nil {
		err = preset.UnmarshalJSON(raw)
	}
	if err != nil {
		return nil, err
	}
	if at := o.kind.reader.Template("ROLE"); len(at) > 2 {
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
			return nil, fmt.Errorf("%s.%s: no role that gangctl knows: there are %s", strings.Join(path, "."), name, strings.Join(slices.Sorted(maps.Keys(own)), ", "))
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
	return yaml.Marshal(u.Object)
}

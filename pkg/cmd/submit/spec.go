package submit

import (
	"maps"
	"slices"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/submit/choose"
	"github.com/gangctl/gangctl/pkg/submit/redact"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// objects renders what the flags describe.
func (o *Options) objects(namespace string, d choose.Decision) (*render.Objects, error) {
	spec, err := o.spec(namespace, d)
	if err != nil {
		return nil, err
	}
	preset := o.preset
	if preset == nil {
		preset = o.kind.preset()
	}
	objects, err := o.kind.write(d.JobVersion).Render(preset, spec)
	switch {
	case err != nil && len(o.Set) > 0:
		return nil, failure.Usagef("--set %w", err)
	case err != nil && o.preset != nil:
		return nil, failure.Errorf("template %s: %w", o.Template, err)
	case err != nil:
		return nil, err
	}
	enqueue(objects, d.LocalQueue)
	return objects, nil
}

func (o *Options) spec(namespace string, d choose.Decision) (render.Spec, error) {
	env, err := o.environment()
	if err != nil {
		return render.Spec{}, err
	}
	labels, err := o.labels()
	if err != nil {
		return render.Spec{}, err
	}
	annotations, err := o.annotations()
	if err != nil {
		return render.Spec{}, err
	}
	spec := render.Spec{
		Name: o.Name, Namespace: namespace, Roles: o.jobRoles(),
		Pod: render.Pod{
			GPUResource: corev1.ResourceName(o.GPUResource), Command: o.Command, Env: env, WorkingDir: o.WorkingDir,
			PriorityClass: o.PriorityClass, Scheduler: d.Scheduler,
		},
		Gang:          render.GangSpec{Dialect: d.Dialect, Version: d.Version, MinAvailable: o.MinAvailable, Queue: d.Queue},
		RestartPolicy: o.RestartPolicy, CleanPodPolicy: o.CleanPodPolicy,
		SlotsPerWorker: o.SlotsPerWorker, ProcessesPerNode: o.ProcessesPerNode, Framework: o.Framework,
		Labels: labels, Annotations: annotations, Set: o.Set,
		CommandLine: o.CommandLine,
	}
	if err := o.podFlags.apply(&spec, o.training(spec.Roles), o.changed); err != nil {
		return render.Spec{}, err
	}
	for _, e := range env {
		if slices.Contains(o.kind.write("").Sets(spec), e.Name) {
			return render.Spec{}, failure.Usagef("--env %s has no effect: %s sets it for every member", e.Name, o.setter())
		}
	}
	return spec, nil
}

// training are the roles of the job that --gpus is for.
func (o *Options) training(roles []render.Role) []string {
	var names []string
	for _, r := range o.Roles {
		if r.trains {
			names = append(names, r.Name)
		}
	}
	if o.kind.splitRoles != nil { // into roles that do the same
		for _, r := range roles {
			names = append(names, r.Name)
		}
	}
	return names
}

// jobRoles are the roles of the job.
func (o *Options) jobRoles() []render.Role {
	var roles []render.Role
	for _, r := range o.Roles {
		roles = append(roles, render.Role{Name: r.Name, Replicas: r.Replicas, Image: r.Image, GPUs: r.GPUs, CPU: r.CPU, Memory: r.Memory, Storage: r.Storage})
	}
	if o.kind.splitRoles != nil {
		return o.kind.splitRoles(roles)
	}
	return roles
}

// setter is the writer of the environment of members.
func (o *Options) setter() string {
	if name := o.kind.reader.Controller.Name; name != "" {
		return "the " + strings.ReplaceAll(name, "-", " ")
	}
	return "gangctl"
}

// labels reads --label.
func (o *Options) labels() (map[string]string, error) {
	return pairs("label", o.Labels, func(key, value string) []string {
		return append(content.IsLabelKey(key), content.IsLabelValue(value)...)
	})
}

// annotations reads --annotation.
func (o *Options) annotations() (map[string]string, error) {
	return pairs("annotation", o.Annotations, func(key, value string) []string {
		var problems []string
		for _, e := range apivalidation.ValidateAnnotations(map[string]string{key: value}, field.NewPath("annotation")) {
			problems = append(problems, e.Detail)
		}
		return problems
	})
}

// environment reads --env. The value is everything after the first "=", byte for byte.
func (o *Options) environment() ([]corev1.EnvVar, error) {
	var env []corev1.EnvVar
	seen := map[string]bool{}
	for _, text := range o.Env {
		name, value, ok := strings.Cut(text, "=")
		switch {
		case !ok || name == "":
			return nil, failure.Usagef("--env %q: must be NAME=VALUE", redact.Flag("env", text))
		case len(validation.IsRelaxedEnvVarName(name)) > 0:
			return nil, failure.Usagef("--env %q: the name %q may hold printable ASCII characters other than '=' only", redact.Flag("env", text), name)
		case seen[name]:
			return nil, failure.Usagef("--env %s is given twice", name)
		}
		seen[name] = true
		env = append(env, corev1.EnvVar{Name: name, Value: value})
	}
	return env, nil
}

// pairs reads the KEY=VALUE arguments of a repeatable flag that sets metadata.
func pairs(flag string, texts []string, problems func(key, value string) []string) (map[string]string, error) {
	out, err := keyValues(flag, texts, problems)
	for _, key := range slices.Sorted(maps.Keys(out)) {
		if owner := reserved(key); owner != "" {
			return nil, failure.Usagef("--%s %s: this key is set by %s", flag, key, owner)
		}
	}
	return out, err
}

// keyValues reads the KEY=VALUE arguments of a repeatable flag.
func keyValues(flag string, texts []string, problems func(key, value string) []string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, failure.Usagef("--%s %q: must be KEY=VALUE", flag, redact.Flag(flag, text))
		}
		if p := problems(key, value); len(p) > 0 {
			return nil, failure.Usagef("--%s %q: %s", flag, redact.Flag(flag, text), strings.Join(p, "; "))
		}
		if _, ok := out[key]; ok {
			return nil, failure.Usagef("--%s %s is given twice", flag, key)
		}
		out[key] = value
	}
	return out, nil
}

// reserved is the writer of a metadata key, or "" if it is free. What a user wrote there would be lost.
func reserved(key string) string {
	domain, _, _ := strings.Cut(key, "/")
	switch {
	case domain == strings.TrimSuffix(kubeflowv1.JobNameLabel, "/job-name"):
		return "the training operator"
	case domain == "gangctl.dev", key == kueue.QueueLabel, domain == "scheduling.x-k8s.io", strings.HasPrefix(domain, "pod-group.scheduling."):
		return "gangctl"
	}
	return ""
}

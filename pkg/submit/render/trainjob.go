package render

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

// patchManager is the name under which gangctl patches the runtime of a TrainJob.
const patchManager = "gangctl.dev/submit"

// CompleteTrainJob makes a gang of a TrainJob, whose pods come from its runtime: labels go into a patch of the runtime. Fields of pods that
// a TrainJob may not patch, such as schedulerName, need a runtime that has them: where the job's has not, it gets one of its own, a copy
// with these fields. So does a job whose runtime is another TrainJob's, with which it would go. A runtime of nil is not known: it is taken for one that has one step. A runtime that makes a PodGroup of every job is respected. The objects given are not changed.
func CompleteTrainJob(job, runtime *unstructured.Unstructured, podGroups []*unstructured.Unstructured, s FileSpec) (*Completed, error) {
	t := &training{job: job.DeepCopy(), runtime: runtime, s: s}
	if runtime == nil {
		runtime = trainjob.Assumed()
	}
	expected, err := trainjob.Expected(job, runtime)
	if err != nil {
		return nil, err
	}
	steady, first := trainjob.WithoutFirst(expected)
	var c *Completed
	if own := trainjob.GroupOf(runtime); own != "" && s.Dialect != gang.None {
		c, err = t.respect(own, steady, first, podGroups)
	} else {
		inner := s
		inner.CommandLine = ""
		c, err = Complete(steady, podGroups, inner)
	}
	if err != nil {
		return nil, err
	}
	if s.CommandLine != "" {
		set(t.job, s.CommandLine, "metadata", "annotations", provenance.CommandAnnotation)
	}
	if err := t.write(steady, c); err != nil {
		return nil, err
	}
	c.made = t.made(expected, c.Job)
	c.Job = t.job
	return c, nil
}

// ErrNoPods is the cause of an error about what a controller needs, and has not, before it makes pods: the job would be there, and nothing of it.
var ErrNoPods = errors.New("its controller would make no pods")

// training is one run of CompleteTrainJob.
type training struct {
	// job is the TrainJob that is written, runtime its runtime as the cluster has it.
	job, runtime *unstructured.Unstructured
	s            FileSpec
}

// respect leaves the gang to the PodGroup that the runtime's policy makes, and adds the scheduler.
func (t *training) respect(own gang.Dialect, steady *unstructured.Unstructured, first []string, podGroups []*unstructured.Unstructured) (*Completed, error) {
	writer, known := dialect.WriterOf(own)
	where := fmt.Sprintf("its runtime, %s, makes a PodGroup of every TrainJob, in dialect %s", t.runtime.GetName(), own)
	switch {
	case len(podGroups) > 0:
		return nil, fmt.Errorf("it holds PodGroup %s, but %s", podGroups[0].GetName(), where)
	case t.s.DialectSet && t.s.Dialect != own:
		return nil, &ContradictionError{Flag: "dialect", File: where}
	case t.s.MinAvailable > 0:
		return nil, &ContradictionError{Flag: "min-available", File: where + ", of all members"}
	case known && t.s.serves(writer.Versions) < 0:
		return nil, fmt.Errorf("%s, and the cluster serves none: %w", where, ErrNoPods)
	case len(first) > 0:
		return nil, fmt.Errorf("the PodGroup of its runtime waits for %s, too, which must complete before the others are made: %w", strings.Join(first, " and "), ErrSequential)
	}
	read, err := jobset.Reader().Read(steady)
	if err != nil {
		return nil, err
	}
	if read.Sequential != "" {
		return nil, fmt.Errorf("%s: %w", read.Sequential, ErrSequential)
	}
	c := &completion{Completed: Completed{Job: steady.DeepCopy()}, roles: read.Roles, dialect: own, s: t.s}
	if err := c.read(); err != nil {
		return nil, err
	}
	scheduler := c.scheduler
	if scheduler == "" || scheduler == corev1.DefaultSchedulerName {
		scheduler = c.requestedScheduler()
	}
	if known {
		scheduler = cmp.Or(scheduler, writer.Scheduler)
	}
	for _, role := range c.roles {
		set(c.Job, scheduler, append(jobset.Reader().Template(role.Name), "spec", "schedulerName")...)
	}
	c.Notes = append(c.Notes, where+": no other one is added")
	return &c.Completed, nil
}

// write writes what makes the pods of a JobSet a gang into the TrainJob of which it is made, and into a runtime of its own where it takes
// that.
func (t *training) write(before *unstructured.Unstructured, c *Completed) error {
	was, is := podTemplates(before), podTemplates(c.Job)
	patches, fields := map[string]map[string]any{}, map[string]map[string]any{}
	for name, template := range is {
		if metadata := added(was[name], template, "metadata"); len(metadata) > 0 {
			patches[name] = metadata
		}
		if spec := added(was[name], template, "spec"); len(spec) > 0 {
			fields[name] = spec
		}
	}
	if err := trainjob.Patch(t.job, patchManager, patches); err != nil {
		return err
	}
	owner := ""
	if t.runtime != nil {
		owner = trainjob.OwnerOf(t.runtime)
	}
	switch {
	case len(fields) == 0 && owner == "":
		return nil
	case t.runtime == nil:
		c.Notes = append(c.Notes, fmt.Sprintf("its runtime was not read: unless that has %s, the job gets a copy of it that has", strings.Join(names(fields), " and ")))
		return nil
	}
	c.trial = t.job.DeepCopy()
	c.runtime = t.own(fields)
	set(t.job, map[string]any{"apiGroup": trainjob.Group, "kind": trainjob.RuntimeKind, "name": c.runtime.GetName()}, "spec", "runtimeRef")
	why := fmt.Sprintf(", which goes when TrainJob %s goes", owner)
	if len(fields) > 0 {
		why = fmt.Sprintf(" with %s, which a TrainJob cannot change itself", strings.Join(names(fields), " and "))
	}
	c.Notes = append(c.Notes, fmt.Sprintf("%s %s of its own is a copy of %s%s", trainjob.RuntimeKind, c.runtime.GetName(), t.runtime.GetName(), why))
	return nil
}

// own is a copy of the runtime in the namespace of the job and under its name, or, where that is the runtime's, one like it, with fields of the pods
// of replicated jobs.
func (t *training) own(fields map[string]map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": t.runtime.DeepCopy().Object["spec"]}}
	u.SetAPIVersion(t.runtime.GetAPIVersion())
	u.SetKind(trainjob.RuntimeKind)
	u.SetNamespace(t.job.GetNamespace())
	u.SetName(t.job.GetName())
	if t.runtime.GetKind() == trainjob.RuntimeKind && t.runtime.GetName() == t.job.GetName() {
		u.SetName(t.job.GetName() + "-gang")
	}
	u.SetLabels(t.runtime.GetLabels()) // the framework is one
	for name, spec := range fields {
		for key, value := range spec {
			set(u, value, append(append([]string{"spec", "template"}, jobset.Reader().Template(name)...), "spec", key)...)
		}
	}
	return u
}

// made is the JobSet that the controller will make: as it is expected, with what was added to the pods of the gang.
func (t *training) made(expected, completed *unstructured.Unstructured) *unstructured.Unstructured {
	u := expected.DeepCopy()
	for name, template := range podTemplates(completed) {
		set(u, template, jobset.Reader().Template(name)...)
	}
	return u
}

// podTemplates are the pod templates of a JobSet by the names of their replicated jobs.
func podTemplates(set *unstructured.Unstructured) map[string]map[string]any {
	all := map[string]map[string]any{}
	items, _, _ := unstructured.NestedSlice(set.Object, "spec", "replicatedJobs")
	for _, each := range items {
		item, _ := each.(map[string]any)
		name, _ := item["name"].(string)
		if template, found, _ := unstructured.NestedMap(item, "template", "spec", "template"); found {
			all[name] = template
		}
	}
	return all
}

// added is the content of a part of a pod template that was not there before, down to single labels and annotations.
func added(was, is map[string]any, part string) map[string]any {
	before, _ := was[part].(map[string]any)
	now, _ := is[part].(map[string]any)
	more := map[string]any{}
	for key, value := range now {
		if equality.Semantic.DeepEqual(before[key], value) {
			continue
		}
		if below, ok := value.(map[string]any); ok && part == "metadata" {
			value = added(before, now, key)
			if len(below) == 0 {
				continue
			}
		}
		more[key] = value
	}
	return more
}

// names are the fields of pods in the order of their names.
func names(fields map[string]map[string]any) []string {
	all := map[string]bool{}
	for _, spec := range fields {
		for key := range spec {
			all[key] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

package trainjob

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
)

// The two kinds of runtime: of the cluster, and of a namespace.
const (
	ClusterRuntimeKind = "ClusterTrainingRuntime"
	RuntimeKind        = "TrainingRuntime"
)

// RuntimeKinds are what TrainJobs name their runtimes of.
func RuntimeKinds() []schema.GroupKind {
	return []schema.GroupKind{{Group: Group, Kind: ClusterRuntimeKind}, {Group: Group, Kind: RuntimeKind}}
}

// ancestorLabel is on the replicated job of a runtime whose step of a TrainJob it is.
const ancestorLabel = "trainer.kubeflow.org/trainjob-ancestor-step"

// RuntimeResource is where runtimes of a kind are served.
func RuntimeResource(kind string) schema.GroupVersionResource {
	resource := "trainingruntimes"
	if kind == ClusterRuntimeKind {
		resource = "clustertrainingruntimes"
	}
	return schema.GroupVersionResource{Group: Group, Version: Version, Resource: resource}
}

// RuntimeOf is the runtime that a TrainJob names: its kind, one of the cluster unless the job has another, and its name.
func RuntimeOf(job *unstructured.Unstructured) (kind, name string, err error) {
	s, err := specOf(job)
	if err != nil {
		return "", "", err
	}
	switch ref := s.RuntimeRef; {
	case ref.APIGroup != "" && ref.APIGroup != Group, ref.Kind != "" && ref.Kind != ClusterRuntimeKind && ref.Kind != RuntimeKind:
		return "", "", fmt.Errorf("spec.runtimeRef: %s of %s is no runtime", ref.Kind, ref.APIGroup)
	case ref.Kind == RuntimeKind:
		return RuntimeKind, ref.Name, nil
	default:
		return ClusterRuntimeKind, ref.Name, nil
	}
}

// OwnerOf is the TrainJob that owns a runtime, which goes when that job goes; empty for a runtime that is there for any.
func OwnerOf(runtime *unstructured.Unstructured) string {
	for _, owner := range runtime.GetOwnerReferences() {
		if group, _, _ := strings.Cut(owner.APIVersion, "/"); group == Group && owner.Kind == Kind {
			return owner.Name
		}
	}
	return ""
}

// GroupOf is the dialect of the PodGroup that the controller makes of every TrainJob of a runtime by itself; empty if it makes none.
func GroupOf(runtime *unstructured.Unstructured) gang.Dialect {
	f := &gang.Fields{Object: runtime}
	policy := f.Map("spec", "podGroupPolicy")
	switch {
	case policy["coscheduling"] != nil:
		return gang.SchedulerPlugins
	case policy["volcano"] != nil:
		return gang.Volcano
	}
	return ""
}

// Assumed is a runtime of one step, as most are.
func Assumed() *unstructured.Unstructured {
	step := map[string]any{"name": node, "template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{ancestorLabel: "trainer"}},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": node}}}}},
	}}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"mlPolicy": map[string]any{}, "template": map[string]any{"spec": map[string]any{"replicatedJobs": []any{step}}},
	}}}
	u.SetAPIVersion(Group + "/" + Version)
	u.SetKind(ClusterRuntimeKind)
	return u
}

// policy is what a runtime has about numbers of nodes.
type policy struct {
	NumNodes *int32 `json:"numNodes,omitempty"`
	MPI      *struct {
		RunLauncherAsNode bool `json:"runLauncherAsNode,omitempty"`
	} `json:"mpi,omitempty"`
}

// Expected is the JobSet that the controller makes of a TrainJob and its runtime, as far as it matters where and how its pods are
// scheduled: variables of its framework are left out.
func Expected(job, from *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	s, err := specOf(job)
	if err != nil {
		return nil, err
	}
	f := &gang.Fields{Object: from.DeepCopy()}
	template := f.Map("spec", "template")
	var p policy
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(f.Map("spec", "mlPolicy"), &p); err != nil {
		return nil, fmt.Errorf("decode spec.mlPolicy of %s %s: %w", from.GetKind(), from.GetName(), err)
	}
	if f.Err != nil {
		return nil, f.Err
	}
	body, _ := template["spec"].(map[string]any)
	if body == nil {
		return nil, fmt.Errorf("%s %s has no spec.template.spec", from.GetKind(), from.GetName())
	}
	annotations := map[string]any{}
	annotate := func(metadata map[string]any) {
		if of, ok := metadata["annotations"].(map[string]any); ok {
			maps.Copy(annotations, of)
		}
	}
	annotate(f.Map("spec", "template", "metadata"))
	patches := &gang.Fields{Object: job}
	for _, patch := range patches.List("spec", "runtimePatches") {
		at := &gang.Fields{Object: &unstructured.Unstructured{Object: patch}}
		with := at.Map("trainingRuntimeSpec", "template", "spec")
		if err := patchesWhatIs(body, with, from); err != nil {
			return nil, err
		}
		merge(body, with)
		annotate(at.Map("trainingRuntimeSpec", "template", "metadata"))
	}
	e := expectation{spec: s, policy: p, has: f.Map("spec", "mlPolicy") != nil}
	items, _ := body["replicatedJobs"].([]any)
	for _, each := range items {
		if item, ok := each.(map[string]any); ok {
			if err := e.apply(item); err != nil {
				return nil, err
			}
			if err := joinGroup(item, job.GetName(), GroupOf(from)); err != nil {
				return nil, err
			}
		}
	}
	if body["suspend"] = s.Suspend; !s.Suspend {
		delete(body, "suspend")
	}
	set := &unstructured.Unstructured{Object: map[string]any{"spec": body}}
	set.SetGroupVersionKind(schema.GroupVersionKind{Group: jobset.Group, Version: jobset.Version, Kind: jobset.Kind})
	set.SetName(job.GetName())
	set.SetNamespace(job.GetNamespace())
	if len(annotations) > 0 {
		set.Object["metadata"].(map[string]any)["annotations"] = annotations // the controller hands them on
	}
	return set, nil
}

// patchesWhatIs is an error if a patch is for a replicated job that its runtime has not. A runtime that was not read, which has no name, may have any.
func patchesWhatIs(body, patch map[string]any, from *unstructured.Unstructured) error {
	has := namesOf(body["replicatedJobs"])
	for _, name := range namesOf(patch["replicatedJobs"]) {
		if from.GetName() != "" && !slices.Contains(has, name) {
			return fmt.Errorf("spec.runtimePatches is about replicated job %q, and %s %s has %s", name, from.GetKind(), from.GetName(), strings.Join(has, ", "))
		}
	}
	return nil
}

// namesOf are the names of a list of objects.
func namesOf(list any) (names []string) {
	items, _ := list.([]any)
	for _, each := range items {
		names = append(names, nameOf(each))
	}
	return names
}

// merge merges a patch into an object as the controller does: maps by key, lists by the names of their items. Lists of items without names
// are replaced.
func merge(into, patch map[string]any) {
	for key, value := range patch {
		switch value := value.(type) {
		case map[string]any:
			if below, ok := into[key].(map[string]any); ok {
				merge(below, value)
				continue
			}
		case []any:
			if below, ok := into[key].([]any); ok && named(value) {
				into[key] = mergeNamed(below, value)
				continue
			}
		}
		into[key] = runtime.DeepCopyJSONValue(value)
	}
}

// named reports whether all items of a list are objects with names.
func named(list []any) bool {
	return !slices.ContainsFunc(list, func(each any) bool { return nameOf(each) == "" })
}

func nameOf(item any) string {
	m, _ := item.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

func mergeNamed(into, patch []any) []any {
	for _, each := range patch {
		i := slices.IndexFunc(into, func(item any) bool { return nameOf(item) == nameOf(each) })
		if i < 0 {
			into = append(into, runtime.DeepCopyJSONValue(each))
			continue
		}
		item, _ := into[i].(map[string]any)
		with, _ := each.(map[string]any)
		merge(item, with)
	}
	return into
}

// expectation is one run of Expected.
type expectation struct {
	spec
	policy policy
	// has reports whether the runtime has a policy of machine learning at all.
	has bool
}

// apply writes into a replicated job what the TrainJob and the policy of the runtime have about it.
func (e *expectation) apply(item map[string]any) error {
	f := &gang.Fields{Object: &unstructured.Unstructured{Object: item}}
	step, _ := f.Map("template", "metadata", "labels")[ancestorLabel].(string)
	trains := step == "trainer" && e.has
	launched := e.policy.MPI != nil && e.policy.MPI.RunLauncherAsNode
	count := f.Int32("template", "spec", "parallelism")
	if f.Map("template", "spec")["parallelism"] == nil {
		count = 1
	}
	switch name := nameOf(item); {
	case e.policy.MPI != nil && name == node:
		count = e.workers(count, launched)
	case e.policy.MPI != nil:
	case trains:
		count = e.nodes(1)
	}
	if f.Err != nil {
		return f.Err
	}
	set := func(value any, path ...string) error { return unstructured.SetNestedField(item, value, path...) }
	if err := set(int64(count), "template", "spec", "parallelism"); err != nil {
		return err
	}
	if err := set(int64(count), "template", "spec", "completions"); err != nil {
		return err
	}
	if e.Trainer == nil || !trains && !(launched && nameOf(item) == node) {
		return nil
	}
	return e.Trainer.apply(f, step == "trainer")
}

// nodes are those that a TrainJob has, else those of its runtime.
func (e *expectation) nodes(fallback int32) int32 {
	switch {
	case e.Trainer != nil && e.Trainer.NumNodes != nil:
		return *e.Trainer.NumNodes
	case e.policy.NumNodes != nil:
		return *e.policy.NumNodes
	}
	return fallback
}

// workers are the pods of an MPI runtime besides the launcher, which may be one of the nodes.
func (e *expectation) workers(fallback int32, launched bool) int32 {
	if e.Trainer == nil || e.Trainer.NumNodes == nil {
		return fallback
	}
	if launched {
		return max(*e.Trainer.NumNodes-1, 1)
	}
	return *e.Trainer.NumNodes
}

// apply writes what a TrainJob has about the container that does the work. Only the step that trains has its image and its command.
func (t *trainer) apply(f *gang.Fields, trains bool) error {
	for _, c := range f.List("template", "spec", "template", "spec", "containers") {
		if c["name"] != node {
			continue
		}
		if t.ResourcesPerNode != nil {
			resources, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t.ResourcesPerNode)
			if err != nil {
				return fmt.Errorf("convert resourcesPerNode: %w", err)
			}
			merge(c, map[string]any{"resources": resources})
		}
		if !trains {
			continue
		}
		if t.Image != "" {
			c["image"] = t.Image
		}
		for key, argv := range map[string][]string{"command": t.Command, "args": t.Args} {
			if argv != nil {
				c[key] = anys(argv)
			}
		}
	}
	return f.Err
}

func anys(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}

// joinGroup puts the pods of a replicated job into the group that the controller makes by itself in a dialect; empty for none.
func joinGroup(item map[string]any, name string, d gang.Dialect) error {
	pods := []string{"template", "spec", "template", "metadata"}
	switch d {
	case gang.SchedulerPlugins:
		return unstructured.SetNestedField(item, name, append(pods, "labels", schedulerplugins.PodGroupLabel)...)
	case gang.Volcano:
		return unstructured.SetNestedField(item, name, append(pods, "annotations", volcano.GroupAnnotation)...)
	}
	return nil
}

// KeepTimes gives the patches of a TrainJob the times that the API server gave them when it was tried: it would give others later. What
// others added to it then, such as Kueue, they add again.
func KeepTimes(job, stored *unstructured.Unstructured) error {
	if job.GroupVersionKind().GroupKind() != Reader().GroupKind {
		return nil
	}
	patches, found, err := unstructured.NestedSlice(stored.Object, "spec", "runtimePatches")
	if err != nil || !found {
		return err
	}
	written, _, err := unstructured.NestedSlice(job.Object, "spec", "runtimePatches")
	if err != nil {
		return err
	}
	managers := map[any]bool{}
	for _, patch := range written {
		patch, _ := patch.(map[string]any)
		managers[patch["manager"]] = true
	}
	patches = slices.DeleteFunc(patches, func(patch any) bool {
		stored, _ := patch.(map[string]any)
		return !managers[stored["manager"]]
	})
	if len(patches) == 0 {
		return nil
	}
	return unstructured.SetNestedSlice(job.Object, patches, "spec", "runtimePatches")
}

// Patch adds to a TrainJob, for a manager, a patch of its runtime with metadata of the pods of each replicated job by its name. A manager has one patch:
// what the job has of it already is merged with that.
func Patch(job *unstructured.Unstructured, manager string, pods map[string]map[string]any) error {
	if len(pods) == 0 {
		return nil
	}
	var jobs []any
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		jobs = append(jobs, map[string]any{"name": name, "template": map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": pods[name]}}}})
	}
	list, _, err := unstructured.NestedSlice(job.Object, "spec", "runtimePatches")
	if err != nil {
		return fmt.Errorf("spec.runtimePatches: %w", err)
	}
	patch := map[string]any{"manager": manager, "trainingRuntimeSpec": map[string]any{"template": map[string]any{"spec": map[string]any{"replicatedJobs": jobs}}}}
	i := slices.IndexFunc(list, func(each any) bool {
		has, ok := each.(map[string]any)
		return ok && has["manager"] == manager
	})
	if i < 0 {
		list = append(list, patch)
	} else {
		has, _ := list[i].(map[string]any)
		delete(has, "time") // of what it was before
		merge(has, patch)
	}
	return unstructured.SetNestedSlice(job.Object, list, "spec", "runtimePatches")
}

// HasRuntime reports whether an object is a TrainJob with a runtime of its namespace, which may be its own.
func HasRuntime(u *unstructured.Unstructured) bool {
	if u == nil || u.GroupVersionKind().GroupKind() != Reader().GroupKind {
		return false
	}
	kind, _, err := RuntimeOf(u)
	return err == nil && kind == RuntimeKind
}

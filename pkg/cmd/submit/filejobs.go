package submit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	jobkinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/pkg/submit/manifest"
)

// applyDefaults gives the objects of a file their namespaces and names, finds the gang of each job, and refuses jobs that the operator
// would not run.
func (o *FileOptions) applyDefaults(m *manifest.Manifest, namespace string) ([]part, error) {
	var parts []part
	taken := map[string]bool{}
	for _, u := range m.Jobs {
		if err := o.defaultNamespace(u, namespace); err != nil {
			return nil, err
		}
		if u.GetName() == "" {
			u.SetName(u.GetGenerateName() + o.Suffix())
			u.SetGenerateName("")
		}
		reader, ok := jobkinds.ByKind(u.GroupVersionKind().GroupKind())
		if !ok {
			return nil, failure.Errorf("%s: gangctl does not know jobs of kind %s", o.name(), u.GroupVersionKind())
		}
		job, err := reader.Read(u)
		if err != nil {
			return nil, failure.Errorf("%s: %w", o.name(), err)
		}
		if problem, hint := jobProblem(reader, job); problem != "" {
			return nil, failure.Errorf("%s: %s: %s", o.name(), named(u), problem).WithHint("%s", hint)
		}
		if taken[named(u)] {
			return nil, failure.Errorf("%s: it holds %s twice", o.name(), named(u))
		}
		taken[named(u)] = true
		parts = append(parts, part{job: u, kind: reader, read: job})
	}
	for _, group := range m.Groups {
		if group.GetName() == "" {
			return nil, failure.Errorf("%s: the PodGroup has no metadata.name", o.name())
		}
		group.SetOwnerReferences(nil) // it will be owned by its job
	}
	for _, other := range m.Others {
		if err := o.defaultOtherNamespace(other, namespace); err != nil {
			return nil, err
		}
	}
	if err := pair(parts, m.Groups); err != nil {
		return nil, failure.Errorf("%s: %w", o.name(), err)
	}
	return parts, nil
}

// defaultNamespace gives an object that has none the namespace of the command line, and refuses another one where that was typed.
func (o *FileOptions) defaultNamespace(u *unstructured.Unstructured, namespace string) error {
	switch own := u.GetNamespace(); {
	case own == "":
		u.SetNamespace(namespace)
	case o.changed("namespace") && own != namespace:
		return failure.Usagef("--namespace %s contradicts %s, whose %s is in namespace %s", namespace, o.name(), u.GetKind(), own).
			WithHint("leave out --namespace, or change the file")
	}
	return nil
}

// defaultOtherNamespace does so for an object that is no job. Only the kinds of Kubernetes itself are known here; the API server
// reports of others whether they have a namespace before anything is created.
func (o *FileOptions) defaultOtherNamespace(u *unstructured.Unstructured, namespace string) error {
	switch namespaced, known := namespacedKind(u.GroupVersionKind().GroupKind()); {
	case known && namespaced, !known && u.GetNamespace() != "":
		return o.defaultNamespace(u, namespace)
	case known && u.GetNamespace() != "":
		return failure.Errorf("%s: %s %s has a namespace, which its kind has not", o.name(), u.GetKind(), u.GetName()).WithHint("leave metadata.namespace out of it")
	}
	return nil
}

// jobProblem is why the operator would not run a job, or make none of its pods; it is empty if it would.
func jobProblem(reader gang.JobReader, job gang.Job) (problem, hint string) {
	if len(job.Problems) > 0 {
		return strings.Join(job.Problems, "; "), ""
	}
	names := reader.RoleNames
	for _, r := range job.Roles {
		path := strings.Join(reader.TemplatePath(r), ".")
		if r.Replicas < 0 {
			return fmt.Sprintf("%s: %d: must be 0 or more", strings.TrimSuffix(path, "template")+"replicas", r.Replicas), ""
		}
		if less := lessThanNothing(&r.Template.Spec); less != "" {
			return path + ".spec." + less + ": must be 0 or more", ""
		}
		if len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, r.Name) }) {
			problem = fmt.Sprintf("%s: not a role of a %s: must be one of %s", strings.TrimSuffix(path, ".template"), job.Kind.Kind, strings.Join(names, ", "))
			if nearest := suggest.Nearest(r.Name, names); nearest != "" {
				hint = "did you mean " + nearest + "?"
			}
			return problem, hint
		}
	}
	if job.Total() == 0 {
		return "it has no members: every role has 0 replicas", ""
	}
	if reader.Controller.Name == "" {
		return "", "" // the API server checks what it makes itself
	}
	return nameProblem(reader, job.Meta.Name, job.Roles)
}

// lessThanNothing is where a container requests less than nothing, and how much; empty if none does.
func lessThanNothing(spec *corev1.PodSpec) string {
	for i, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		at := fmt.Sprintf("initContainers[%d]", i)
		if i >= len(spec.InitContainers) {
			at = fmt.Sprintf("containers[%d]", i-len(spec.InitContainers))
		}
		for _, list := range []struct {
			name string
			of   corev1.ResourceList
		}{{"limits", c.Resources.Limits}, {"requests", c.Resources.Requests}} {
			for _, resource := range slices.Sorted(maps.Keys(list.of)) {
				if amount := list.of[resource]; amount.Sign() < 0 {
					return fmt.Sprintf("%s.resources.%s.%s: %s", at, list.name, resource, amount.String())
				}
			}
		}
	}
	return ""
}

// part is a job of a file.
type part struct {
	job  *unstructured.Unstructured
	kind gang.JobReader
	read gang.Job
	// groups are the objects in the file that declare its gang: one, unless the job has several gangs.
	groups []*unstructured.Unstructured
	// owned are further objects of the file that name it as their owner.
	owned []*unstructured.Unstructured
	// runtime is that of a TrainJob; nil for other kinds.
	runtime *runtimeOf
}

// ownedBy gives each job the objects of the file that name it as their only owner, as they do where they were read from a cluster, and returns the rest. The
// uid that they have of it is not the one that it will have. A runtime has to be there before its job.
func ownedBy(parts []part, others []*unstructured.Unstructured) (rest []*unstructured.Unstructured) {
	for _, other := range others {
		i := slices.IndexFunc(parts, func(p part) bool { return p.owns(other) })
		if i < 0 {
			rest = append(rest, other)
			continue
		}
		other.SetOwnerReferences(nil)
		other.SetNamespace(parts[i].job.GetNamespace())
		parts[i].owned = append(parts[i].owned, other)
	}
	return rest
}

// owns reports whether an object names the job as its owner.
func (p part) owns(u *unstructured.Unstructured) bool {
	owners, kind := u.GetOwnerReferences(), u.GroupVersionKind().GroupKind()
	if len(owners) != 1 || kind.Group == trainjob.Group || u.GetNamespace() != "" && u.GetNamespace() != p.job.GetNamespace() {
		return false
	}
	namespaced, known := namespacedKind(kind)
	group, _, _ := strings.Cut(owners[0].APIVersion, "/")
	return (namespaced || !known) && group == p.kind.Group && owners[0].Kind == p.kind.Kind && owners[0].Name == p.job.GetName()
}

// pair finds the job of each group: the one whose pods name it, or that is called like it, or the only one there is. A gang is
// one job's.
func pair(parts []part, groups []*unstructured.Unstructured) error {
	for _, group := range groups {
		p, err := ownerOf(group, parts)
		if err != nil {
			return err
		}
		if len(p.groups) > 0 && p.read.Division != gang.ByRole {
			return fmt.Errorf("%s has two PodGroups, %s and %s", named(p.job), p.groups[0].GetName(), group.GetName())
		}
		if own := group.GetNamespace(); own != "" && own != p.read.Meta.Namespace {
			return fmt.Errorf("PodGroup %s is in namespace %s, but its %s in %s", group.GetName(), own, p.read.Kind.Kind, p.read.Meta.Namespace)
		}
		group.SetNamespace(p.read.Meta.Namespace)
		p.groups = append(p.groups, group)
	}
	return refuseShared(parts)
}

// ownerOf is the job whose gang a group declares.
func ownerOf(group *unstructured.Unstructured, parts []part) (*part, error) {
	namesIt := func(j gang.Job) bool { return slices.Contains(gangsOf(j), group.GetName()) }
	sameName := func(j gang.Job) bool { return j.Meta.Name == group.GetName() }
	for _, is := range []func(gang.Job) bool{namesIt, sameName} {
		for i, p := range parts {
			here := len(parts) == 1 || group.GetNamespace() == "" || group.GetNamespace() == p.read.Meta.Namespace
			if here && is(p.read) {
				return &parts[i], nil
			}
		}
	}
	if len(parts) == 1 {
		return &parts[0], nil
	}
	return nil, fmt.Errorf("PodGroup %s is of none of the jobs: none has its name, and no pods name it", group.GetName())
}

// gangsOf are the gangs that the pods of a job name, in any dialect.
func gangsOf(job gang.Job) []string {
	var names []string
	for _, role := range job.Roles {
		pod := &corev1.Pod{ObjectMeta: role.Template.ObjectMeta, Spec: role.Template.Spec}
		for _, reader := range dialect.Readers() {
			if name, ok := reader.GroupOf(pod); ok && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// refuseShared refuses two jobs in one gang: its object is owned by one of them, and would go when that goes.
func refuseShared(parts []part) error {
	owners := map[string]string{}
	for _, p := range parts {
		job := p.read
		for _, name := range gangsOf(job) {
			key := job.Meta.Namespace + "/" + name
			if other := owners[key]; other != "" {
				return fmt.Errorf("the pods of %s and of %s are in one gang, %s: each job is a gang of its own", other, job.Kind.Kind+" "+job.Meta.Name, name)
			}
			owners[key] = job.Kind.Kind + " " + job.Meta.Name
		}
	}
	return nil
}

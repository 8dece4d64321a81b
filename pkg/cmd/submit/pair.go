package submit

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
)

// part is a job of a file, and the object in the file that declares its gang; nil without.
type part struct {
	job, group *unstructured.Unstructured
	read       gang.Job
}

// pair finds the job of each group: the one whose pods name it, or that is called like it, or the only one there is. A gang is
// one job's. read are the jobs in the same order.
func pair(jobs []*unstructured.Unstructured, read []gang.Job, groups []*unstructured.Unstructured) ([]part, error) {
	parts := make([]part, len(jobs))
	for i, job := range jobs {
		parts[i].job, parts[i].read = job, read[i]
	}
	for _, group := range groups {
		at, err := ownerOf(group, read)
		if err != nil {
			return nil, err
		}
		if other := parts[at].group; other != nil {
			return nil, fmt.Errorf("%s has two PodGroups, %s and %s", named(jobs[at]), other.GetName(), group.GetName())
		}
		if own := group.GetNamespace(); own != "" && own != read[at].Meta.Namespace {
			return nil, fmt.Errorf("PodGroup %s is in namespace %s, but its %s in %s", group.GetName(), own, read[at].Kind.Kind, read[at].Meta.Namespace)
		}
		group.SetNamespace(read[at].Meta.Namespace)
		parts[at].group = group
	}
	return parts, refuseShared(read)
}

// ownerOf is the index of the job whose gang a group declares.
func ownerOf(group *unstructured.Unstructured, jobs []gang.Job) (int, error) {
	namesIt := func(j gang.Job) bool { return slices.Contains(gangsOf(j), group.GetName()) }
	sameName := func(j gang.Job) bool { return j.Meta.Name == group.GetName() }
	for _, is := range []func(gang.Job) bool{namesIt, sameName} {
		here := func(j gang.Job) bool {
			return is(j) && (len(jobs) == 1 || group.GetNamespace() == "" || group.GetNamespace() == j.Meta.Namespace)
		}
		if i := slices.IndexFunc(jobs, here); i >= 0 {
			return i, nil
		}
	}
	if len(jobs) == 1 {
		return 0, nil
	}
	return 0, fmt.Errorf("PodGroup %s is of none of the jobs: none has its name, and no pods name it", group.GetName())
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
func refuseShared(jobs []gang.Job) error {
	owners := map[string]string{}
	for _, job := range jobs {
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

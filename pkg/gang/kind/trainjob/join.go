package trainjob

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
)

// join gives a TrainJob the members of its JobSet. Replicated jobs that end before others are made, such as initializers, have none: their
// pods are gone when members start.
func join(job, made *gang.Job) {
	steady, first := WithoutFirst(made.Object)
	read, err := jobset.Reader().Read(steady)
	if err != nil {
		return // the JobSet is the controller's: it was read before
	}
	job.Made, job.Roles, job.Sequential, job.Division = made, read.Roles, read.Sequential, read.Division
	job.Exclusive, job.Unmodelled = read.Exclusive, read.Unmodelled
	job.Problems = append(slices.Clip(job.Problems), read.Problems...)
	job.Before = unfinished(made.Object, first)
	for _, role := range made.Roles {
		if slices.Contains(first, role.Name) {
			job.First = append(job.First, role)
		}
	}
}

// Foresee gives a TrainJob without a JobSet the members that the controller will make of it and of its runtime. One that cannot be made so stays as it is.
func Foresee(job *gang.Job, from *unstructured.Unstructured) {
	set, err := Expected(job.Object, from)
	if err != nil {
		return
	}
	made, err := jobset.Reader().Job(set)
	if err != nil {
		return
	}
	join(job, made)
	job.Made = nil
}

// WithoutFirst is a JobSet without the replicated jobs that are complete before others start, and what these are called.
func WithoutFirst(set *unstructured.Unstructured) (steady *unstructured.Unstructured, first []string) {
	items, _, _ := unstructured.NestedSlice(set.Object, "spec", "replicatedJobs")
	ends := map[string]bool{}
	for _, each := range items {
		for _, d := range dependencies(each) {
			if name, _ := d["name"].(string); d["status"] == "Complete" && !ends[name] {
				first, ends[name] = append(first, name), true
			}
		}
	}
	if len(first) == 0 {
		return set, nil
	}
	var rest []any
	for _, each := range items {
		item, ok := each.(map[string]any)
		if name, _ := item["name"].(string); ok && ends[name] {
			continue
		}
		if ok {
			withoutDependencies(item, ends)
		}
		rest = append(rest, each)
	}
	steady = &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range set.Object {
		steady.Object[key] = value
	}
	spec := map[string]any{}
	if old, ok := set.Object["spec"].(map[string]any); ok {
		for key, value := range old {
			spec[key] = value
		}
	}
	spec["replicatedJobs"] = rest
	steady.Object["spec"] = spec
	return steady, first
}

func dependencies(replicatedJob any) []map[string]any {
	item, _ := replicatedJob.(map[string]any)
	list, _ := item["dependsOn"].([]any)
	var all []map[string]any
	for _, each := range list {
		if d, ok := each.(map[string]any); ok {
			all = append(all, d)
		}
	}
	return all
}

// withoutDependencies leaves out of a replicated job that it waits for others.
func withoutDependencies(item map[string]any, on map[string]bool) {
	var left []any
	for _, d := range dependencies(item) {
		if name, _ := d["name"].(string); !on[name] {
			left = append(left, d)
		}
	}
	if delete(item, "dependsOn"); len(left) > 0 {
		item["dependsOn"] = left
	}
}

// unfinished is why the members of a job are not made yet: replicated jobs that come first have not ended. It is empty if all have.
func unfinished(set *unstructured.Unstructured, first []string) string {
	f := &gang.Fields{Object: set}
	done := map[string]bool{}
	for _, s := range f.List("status", "replicatedJobsStatus") {
		name, _ := s["name"].(string)
		n, _ := s["succeeded"].(int64)
		done[name] = n > 0
	}
	left := slices.DeleteFunc(slices.Clone(first), func(name string) bool { return done[name] })
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("%s of it must complete first", strings.Join(left, " and "))
}

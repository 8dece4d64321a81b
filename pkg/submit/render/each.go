package render

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
)

// gangsOf are the roles of each gang of a job.
func gangsOf(job gang.Job) [][]gang.Role {
	if job.Division != gang.ByRole {
		return [][]gang.Role{job.Roles}
	}
	var all [][]gang.Role
	for _, role := range job.Roles {
		if role.Replicas > 0 {
			all = append(all, []gang.Role{role})
		}
	}
	return all
}

// divided reports whether each role of a job is to be a gang. A file that puts pods of several roles into one gang, or has one PodGroup for
// all, is left as it is.
func divided(job gang.Job, podGroups []*unstructured.Unstructured) bool {
	if job.Division != gang.ByRole {
		return false
	}
	names := map[string]bool{}
	for _, role := range job.Roles {
		_, name := groupReference(&role.Template)
		if name != "" && names[name] {
			return false
		}
		names[name] = true
		names[roleGroup(job, role)] = true
	}
	return !slices.ContainsFunc(podGroups, func(u *unstructured.Unstructured) bool { return !names[u.GetName()] })
}

// roleGroup is the name of the group of a role that is added.
func roleGroup(job gang.Job, role gang.Role) string {
	return job.Meta.Name + "-" + strings.ToLower(role.Name)
}

// completeEach makes a gang of each role of a job whose controller makes pods of one role after those of another.
func completeEach(job *unstructured.Unstructured, reader gang.JobReader, read gang.Job, podGroups []*unstructured.Unstructured, s FileSpec) (*Completed, error) {
	each := fmt.Sprintf("%s: each of them is a gang of its own", read.Sequential)
	if s.MinAvailable > 0 {
		return nil, &ContradictionError{Flag: "min-available", File: each + ", of all of its members"}
	}
	all := &Completed{Job: job}
	declared := false
	for _, roles := range gangsOf(read) {
		one := read
		one.Roles, one.Sequential = roles, ""
		c := &completion{Completed: Completed{Job: job}, reader: reader, roles: roles, declared: one, s: s, groupName: roleGroup(read, roles[0])}
		_, name := groupReference(&roles[0].Template)
		for _, u := range podGroups {
			if u.GetName() == name || name == "" && u.GetName() == c.groupName {
				c.podGroup = u.DeepCopy()
			}
		}
		added, err := c.run()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", roles[0].Name, err)
		}
		declared = declared || added
		all.PodGroups = append(all.PodGroups, c.PodGroups...)
		for _, note := range c.Notes {
			if !slices.Contains(all.Notes, note) {
				all.Notes = append(all.Notes, note)
			}
		}
	}
	if declared {
		all.Notes = append([]string{each}, all.Notes...)
	}
	return all, nil
}

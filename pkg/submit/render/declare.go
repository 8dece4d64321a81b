package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
)

// declare adds what the job lacks to be a gang of c.dialect: group references of the pods, the scheduling policy, the PodGroup.
func (c *completion) declare() error {
	c.leaveOut()
	n, err := c.minimum()
	if err != nil {
		return err
	}
	if total := c.total(); n > total {
		return fmt.Errorf("its gang needs %d members, but has %d", n, total)
	}
	writer, err := writerOf(c.dialect)
	if err != nil {
		return err
	}
	d := gang.Declaration{
		Key:       gang.Key{Dialect: c.dialect, Namespace: c.Job.GetNamespace(), Name: cmp.Or(c.name, c.groupName, c.Job.GetName())},
		MinMember: n, MinResources: c.minResources(n), Queue: cmp.Or(c.s.Queue, c.declared.Queue), PriorityClass: c.declared.PriorityClass,
	}
	if c.podGroup != nil {
		d.Key.Name = c.podGroup.GetName()
	}
	if err := c.refer(writer, d); err != nil {
		return err
	}
	c.policy(d)
	if c.podGroup == nil {
		c.podGroup = groupObject(writer, d, Spec{Gang: GangSpec{Version: c.s.Version}})
		c.timeout()
	}
	return nil
}

// total is the number of members over all roles that are in the gang.
func (c *completion) total() int32 { return gang.Job{Roles: c.roles}.Total() }

// timeout takes over what the job's policy has for the time in which the gang is to be placed.
func (c *completion) timeout() {
	seconds, found, _ := unstructured.NestedFieldNoCopy(c.Job.Object, append(slices.Clone(c.reader.Policy), "scheduleTimeoutSeconds")...)
	if c.dialect == gang.SchedulerPlugins && len(c.reader.Policy) > 0 && found && seconds != nil {
		set(c.podGroup, seconds, "spec", "scheduleTimeoutSeconds")
	}
}

// minimum is how many members must start together: as the PodGroup has it, the labels, the command line, the job's policy, or all.
func (c *completion) minimum() (int32, error) {
	if c.podGroup != nil {
		reader, _ := dialect.ReaderOf(c.dialect)
		d, err := reader.Decode(c.podGroup)
		return d.MinMember, err
	}
	n := c.s.MinAvailable
	check := func(found int32, where string) error {
		if n > 0 && n != found {
			return &ContradictionError{Flag: "min-available", File: fmt.Sprintf("%s is %d", where, found)}
		}
		n = found
		return nil
	}
	if c.dialect == gang.Labels && c.name != "" {
		for _, role := range c.roles {
			template := &role.Template
			found, err := labels.MinAvailable(template)
			if err != nil && template.Labels[labels.MinAvailableLabel] == "" {
				continue
			}
			if err == nil {
				err = check(found, "label "+labels.MinAvailableLabel)
			}
			if err != nil {
				return 0, fmt.Errorf("the pods of %s: %w", role.Name, err)
			}
		}
		if n > 0 {
			return n, nil
		}
	}
	if declared := c.declared.MinMember; declared != nil && len(c.reader.Policy) == 0 {
		return cmp.Or(n, *declared), nil // of a job that may shrink so far
	} else if declared != nil {
		where := strings.Join(c.reader.Policy, ".") + ".minAvailable"
		if err := check(*declared, where); err != nil {
			return 0, err
		}
		if n < 1 {
			return 0, fmt.Errorf("%s is %d: must be 1 or more", where, n)
		}
	}
	return cmp.Or(n, c.total()), nil
}

// leaveOut: if the file puts some pods into a gang, it left the others out on purpose.
func (c *completion) leaveOut() {
	if c.name == "" || len(c.ungrouped) == 0 {
		return
	}
	c.roles = slices.DeleteFunc(slices.Clone(c.roles), func(r gang.Role) bool { return slices.Contains(c.ungrouped, r.Name) })
	c.Notes = append(c.Notes, fmt.Sprintf("the pods of %s are in no gang, as the file has it", strings.Join(c.ungrouped, ", ")))
}

// refer puts the pods into the gang.
func (c *completion) refer(w gang.Writer, d gang.Declaration) error {
	for _, role := range c.roles {
		reference := &corev1.PodTemplateSpec{}
		w.SetGroup(reference, d, strings.ToLower(role.Name))
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(reference)
		if err != nil {
			return fmt.Errorf("convert group reference: %w", err)
		}
		prune(content)
		c.merge(content, c.reader.TemplatePath(role))
	}
	return nil
}

// merge writes every value of a tree, and leaves the other values.
func (c *completion) merge(tree map[string]any, path []string) {
	for key, value := range tree {
		at := append(slices.Clone(path), key)
		if child, ok := value.(map[string]any); ok {
			c.merge(child, at)
			continue
		}
		set(c.Job, value, at...)
	}
}

// policy sets the same numbers for an operator that manages gangs itself, where the file does not.
func (c *completion) policy(d gang.Declaration) {
	if len(c.reader.Policy) == 0 {
		return
	}
	at := func(fields ...string) []string { return append(slices.Clone(c.reader.Policy), fields...) }
	if c.declared.MinMember == nil {
		set(c.Job, int64(d.MinMember), at("minAvailable")...)
	}
	if c.s.Queue != "" && c.declared.Queue == "" {
		set(c.Job, c.s.Queue, at("queue")...)
	}
	if c.policyResources() == nil {
		for name, quantity := range d.MinResources {
			set(c.Job, quantity.String(), at("minResources", string(name))...)
		}
	}
}

// policyResources are the minResources of the job's policy; nil if it has none.
func (c *completion) policyResources() corev1.ResourceList {
	if len(c.reader.Policy) == 0 {
		return nil
	}
	f := gang.Fields{Object: c.Job}
	return f.Resources(append(slices.Clone(c.reader.Policy), "minResources")...)
}

// minResources are those of the job's policy, or what so many members request.
func (c *completion) minResources(minAvailable int32) corev1.ResourceList {
	if declared := c.policyResources(); declared != nil {
		return declared
	}
	return gangResources(c.roles, minAvailable)
}

// RemoveDerived removes from the policy of a job that was changed what submit wrote there for the members that it had before: the minimum, if that was
// all of them, and what the minimum requested. Another number or amount was meant so, and stays.
func RemoveDerived(job *unstructured.Unstructured, before gang.Job) {
	if len(before.Reader.Policy) == 0 {
		return
	}
	at := func(field string) []string { return append(slices.Clone(before.Reader.Policy), field) }
	minimum := before.Total()
	if before.MinMember != nil {
		minimum = *before.MinMember
	}
	f := gang.Fields{Object: job}
	if has := f.Resources(at("minResources")...); has != nil && equality.Semantic.DeepEqual(has, gangResources(before.Roles, minimum)) {
		unstructured.RemoveNestedField(job.Object, at("minResources")...)
	}
	if minimum == before.Total() && f.Int32(at("minAvailable")...) == minimum {
		unstructured.RemoveNestedField(job.Object, at("minAvailable")...)
	}
}

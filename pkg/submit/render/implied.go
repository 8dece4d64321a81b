package render

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
)

// decideImplied decides for a job of several gangs, whose controller labels the pods of each. One template is that of all gangs, so that it
// cannot name the group of a pod: a scheduler has to read the controller's labels, as gangctl's does.
func (c *completion) decideImplied() (bool, error) {
	const each = "each of its replicas is a gang of its own"
	scheduler := cmp.Or(c.scheduler, c.s.Scheduler)
	switch {
	case c.s.Dialect == gang.None:
		c.ungroup()
		return false, nil
	case c.podGroup != nil:
		return false, fmt.Errorf("it holds PodGroup %s, but %s", c.podGroup.GetName(), each)
	case c.declared.Sequential != "":
		return false, fmt.Errorf("%s: %w", c.declared.Sequential, ErrSequential)
	case c.s.DialectSet && c.s.Dialect != c.reader.Dialect:
		return false, &ContradictionError{Flag: "dialect", File: each + ", and their one pod template cannot name a group for each"}
	case c.s.MinAvailable > 0:
		return false, &ContradictionError{Flag: "min-available", File: each + " of all of its members"}
	case cmp.Or(scheduler, corev1.DefaultSchedulerName) == corev1.DefaultSchedulerName:
		return false, fmt.Errorf("%s, which scheduler %s does not know: %w", each, cmp.Or(scheduler, corev1.DefaultSchedulerName), ErrNotEnforced)
	}
	reader, _ := dialect.ReaderOf(c.reader.Dialect)
	if dialect.Affinity(reader, scheduler) < 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%s: scheduler %s starts it whole if the controller of %s makes PodGroups for that scheduler",
			each, scheduler, c.reader.Kind))
	}
	return true, nil
}

// ungroup has the pods be in no gang, whatever scheduler they have.
func (c *completion) ungroup() {
	for _, role := range c.roles {
		set(c.Job, string(gang.None), append(c.reader.TemplatePath(role), "metadata", "annotations", gang.DialectAnnotation)...)
	}
}

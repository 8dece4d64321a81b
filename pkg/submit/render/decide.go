package render

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// ErrNotEnforced is the cause of an error about members that would start one by one.
var ErrNotEnforced = errors.New("nobody would start its members together")

// decide reports whether something is to be added to make the job a gang. c.dialect is the one in which, then.
func (c *completion) decide() (bool, error) {
	if c.s.SchedulerTyped && c.scheduler != "" && c.scheduler != c.s.Scheduler {
		return false, &ContradictionError{Flag: "scheduler", File: "its members ask for " + c.scheduler}
	}
	switch {
	case c.PodGroup != nil:
		return true, c.checkPodGroup()
	case c.name == "":
		return c.decideUnmarked()
	case c.s.DialectTyped && c.s.Dialect == gang.None:
		return false, nil
	case c.s.DialectTyped && !sameMarks(c.s.Dialect, c.dialect):
		return false, &ContradictionError{Flag: "dialect", File: fmt.Sprintf("its pods are marked as gang %s in dialect %s", c.name, c.dialect)}
	case c.dialect == gang.SchedulerPlugins, c.dialect == gang.Labels:
		return true, nil
	case sameMarks(c.s.Dialect, c.dialect):
		c.dialect = c.s.Dialect
		return true, nil
	case sameMarks(c.dialect, gang.Volcano) && c.adopt():
		return true, nil
	case c.s.MinAvailable > 0:
		return false, &ContradictionError{Flag: "min-available", File: fmt.Sprintf("it declares its gang itself, in dialect %s", c.dialect)}
	}
	// The group may be made by an operator, or be there already.
	c.Notes = append(c.Notes, fmt.Sprintf("the file declares gang %s in dialect %s itself: nothing is added", c.name, c.dialect))
	return false, nil
}

// sameMarks reports whether pods of two dialects carry the same marks, as those of Volcano and of kube-batch do.
func sameMarks(a, b gang.Dialect) bool {
	annotated := func(d gang.Dialect) bool { return d == gang.Volcano || d == gang.KubeBatch }
	return a == b || annotated(a) && annotated(b)
}

// checkPodGroup holds the PodGroup of the file against the pods and the command line.
func (c *completion) checkPodGroup() error {
	own, name := DialectOf(c.PodGroup), c.PodGroup.GetName()
	switch {
	case own == "":
		return fmt.Errorf("it holds PodGroup %s of %s, which gangctl does not know", name, c.PodGroup.GetAPIVersion())
	case c.name != "" && !sameMarks(own, c.dialect):
		return fmt.Errorf("it holds PodGroup %s, but its pods are marked as gang %s in dialect %s", name, c.name, c.dialect)
	case c.name != "" && c.name != name:
		return fmt.Errorf("it holds PodGroup %s, but its pods name PodGroup %s", name, c.name)
	case c.s.DialectTyped && c.s.Dialect != own:
		return &ContradictionError{Flag: "dialect", File: "it holds PodGroup " + name}
	case c.s.MinAvailable > 0:
		return &ContradictionError{Flag: "min-available", File: fmt.Sprintf("it holds PodGroup %s, whose minimum counts", name)}
	}
	c.dialect = own
	return c.replace()
}

// DialectOf is the dialect of a group object; empty for one that is not known.
func DialectOf(group *unstructured.Unstructured) gang.Dialect {
	for _, r := range dialect.Readers() {
		for _, kind := range r.Kinds {
			if kind.GroupKind == group.GroupVersionKind().GroupKind() {
				return r.Dialect
			}
		}
	}
	return ""
}

// decideUnmarked decides for a file that says nothing of a gang. gangctl's own scheduler reads every dialect.
func (c *completion) decideUnmarked() (bool, error) {
	if c.s.Dialect == gang.None {
		return false, nil
	}
	reader, _ := dialect.ReaderOf(c.s.Dialect)
	switch {
	case c.scheduler == corev1.DefaultSchedulerName && c.s.Dialect != gang.Native:
		return false, fmt.Errorf("its members ask for %s: %w", c.scheduler, ErrNotEnforced)
	case c.scheduler != "" && c.scheduler != schedulerplugins.DefaultScheduler && dialect.Affinity(reader, c.scheduler) < 0:
		if c.s.DialectTyped {
			return false, &ContradictionError{Flag: "dialect", File: fmt.Sprintf("its members ask for %s, which reads gangs of another dialect", c.scheduler)}
		}
		if c.adopt() {
			return true, nil
		}
		if c.s.MinAvailable > 0 {
			return false, &ContradictionError{Flag: "min-available", File: fmt.Sprintf("its members ask for %s, for which gangctl declares no gang", c.scheduler)}
		}
		c.Notes = append(c.Notes, fmt.Sprintf("scheduler %s reads gangs of another dialect than %s: nothing is added", c.scheduler, c.s.Dialect))
		return false, nil
	}
	c.dialect = c.s.Dialect
	return true, nil
}

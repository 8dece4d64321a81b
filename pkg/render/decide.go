package render

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
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
	case c.s.DialectTyped && c.s.Dialect == NoGang:
		return false, nil
	case c.s.DialectTyped && c.s.Dialect != c.dialect:
		return false, &ContradictionError{Flag: "dialect", File: fmt.Sprintf("its pods are marked as gang %s in dialect %s", c.name, c.dialect)}
	case c.dialect != gang.SchedulerPlugins && c.dialect != gang.Labels:
		if c.s.MinAvailable > 0 {
			return false, &ContradictionError{Flag: "min-available", File: fmt.Sprintf("it declares its gang itself, in dialect %s", c.dialect)}
		}
		c.Notes = append(c.Notes, fmt.Sprintf("the file declares gang %s in dialect %s itself: nothing is added", c.name, c.dialect))
		return false, nil
	}
	return true, nil
}

// checkPodGroup holds the PodGroup of the file against the pods and the command line.
func (c *completion) checkPodGroup() error {
	name := c.PodGroup.GetName()
	switch {
	case c.name != "" && c.dialect != gang.SchedulerPlugins:
		return fmt.Errorf("it holds PodGroup %s, but its pods are marked as gang %s in dialect %s", name, c.name, c.dialect)
	case c.name != "" && c.name != name:
		return fmt.Errorf("it holds PodGroup %s, but its pods name PodGroup %s", name, c.name)
	case c.s.DialectTyped && c.s.Dialect != gang.SchedulerPlugins:
		return &ContradictionError{Flag: "dialect", File: "it holds PodGroup " + name}
	case c.s.MinAvailable > 0:
		return &ContradictionError{Flag: "min-available", File: fmt.Sprintf("it holds PodGroup %s, whose minMember counts", name)}
	}
	c.dialect = gang.SchedulerPlugins
	return nil
}

// decideUnmarked decides for a file that says nothing of a gang.
func (c *completion) decideUnmarked() (bool, error) {
	if c.s.Dialect == NoGang {
		return false, nil
	}
	switch {
	case c.scheduler == corev1.DefaultSchedulerName:
		return false, fmt.Errorf("its members ask for %s: %w", c.scheduler, ErrNotEnforced)
	case c.scheduler != "" && dialect.Affinity(readerOf(c.s.Dialect), c.scheduler) < 0:
		if c.s.DialectTyped {
			return false, &ContradictionError{Flag: "dialect", File: fmt.Sprintf("its members ask for %s, which reads gangs of another dialect", c.scheduler)}
		}
		if c.s.MinAvailable > 0 {
			return false, &ContradictionError{Flag: "min-available", File: fmt.Sprintf("its members ask for %s, for which gangctl declares no gang", c.scheduler)}
		}
		c.Notes = append(c.Notes, fmt.Sprintf("scheduler %s reads gangs of a dialect that gangctl does not write: nothing is added", c.scheduler))
		return false, nil
	}
	c.dialect = c.s.Dialect
	return true, nil
}

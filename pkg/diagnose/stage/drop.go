package stage

import (
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Stuck reports whether a gang will not start without anyone's action, by its diagnosis: what it reserves it keeps. One that fits needs none, however long its scheduler takes.
func Stuck(d *Diagnosis) bool {
	return d != nil && d.Verdict == answer.Blocked && d.Primary.Code != answer.FitsNotPlaced
}

// NeverStarts reports whether a gang is stuck and its own user has to change it: where an administrator has to act, it may start yet.
func NeverStarts(d *Diagnosis) bool {
	return Stuck(d) && (d.Who == answer.User || d.Primary.Never)
}

// Drop is the fix that a job which does not start by itself is fixed or deleted, so that it keeps nothing from others.
func (c *Context) Drop(job *gang.Job, name string) Fix {
	pods, owner, by := c.View.Gang(job).ExistingPods(), gang.IdentityOf(&job.Meta), answer.Admin
	if job.Meta.Namespace == c.Gang.Meta.Namespace {
		by = answer.User
	}
	return Fix{
		Action: answer.Action{Kind: answer.Evict, By: by, Text: "fix or delete " + name, Cost: name + " loses its place; it does not start anyway",
			Change: map[string]any{"jobs": []string{name}}, Command: command.Delete(job)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Gone(s, pods, owner) },
	}
}

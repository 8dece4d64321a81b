// Package controller is the stage of a diagnosis that evaluates whether the controller that turns the job into pods runs.
package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/volcanojob"
	"github.com/gangctl/gangctl/pkg/setup/argv"
)

// Evaluate finds out whether a controller turns the job into pods.
func Evaluate(c *stage.Context, out *stage.Result) stage.State {
	g, job := c.Gang, component.Next(c.Gang.Job)
	handled := job.Seen || len(g.ExistingPods()) > 0 // a status may be empty until the pods run
	seen := handled || reported(c, job)
	kueueController(c, out)
	awaitsClaims(c, out)
	if len(job.Reader.Controller.Images) == 0 {
		state := byKubernetes(c, out, seen)
		if !c.NoPods && !out.NoPods && g.Count(gang.Missing) > 0 && !g.Suspended && g.End == nil {
			forbidden(c, out)
		}
		return state
	}
	pending := (!seen || g.Count(gang.Missing, gang.NotDue) > 0 && !g.Suspended) && g.Before == ""
	if !pending || c.NoPods {
		return stage.OK("")
	}
	age := c.View.Age(job.Meta.CreationTimestamp.Time)
	all := component.Operators(c.View, job)
	operators, others := handling(c, job, all)
	switch {
	case c.View.Assumed && !seen:
		// A job that was only just assumed to be submitted: what counts is that its controller is there.
		switch {
		case len(operators) > 0 && component.AllDown(operators):
			out.Add(down(c, job, operators[0]))
		case len(operators) == 0 && len(c.View.Snap.Deployments) > 0 && c.View.Snap.CanList("deployments.apps", "") && (len(others) > 0 || !validated(c, job) && !acts(c, job)):
			out.Add(missing(c, job, others))
		}
	case len(all) == 0 && out.Denied(c, "deployments.apps", ""):
		return stage.Unknown("deployments may not be listed")
	case len(operators) == 0 && age > operatorNotices && !(handled && actedSince(c, job, c.View.Now.Add(-operatorSilent))):
		out.NoPods = true
		out.Add(missing(c, job, others))
	case !seen && unserved(c, job) != nil:
		out.NoPods = true
		out.Add(unserved(c, job))
	case len(operators) > 0 && component.AllDown(operators):
		out.NoPods = true
		out.Add(down(c, job, operators[0]))
	case len(operators) > 0 && age > operatorNotices && staleLease(c, job, operators[0]) != nil:
		out.NoPods = true
		out.Add(leaderLost(c, operators[0], staleLease(c, job, operators[0])))
	case len(operators) > 0 && !seen && age > operatorSilent:
		out.NoPods = true
		out.Add(inactive(c, job, operators[0]))
	case job != g.Job && !g.Seen:
		if first, _ := handling(c, g.Job, component.Operators(c.View, g.Job)); len(first) > 0 && component.AllDown(first) {
			out.NoPods = true
			out.Add(down(c, g.Job, first[0]))
		}
	}
	forbidden(c, out)
	return stage.OK("")
}

// awaitsClaims notes that the controller makes neither a PodGroup nor pods before claims exist, as Volcano's does with those that a Job names. That they do not is for the stage of
// placement to find.
func awaitsClaims(c *stage.Context, out *stage.Result) {
	g := c.Gang
	if g.Object == nil || g.Kind.GroupKind() != volcanojob.GroupKind() || g.End != nil || len(g.ExistingPods()) > 0 || !c.View.Snap.CanList("persistentvolumeclaims", g.Meta.Namespace) {
		return
	}
	type claimNames struct{}
	there := view.Once(c.View, claimNames{}, func() map[types.NamespacedName]bool {
		there := map[types.NamespacedName]bool{}
		for _, claim := range c.View.Snap.Claims {
			there[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = true
		}
		return there
	})
	absent := slices.DeleteFunc(volcanojob.Claims(g.Object), func(name string) bool {
		return there[types.NamespacedName{Namespace: g.Meta.Namespace, Name: name}]
	})
	if len(absent) > 0 {
		out.NoPods = true
		out.Note("Volcano's controller makes nothing of the Job before there is %s %s", phrase.Verb(len(absent), "claim", "claims"), phrase.Names(absent))
	}
}

// reported reports whether the controller has written an event about the job or what it makes of it: some report there alone why they make nothing.
func reported(c *stage.Context, job *gang.Job) bool {
	return slices.ContainsFunc(c.View.MakerEvents(c.Gang.Job), func(e view.Event) bool {
		return job.Reader.Wrote(e.By) && !e.Last.Before(job.Meta.CreationTimestamp.Time)
	})
}

// validated reports whether a webhook of the Training Operator looks at such jobs, and the operator handles their version.
func validated(c *stage.Context, job *gang.Job) bool {
	versions, some := job.Reader.Controller.Versions["training-operator"]
	return component.Validated(c.View, job.Reader) && (!some || slices.Contains(versions, job.Kind.Version))
}

// lately is how long ago a job may have ended to be a sign that its controller runs.
const lately = time.Hour

// acts reports whether the controller of a kind of job has handled one that has not ended long ago, in the cluster as it is: it may run without a Deployment, or outside the
// cluster.
func acts(c *stage.Context, job *gang.Job) bool {
	now := c.View.Present()
	type handled struct{ controller string }
	return view.Once(now, handled{job.Reader.Controller.Name}, func() bool {
		return slices.ContainsFunc(now.Jobs(), func(other *gang.Job) bool {
			return (other.End == nil || now.Age(other.End.At) <= lately) && other.Reader.Controller.Name == job.Reader.Controller.Name && (other.Seen || len(now.Gang(other).ExistingPods()) > 0)
		})
	})
}

// handling are the operators that may look at the job, and why the others do not: their flags keep them to another
// namespace, or to other kinds.
func handling(c *stage.Context, job *gang.Job, all []*appsv1.Deployment) (operators []*appsv1.Deployment, others []string) {
	for _, d := range all {
		why := ""
		for _, container := range d.Spec.Template.Spec.Containers {
			if ns := component.Flag(container, "namespace"); ns != "" && ns != job.Meta.Namespace {
				why = looksElsewhere(c, d, ns)
			}
			kinds := argv.Values(container, "enable-scheme")
			if len(kinds) > 0 && !slices.ContainsFunc(kinds, func(k string) bool { return strings.EqualFold(k, job.Kind.Kind) }) {
				why = fmt.Sprintf("%s handles only %s (--enable-scheme)", c.NameOf("Deployment", d), strings.Join(kinds, ", "))
			}
		}
		if versions := component.OtherVersions(job, d); len(versions) > 0 {
			why = fmt.Sprintf("%s handles %ss of %s only, and this one is of %s, for the %s", c.NameOf("Deployment", d), job.Kind.Kind, strings.Join(versions, ", "), job.Kind.Version, job.Reader.Controller.Name)
		}
		if why == "" {
			operators = append(operators, d)
		} else {
			others = append(others, why)
		}
	}
	return operators, others
}

// looksElsewhere is the reason of an operator whose flag keeps it to another namespace.
func looksElsewhere(c *stage.Context, d *appsv1.Deployment, namespace string) string {
	if !c.Reader.Sees(namespace) {
		return c.NameOf("Deployment", d) + " looks at only another namespace (--namespace)"
	}
	return fmt.Sprintf("%s looks at only namespace %s (--namespace=%s)", c.NameOf("Deployment", d), namespace, namespace)
}

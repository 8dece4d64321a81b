// Package request is the stage of a diagnosis that evaluates what a job stands on: its namespace, and the right to submit it.
package request

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Evaluate looks at what the job stands on: its namespace. Whether its kind is served is known: there is a job.
func Evaluate(c *stage.Context, out *stage.Result) stage.State {
	mayCreate(c, out)
	if !c.View.Snap.CanList("namespaces", "") {
		namespaceTerminating(c, out)
		return stage.OK("the namespace itself may not be read")
	}
	for _, ns := range c.View.Snap.Namespaces {
		if ns.Name != c.Gang.Meta.Namespace || ns.Status.Phase != corev1.NamespaceTerminating && ns.DeletionTimestamp == nil {
			continue
		}
		f := stage.Found(answer.NamespaceGone,
			"namespace %s is being deleted: nothing new is created in it", ns.Name).
			See("v1", "Namespace", ns, ".status.phase").
			Run(command.Kubectl("", "get", "namespace", ns.Name, "-o", "yaml"))
		for _, cond := range ns.Status.Conditions {
			if cond.Status == corev1.ConditionTrue && cond.Message != "" {
				f.Detail("%s", cond.Message)
			}
		}
		out.Add(f)
		out.NoPods = c.Gang.Count(gang.Missing) > 0
	}
	return stage.OK("")
}

// namespaceTerminating finds that the namespace cannot be seen, but the refusal of a pod shows that it is being deleted.
func namespaceTerminating(c *stage.Context, out *stage.Result) {
	for _, r := range refusal.Of(c.View, c.Gang) {
		if r.Kind == refusal.Namespace {
			out.Add(stage.Found(answer.NamespaceGone,
				"namespace %s is being deleted: nothing new is created in it", c.Gang.Meta.Namespace).
				Fact("namespace", c.Gang.Meta.Namespace).Detail("%s", r.Message).SinceTime(r.First))
			out.NoPods = true
			return
		}
	}
}

// mayCreate finds that the caller may not submit the job. Its pods are for others to create.
func mayCreate(c *stage.Context, out *stage.Result) {
	ns := c.Gang.Meta.Namespace
	for _, d := range c.View.Snap.Denied {
		if d.Verb != snapshot.VerbCreate || d.Resource == "pods" || !c.View.Assumed {
			continue
		}
		out.Lack(d.Verb, d.Resource, ns)
		f := stage.Found(answer.NoPermission, "%s cannot be submitted: you may not create %s in namespace %s", c.Gang.Meta.Name, d.Resource, ns).
			Run(command.Kubectl(ns, "auth", "can-i", "create", d.Resource))
		if d.Message != "" {
			f.Detail("the API server reports: %s", d.Message)
		}
		out.Add(f)
	}
}

package stages

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
)

// request looks at what the job stands on: its namespace. Whether its kind is served is known: there is a job.
func (c *climb) request() state {
	c.mayCreate()
	if !c.w.Snap.CanList("namespaces", "") {
		c.namespaceRefused()
		return okf("the namespace itself may not be read")
	}
	for _, ns := range c.w.Snap.Namespaces {
		if ns.Name != c.g.Meta.Namespace || ns.Status.Phase != corev1.NamespaceTerminating && ns.DeletionTimestamp == nil {
			continue
		}
		f := found(answer.StageRequest, answer.NamespaceGone, answer.Blocked, answer.User,
			"namespace %s is being deleted: nothing new is created in it", ns.Name).
			see("v1", "Namespace", ns, ".status.phase").
			run(command.Kubectl("", "get", "namespace", ns.Name, "-o", "yaml"))
		for _, cond := range ns.Status.Conditions {
			if cond.Status == corev1.ConditionTrue && cond.Message != "" {
				f.detail("%s", cond.Message)
			}
		}
		c.add(*f)
	}
	return ok
}

// namespaceRefused: the namespace cannot be seen, but the refusal of a pod tells that it goes.
func (c *climb) namespaceRefused() {
	for _, r := range c.refusals() {
		if r.kind == refusedNamespace {
			c.add(*found(answer.StageRequest, answer.NamespaceGone, answer.Blocked, answer.User,
				"namespace %s is being deleted: nothing new is created in it", c.g.Meta.Namespace).
				fact("namespace", c.g.Meta.Namespace).detail("%s", r.message).since(r.first))
			return
		}
	}
}

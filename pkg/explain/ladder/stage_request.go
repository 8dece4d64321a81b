package ladder

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/command"
)

// request looks at what the job stands on: its namespace. Whether its kind is served is known: there is a job.
func (c *climb) request() state {
	if !c.w.Snap.CanList("namespaces", "") {
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

// denied notes that a list was not allowed, for the confidence of the answer, and reports whether it was.
func (c *climb) denied(resource, namespace string) bool {
	if c.w.Snap.CanList(resource, namespace) {
		return false
	}
	where := "in all namespaces"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	switch resource {
	case "nodes", "persistentvolumes", "namespaces":
		where = ""
	}
	text := fmt.Sprintf("list %s", resource)
	if where != "" {
		text += " " + where
	}
	for _, m := range c.Missing {
		if m == text {
			return true
		}
	}
	c.Missing = append(c.Missing, text)
	return true
}

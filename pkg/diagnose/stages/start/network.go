package start

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// networks is the annotation by which pods name the further networks that Multus attaches them to.
const networks = "k8s.v1.cni.cncf.io/networks"

// noNetwork is how Multus reports that the object for a network does not exist: its name and its namespace.
var noNetwork = regexp.MustCompile(`cannot find a network-attachment-definition \(([^()\s]+)\) in namespace \(([^()\s]+)\)`)

// networkMissing finds that a network that a pod is to be attached to does not exist, which is no fault of its node; nil if the event reports something else.
func networkMissing(c *stage.Context, m gang.Member, e view.Event) *stage.Finding {
	report := noNetwork.FindStringSubmatch(e.Message)
	if report == nil {
		return nil
	}
	name, namespace := report[1], report[2]
	f := stage.Found(answer.ConfigMissing, "NetworkAttachmentDefinition %q does not exist in namespace %s", name, namespace).SinceTime(e.First).
		Fact("kind", "networkattachmentdefinition").Fact("name", name).Fact("networkNamespace", namespace).
		Run(command.Kubectl(namespace, "get", "network-attachment-definitions"))
	names := func(annotations map[string]string) bool { return strings.Contains(annotations[networks], name) }
	switch role := c.Gang.RoleByName(m.Role); {
	case !names(m.Pod.Annotations):
		f.As(answer.Blocked, answer.Admin).Detail("annotation %s of the pods does not name it: the configuration of Multus does, or a default network of theirs", networks)
	case role != nil && hasContainers(role.Template) && !names(role.Template.Annotations):
		f.As(answer.Blocked, answer.Admin).Detail("annotation %s of the pods names it, and the job does not have that: its operator, or a webhook, puts it into the pods", networks)
	default:
		f.Detail("annotation %s of the pods names it: create it, or correct the name", networks)
	}
	return f.Detail("reported: %s", e.Message)
}

// hasContainers reports whether a template is known: of some kinds of jobs it is not.
func hasContainers(t corev1.PodTemplateSpec) bool { return len(t.Spec.Containers) > 0 }

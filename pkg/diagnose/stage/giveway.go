package stage

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
)

// GiveWay is how a consumer frees what it uses.
type GiveWay struct {
	// Verb is what is done to it: suspend.
	Verb string
	// Command does it, and Cost is what becomes of the consumer, as the end of a sentence about it.
	Command, Cost string
	// Replicas is how many pods a service that is scaled down in part has then.
	Replicas int
}

// GiveWay is the gentlest way to free what a consumer uses that its kind has.
func (n Naming) GiveWay(h *view.Consumer) GiveWay {
	kind := kindOf(h)
	resource := strings.ToLower(kind.Kind)
	var workload *unstructured.Unstructured
	if h.Job != nil {
		workload = n.View.Workload(h.Job)
	}
	switch {
	case h.Whole != nil:
		return scaleDownInPart(h, resource)
	case h.Job != nil && h.Job.End != nil:
		return GiveWay{Verb: "clear", Command: command.DeletePods(h.Namespace, h.Pods), Cost: "has ended already"}
	case kind == leaderworkerset.Reader().GroupKind: // each of its gangs has a Workload of its own
		return scaleDown(h, resource)
	case workload != nil: // Kueue would resume what another client suspends
		return GiveWay{Verb: "suspend", Command: command.MergePatch(h.Namespace, "workload."+kueue.Group, workload.GetName(), map[string]any{"spec": map[string]any{"active": false}}),
			Cost: "is suspended, and starts again when its Workload is active again"}
	case kind.Group == "apps" && kind.Kind != "DaemonSet":
		return scaleDown(h, resource)
	case kind == batchjob.GroupKind(), kind == jobset.Reader().GroupKind, kind == ray.ClusterReader().GroupKind,
		kind == trainjob.Reader().GroupKind:
		return GiveWay{Verb: "suspend", Command: command.MergePatch(h.Namespace, resource, h.Name, map[string]any{"spec": map[string]any{"suspend": true}}), Cost: "is suspended, and starts its pods again when it is resumed"}
	case kind.Group == "kubeflow.org" && h.Job != nil && whatif.Suspends(h.Job, h.Pods):
		return GiveWay{Verb: "suspend", Command: command.MergePatch(h.Namespace, resource, h.Name, map[string]any{"spec": map[string]any{"runPolicy": map[string]any{"suspend": true}}}),
			Cost: "is suspended, and starts again from its last checkpoint when it is resumed"}
	case kind.Group != "":
		resource += "." + kind.Group // several groups have a kind of this name
		if h.Job == nil && !h.Ends { // an application with an operator, which would undo what is changed below it; with the object it may delete data
			return GiveWay{Verb: "scale down", Command: command.Kubectl(h.Namespace, "edit", resource, h.Name), Cost: "serves less, or no more, until that is undone"}
		}
	}
	return GiveWay{Verb: "delete", Command: command.Kubectl(h.Namespace, "delete", resource, h.Name), Cost: "is deleted, and has to be submitted again"}
}

// scaleDown has a service run no pods.
func scaleDown(h *view.Consumer, resource string) GiveWay {
	return GiveWay{Verb: "scale down", Command: command.Kubectl(h.Namespace, "scale", resource+"/"+h.Name, "--replicas=0"), Cost: "serves no more until it is scaled up again"}
}

// kindOf is the kind of a consumer with its group.
func kindOf(h *view.Consumer) schema.GroupKind {
	if h.Job != nil {
		return h.Job.Kind.GroupKind()
	}
	return h.GroupKind()
}

package start

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// The reasons of events about what a kubelet does once all volumes of a pod are mounted, in this order: it has drivers prepare the devices of the pod's resource claims, and makes the
// sandbox of the pod.
const (
	prepareFailed = "FailedPrepareDynamicResources"
	sandboxFailed = "FailedCreatePodSandBox"
)

// containersMade are the reasons of events that a kubelet reports of a pod once its sandbox is made.
var containersMade = []string{"Pulling", "Pulled", "Created", "Started"}

// sandbox finds that the node of a member cannot set up its pod; nil if nothing reports that, or it has passed.
func sandbox(c *stage.Context, m gang.Member, events []view.Event) *stage.Finding {
	what := "prepare the devices that the pod claims"
	e := stage.LatestUnless(events, prepareFailed, append(slices.Clone(containersMade), sandboxFailed)...)
	if e == nil {
		what, e = "set up the pod", stage.LatestUnless(events, sandboxFailed, containersMade...)
	}
	if e == nil {
		return nil
	}
	if f := networkMissing(c, m, *e); f != nil {
		return f
	}
	node := m.Pod.Spec.NodeName
	f := ofNode(c, m, stage.Found(answer.SandboxFailed, "node %s cannot %s: %s", node, what, e.Message).SinceTime(e.First).Fact("node", node))
	domainOn(c, f, node, e.Message)
	if len(f.Commands) == 0 {
		f.Run(command.Kubectl("", "describe", "node", node))
	}
	return f
}

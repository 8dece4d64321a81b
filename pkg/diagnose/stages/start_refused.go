package stages

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/gang"
)

// refusalReasons are the reasons of failed pods that a kubelet gives when it does not take a pod at all.
var refusalReasons = []string{"UnexpectedAdmissionError", "OutOf", "TopologyAffinityError", "NodeAffinity", "NodePorts", "NodeShutdown", "Taint"}

// refusedByNode: the pod has ended badly. Either its node did not take it, or its container failed.
func (c *climb) refusedByNode(m gang.Member) *trouble {
	pod := m.Pod
	for _, reason := range refusalReasons {
		if strings.HasPrefix(pod.Status.Reason, reason) {
			return &trouble{code: answer.NodeRefused, verdict: answer.Blocked, who: answer.Admin,
				message:  fmt.Sprintf("the kubelet of %s refused the pod (%s): %s", pod.Spec.NodeName, pod.Status.Reason, cmp.Or(pod.Status.Message, "no reason was given")),
				facts:    map[string]any{"node": pod.Spec.NodeName, "reason": pod.Status.Reason},
				details:  []string{fmt.Sprintf("the scheduler counts on more than %s has: keep new pods off it until it is repaired", pod.Spec.NodeName)},
				commands: []string{command.Kubectl("", "cordon", pod.Spec.NodeName)}}
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			return c.crash(m, s, t)
		}
	}
	return nil // evicted or preempted: the stage of lost members tells
}

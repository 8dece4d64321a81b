package start

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// refusedByNode finds that the pod has ended badly. Either its node did not take it, or its container failed.
func refusedByNode(c *stage.Context, m gang.Member) *stage.Finding {
	pod := m.Pod
	if reason := stage.NodeRefusal(pod); reason != "" {
		return notTaken(c, pod, reason)
	}
	if displaced(pod) {
		return nil // how its containers ended then shows nothing; that is for the stage of lost members
	}
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			return notReplaced(c, m, crash(c, m, s, nil))
		}
	}
	return nil
}

// replacedWithin is within what time operators make another pod for one that has failed, if they do.
const replacedWithin = 6 * time.Minute

// notReplaced adds to the finding that a pod has failed that nothing starts it again: its operator has not made another for long, which would have its name, and the job has not failed.
func notReplaced(c *stage.Context, m gang.Member, f *stage.Finding) *stage.Finding {
	age := c.View.Age(c.View.EndedAt(m.Pod))
	if c.Gang.Reader.PodName == nil || c.Gang.PodName(m) != m.Pod.Name || age <= replacedWithin {
		return f
	}
	pods := []*corev1.Pod{m.Pod}
	return f.Detail("%s has failed for good, %s ago: no kubelet starts it again, and its operator has made no other", m.Pod.Name, phrase.Age(age)).Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "delete pod " + m.Pod.Name + ", so that its operator makes another, once its log is read", Cost: "its log is gone",
			Change: map[string]any{"pods": []string{m.Pod.Name}}, Command: command.DeletePods(m.Pod.Namespace, pods)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Replaced(s, pods) },
	})
}

// byNodeItself are the reasons of refusals that are about the node itself, and not about what it has of a resource.
var byNodeItself = []string{"NodeAffinity", "NodeName", "NodePorts", "NodeShutdown", "Taint", "PodOS", "InvalidNodeInfo"}

// What a kubelet reports that refuses a pod: sickNode that its disk or a device has failed, fewerDevices that it knows fewer that are free, or well, than the scheduler counts on, and noneWell that a device
// plugin has reported none to be well.
var (
	sickNode     = reports{"read-only file system", "no space left on device", "input/output error", " is lost", "checkpoint"}
	fewerDevices = reports{"devices unavailable", "healthy devices"}
	noneWell     = reports{"no healthy devices"}
)

// notTaken finds that a kubelet refused a pod, and what is to be done, which depends on why.
func notTaken(c *stage.Context, pod *corev1.Pod, reason string) *stage.Finding {
	node, message := pod.Spec.NodeName, pod.Status.Message
	f := stage.Found(answer.NodeRefused, "the kubelet of %s refused the pod (%s): %s", node, pod.Status.Reason, cmp.Or(message, "no reason was given")).
		Fact("node", node).Fact("reason", pod.Status.Reason)
	for _, report := range stage.Reports(c.Cluster().Node(node)) {
		f.Detail("%s", report)
	}
	describe, cordon := command.Kubectl("", "describe", "node", node), command.Kubectl("", "cordon", node)
	shared := tooLarge.FindStringSubmatch(message)
	switch {
	case slices.Contains(byNodeItself, reason):
		return f.Detail("%s is not, or not any more, what the scheduler took it for: see its labels, its taints and its other pods", node).Run(describe)
	case shared != nil:
		return sharedTooLarge(c, f, corev1.ResourceName(shared[1]), resource.MustParse(shared[2]))
	case reason == "SMTAlignmentError":
		return f.As(answer.Blocked, answer.User).Detail("the kubelet of %s gives whole cores to containers: request a multiple of their threads", node).Run(describe)
	case reason == "TopologyAffinityError":
		return f.Detail("what is free on %s is not together as the topology manager of its kubelet requires, which the scheduler does not see: %s is well, and takes the pod when more is free on one of its NUMA nodes, or a pod that requests less", node, node).
			Run(describe)
	case noneWell.MatchString(message) && justStarted(c, pod):
		return f.As(answer.Waiting, answer.Nobody).Detail("%s had only just started: its devices are there now, and a new pod is accepted", node)
	case sickNode.MatchString(message):
		return f.Detail("%s is not well: keep new pods off it until it is repaired", node).Run(cordon)
	case reason == "OutOf", fewerDevices.MatchString(message):
		return f.Detail("the scheduler counts on more than %s has: keep new pods off it until it is repaired", node).Run(cordon)
	}
	return f.Detail("it refuses what the scheduler accepts: the message has what the kubelet of %s, or a plugin of it, requires besides", node).Run(describe)
}

// nodeSettles is how long a node that has started may take until its device plugins have reported all devices.
const nodeSettles = 5 * time.Minute

// justStarted reports whether a pod was refused while its node started, a short time ago, and the node has the devices now.
func justStarted(c *stage.Context, pod *corev1.Pod) bool {
	n, at := c.Cluster().Node(pod.Spec.NodeName), c.View.EndedAt(pod)
	if n == nil || c.View.Age(at) > nodeSettles {
		return false
	}
	requests := podrequest.Of(pod)
	device := podrequest.Device(requests)
	has, wants := n.Status.Allocatable[device], requests[device]
	return device != "" && has.Cmp(wants) >= 0 && placement.NodeReady(n) && at.Sub(placement.ReadyChangedAt(n)) < nodeSettles
}

// tooLarge is how NVIDIA's device plugin refuses more than one share of its devices, or of how many it is set to give.
var tooLarge = regexp.MustCompile(`request for '([^:' ]+): \d+' too large: maximum request size for shared resources is (\d{1,9})\b`)

// sharedTooLarge completes the refusal of a pod that requests more of a shared device than one pod may have: every node refuses that.
func sharedTooLarge(c *stage.Context, f *stage.Finding, name corev1.ResourceName, most resource.Quantity) *stage.Finding {
	text := fmt.Sprintf("request %s %s for each member", most.String(), name)
	return f.As(answer.Blocked, answer.User).Detail("%s is shared, and one pod may have %s of it: shares do not add up to a larger part of a device", name, most.String()).
		Fix(patch.Job(c.Gang, answer.Fix, text, map[string]any{"resource": string(name), "each": most.String()}, func(spec *whatif.Spec) {
			for i := range spec.Roles {
				containers := spec.Roles[i].Template.Spec.Containers
				for j := range containers {
					if has := containers[j].Resources.Limits[name]; has.Cmp(most) > 0 {
						podrequest.Set(&containers[j].Resources, name, most)
					}
				}
			}
		}))
}

// displaced reports whether a pod has ended because others had it end: its kubelet, or who evicted or preempted it.
func displaced(pod *corev1.Pod) bool {
	return slices.Contains([]string{"Evicted", "Preempting", "Terminated", "NodeLost"}, pod.Status.Reason) || gang.Disruption(pod) != nil
}

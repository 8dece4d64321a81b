package start

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// nodeReports are reports of a kubelet about what only its node can lack: the driver of a volume or of devices, or disk.
var nodeReports = reports{"not found in the list of registered csi drivers", "is not registered", "nvidia-container-cli", "driver/library version mismatch", "no space left on device"}

// pathReports are reports about the way to a registry, which is each node's own. Any other report about an image is about the image: nodes where it runs may have it from before.
var pathReports = reports{"x509:", "i/o timeout", "no such host", "connection refused", "connection reset", "tls handshake timeout"}

// commandReports are reports of a runtime about the command of a container, which is the same everywhere.
var commandReports = reports{"exec: ", "executable file not found", "runasnonroot"}

// ofNode makes a finding about a member one for who runs the cluster, where its node is the reason: the kubelet reports so, or members that are alike run on
// other nodes.
func ofNode(c *stage.Context, m gang.Member, f *stage.Finding) *stage.Finding {
	node, reported := m.Pod.Spec.NodeName, func(r reports) bool {
		return r.MatchString(f.Message) || slices.ContainsFunc(f.Details, r.MatchString)
	}
	alike := runsElsewhere(c, m)
	switch {
	case reported(nodeReports):
	case alike == nil, f.Code == answer.ImagePull && !reported(pathReports), f.Code == answer.CrashLoop && reported(commandReports):
		return f
	}
	f.As(answer.Blocked, answer.Admin)
	if alike != nil {
		f.Detail("%s is alike and runs on %s: what differs is node %s", alike.Name(), alike.Node(), node)
	} else {
		f.Detail("it is for node %s to have that", node)
	}
	driverOn(c, f, node)
	for _, report := range stage.Reports(c.Cluster().Node(node)) {
		f.Detail("%s", report)
	}
	return f.Run(command.Kubectl("", "describe", "node", node))
}

// runsElsewhere is a member that runs on another node what a member is to run, from the same volumes; nil if there is none.
func runsElsewhere(c *stage.Context, m gang.Member) *gang.Member {
	for i, other := range c.Gang.Members {
		if other.State == gang.Running && other.Role == m.Role && other.Node() != m.Node() && slices.Equal(parts(other.Pod), parts(m.Pod)) {
			return &c.Gang.Members[i]
		}
	}
	return nil
}

// parts are the images and the volumes of a pod, as far as they are the same for members that are alike.
func parts(pod *corev1.Pod) []string {
	var all []string
	for _, s := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		all = append(all, s.Name, s.Image)
	}
	for _, v := range pod.Spec.Volumes {
		if of := madeOf(v); of != "" {
			all = append(all, of)
		}
	}
	return all
}

package placement

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// filter is an upstream plugin that this package asks about one node at a time.
type filter interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
}

// asked prepares a plugin for a pod. The result is nil if the plugin has nothing to say about the pod; otherwise it gives the
// reason of a rejection, empty if the node passes.
func (c *Cluster) asked(plugin filter, pod *corev1.Pod) func(n *node) string {
	ctx := context.Background()
	nodes, _ := snapshot{c: c}.List()
	state := newCycleState()
	_, status := plugin.PreFilter(ctx, state, pod, nodes)
	switch {
	case status.IsSkip():
		return nil
	case !status.IsSuccess():
		return func(*node) string { return status.Message() }
	}
	return func(n *node) string {
		if status := plugin.Filter(ctx, state, pod, n.info); !status.IsSuccess() {
			return status.Message()
		}
		return ""
	}
}

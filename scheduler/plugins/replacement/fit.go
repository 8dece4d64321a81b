package replacement

import (
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
)

// lacks names the resources of which a node has too little for a pod; ports
// tells that a host port is in use. Resources that devices stand behind
// (dynamic resource allocation) are not counted.
func lacks(pod *corev1.Pod, node fwk.NodeInfo) (what []corev1.ResourceName, ports bool) {
	for _, r := range noderesources.Fits(pod, node, nil, noderesources.ResourceRequestsOptions{EnablePodLevelResources: true}) {
		what = append(what, r.ResourceName)
	}
	return what, !nodeports.Fits(pod, node)
}

func fits(pod *corev1.Pod, node fwk.NodeInfo) bool {
	what, ports := lacks(pod, node)
	return len(what) == 0 && !ports
}

// with returns a copy of a node on which the pods for which places are held
// are present.
func with(node fwk.NodeInfo, holds []Hold) fwk.NodeInfo {
	node = node.Snapshot()
	for _, hold := range holds {
		node.AddPodInfo(hold.pod)
	}
	return node
}

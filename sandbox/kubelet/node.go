package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// address is where every simulated node is, and where its kubelet's API answers.
const address = "127.0.0.1"

// FailedLabel is on nodes whose kubelet has died: nothing on them moves.
const FailedLabel = "sandbox.gangctl.dev/failed"

// NodeStatus is the status that the kubelet of a healthy node reports, besides its size.
func NodeStatus(name string, port int, kubernetesVersion string, now time.Time) corev1.NodeStatus {
	return corev1.NodeStatus{
		Conditions: nodeConditions(now),
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: address},
			{Type: corev1.NodeHostName, Address: name},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(port)}},
		NodeInfo: corev1.NodeSystemInfo{
			KubeletVersion:          kubernetesVersion,
			KubeProxyVersion:        kubernetesVersion,
			OperatingSystem:         "linux",
			Architecture:            "amd64",
			OSImage:                 "simulated by gangctl-sandbox",
			KernelVersion:           "simulated",
			ContainerRuntimeVersion: "simulated://1",
		},
	}
}

// FailedCondition is the Ready condition of a node whose kubelet has died.
func FailedCondition(now time.Time) corev1.NodeCondition {
	return condition(corev1.NodeReady, corev1.ConditionFalse, "NodeFailed", "failed by gangctl-sandbox node fail", now)
}

func nodeConditions(now time.Time) []corev1.NodeCondition {
	return []corev1.NodeCondition{
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status", now),
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available", now),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure", now),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available", now),
	}
}

func condition(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string, now time.Time) corev1.NodeCondition {
	at := metav1.NewTime(now)
	return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: at, LastTransitionTime: at}
}

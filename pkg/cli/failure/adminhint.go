package failure

// installHint is the hint by which a missing resource comes into the cluster.
func installHint(op Op) string {
	switch op.Resource.Group {
	case "kubeflow.org":
		kinds := ""
		if r := op.Resource.Resource; r != "" && r != "tfjobs" {
			kinds = " --kinds tfjobs," + r
		}
		return "ask an administrator to install the Kubeflow Training Operator (v1.7 to v1.9), as `gangctl install operator" + kinds +
			"` does, or try a local cluster that has it: gangctl-sandbox up"
	case "scheduling.x-k8s.io":
		return "ask an administrator to install the PodGroup CRD (podgroups.scheduling.x-k8s.io), or submit with --dialect labels, which needs no object"
	default:
		return "see what the cluster serves: kubectl api-resources"
	}
}

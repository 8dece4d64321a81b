package failure

// installHint is the hint by which a missing resource comes into the cluster.
func installHint(op Op) string {
	switch op.Resource.Group {
	case "kubeflow.org":
		if op.Resource.Resource == "mpijobs" && op.Resource.Version == "v2beta1" {
			return "ask an administrator to install the MPI Operator, which brings this version; the Training Operator brings v1"
		}
		kinds := ""
		if r := op.Resource.Resource; r != "" && r != "tfjobs" {
			kinds = " --kinds tfjobs," + r
		}
		return "ask an administrator to install the Kubeflow Training Operator (v1.7 to v1.9), as `gangctl install operator" + kinds +
			"` does, or try a local cluster that has it: gangctl-sandbox up"
	case "scheduling.x-k8s.io":
		return "ask an administrator to install the PodGroup CRD (podgroups.scheduling.x-k8s.io), or submit with --dialect labels, which needs no object"
	}
	product := Product(op.Resource.Group)
	switch {
	case op.Resource.Resource == "podgroups":
		return "leave out --dialect, or add --dialect auto, for one that this cluster reads: `gangctl check` lists which those are"
	case product != "":
		return "ask an administrator to install " + product + ", which brings them; what the cluster has shows `gangctl check`"
	}
	return "see what the cluster serves: kubectl api-resources"
}

// Product is the project behind a group of custom resources; empty if it is not known.
func Product(group string) string {
	return map[string]string{
		"scheduling.x-k8s.io":         "scheduler-plugins",
		"scheduling.sigs.k8s.io":      "Koordinator, or scheduler-plugins of old",
		"scheduling.volcano.sh":       "Volcano",
		"batch.volcano.sh":            "Volcano",
		"scheduling.incubator.k8s.io": "kube-batch",
		"scheduling.sigs.dev":         "kube-batch",
		"scheduling.run.ai":           "KAI",
		"kueue.x-k8s.io":              "Kueue",
		"kubeflow.org":                "the Training Operator",
		"jobset.x-k8s.io":             "JobSet",
		"leaderworkerset.x-k8s.io":    "LeaderWorkerSet",
		"ray.io":                      "KubeRay",
		"trainer.kubeflow.org":        "Kubeflow Trainer",
	}[group]
}

package check

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/install"
)

// products are who made a group of custom resources, by the API group.
var products = map[string]string{
	"scheduling.x-k8s.io":         "scheduler-plugins",
	"scheduling.sigs.k8s.io":      "Koordinator, or scheduler-plugins of old",
	"scheduling.volcano.sh":       "Volcano",
	"batch.volcano.sh":            "Volcano",
	"scheduling.incubator.k8s.io": "kube-batch",
	"scheduling.sigs.dev":         "kube-batch",
	"scheduling.run.ai":           "KAI",
	"kueue.x-k8s.io":              "Kueue",
	"kubeflow.org":                "the Training Operator",
	"trainer.kubeflow.org":        "Kubeflow Trainer",
}

// owner is who put an object there, and mine whether that was gangctl: by its labels, else by what deployment tools write, else by
// who wrote its fields.
func owner(o *metav1.PartialObjectMetadata) (by string, mine bool) {
	labels, annotations := o.Labels, o.Annotations
	if labels[install.LabelPartOf] == install.PartOf {
		return "gangctl", true
	}
	switch {
	case annotations["meta.helm.sh/release-name"] != "":
		return "Helm release " + annotations["meta.helm.sh/release-namespace"] + "/" + annotations["meta.helm.sh/release-name"], false
	case annotations["argocd.argoproj.io/tracking-id"] != "":
		return "Argo CD (" + annotations["argocd.argoproj.io/tracking-id"] + ")", false
	case labels["kustomize.toolkit.fluxcd.io/name"] != "":
		return "Flux (" + labels["kustomize.toolkit.fluxcd.io/namespace"] + "/" + labels["kustomize.toolkit.fluxcd.io/name"] + ")", false
	case hasLabelPrefix(labels, "operators.coreos.com/"):
		return "an OLM operator", false
	case labels[install.LabelPartOf] != "":
		return labels[install.LabelPartOf], false
	}
	return cmp.Or(writers(o), "somebody"), false
}

// writers are those who wrote the object's spec: the API server and others that write conditions do not count.
func writers(o *metav1.PartialObjectMetadata) string {
	var all []string
	for _, m := range o.ManagedFields {
		if m.Subresource == "" && m.Manager != "kube-apiserver" && !slices.Contains(all, m.Manager) {
			all = append(all, m.Manager)
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

func hasLabelPrefix(labels map[string]string, prefix string) bool {
	for key := range labels {
		if len(key) > len(prefix) && key[:len(prefix)] == prefix {
			return true
		}
	}
	return false
}

package ladder

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/explain/phrase"
)

// pluginOf is the DaemonSet of the device plugin for a resource: one that says device plugin in its name or image, and
// names the vendor there too if there are several.
func (c *climb) pluginOf(name corev1.ResourceName) *appsv1.DaemonSet {
	brand, _, _ := strings.Cut(vendor(name), ".")
	var any *appsv1.DaemonSet
	for _, d := range c.w.Snap.DaemonSets {
		text := d.Name
		for _, container := range d.Spec.Template.Spec.Containers {
			text += " " + container.Image
		}
		if !strings.Contains(text, "device-plugin") {
			continue
		}
		if strings.Contains(text, brand) {
			return d
		}
		any = d
	}
	return any
}

// podTrouble says what the pods that a selector matches suffer from: one line for each reason.
func (c *climb) podTrouble(namespace string, selector *metav1.LabelSelector) []string {
	sel, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil // the API server would not have accepted it
	}
	reasons := map[string]int{}
	for _, pod := range c.w.Snap.Pods {
		if pod.Namespace != namespace || !sel.Matches(labelSet(pod.Labels)) {
			continue
		}
		for _, s := range pod.Status.ContainerStatuses {
			if s.State.Waiting != nil {
				reasons[s.State.Waiting.Reason]++
			}
		}
	}
	var lines []string
	for _, reason := range sortedKeys(reasons) {
		lines = append(lines, fmt.Sprintf("%s of it: %s", phrase.Count(reasons[reason], "pod"), reason))
	}
	return lines
}

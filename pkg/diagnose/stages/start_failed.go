package stages

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
)

// failedBefore are the pods of a job with random pod names that have failed, the latest first: its controller makes others under
// other names, and waits longer each time. Nil where every member has a pod, or a pod has its name for good.
func (c *climb) failedBefore() []*corev1.Pod {
	if c.g.Reader.PodName != nil || c.g.Bare != nil || c.g.Count(gang.Missing) == 0 || c.g.End != nil {
		return nil
	}
	var failed []*corev1.Pod
	for _, p := range c.w.Snap.Pods {
		ref := metav1.GetControllerOf(p)
		if p.Status.Phase != corev1.PodFailed || ref == nil || ref.UID != c.g.Meta.UID || c.g.Meta.UID == "" {
			continue
		}
		if len(failed) > 0 && !p.CreationTimestamp.After(failed[0].CreationTimestamp.Time) {
			failed = append(failed, p)
			continue
		}
		failed = append([]*corev1.Pod{p}, failed...)
	}
	return failed
}

// failsAgain tells why the pods of such a job fail; nil if they do not.
func (c *climb) failsAgain() *Finding {
	failed := c.failedBefore()
	if len(failed) == 0 {
		return nil
	}
	m := gang.Member{Role: c.g.Roles[0].Name, Pod: failed[0], State: gang.Failed}
	t := c.refusedByNode(m)
	if t == nil {
		return nil // evicted, say: its controller makes another one
	}
	f := c.notStarted([]trouble{*t}, []string{failed[0].Name})
	f.Message = fmt.Sprintf("its pods fail, %s so far, and the controller waits longer each time: %s", phrase.Count(len(failed), "pod"), t.message)
	return f.fact("failed", len(failed))
}

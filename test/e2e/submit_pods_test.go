package e2e

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// podLister lists the pods of a job, or of several.
type podLister func(context.Context) []corev1.Pod

// selected are the pods that a selector selects.
func (c *cluster) selected(t *testing.T, selector string) podLister {
	return func(ctx context.Context) []corev1.Pod {
		t.Helper()
		pods, err := c.client.CoreV1().Pods(space).List(ctx, metav1.ListOptions{LabelSelector: selector})
		must(t, err)
		return pods.Items
	}
}

// are waits until there are so many pods, and all are as they should be.
func (l podLister) are(t *testing.T, what string, want int, is func(*corev1.Pod) bool) {
	t.Helper()
	eventually(t, what, func(ctx context.Context) bool {
		pods := l(ctx)
		return len(pods) == want && count(pods, is) == want
	})
}

// wait waits until so many members are refused a place, and checks that none holds one while its gang waits: all are in the gang of a name.
func (l podLister) wait(t *testing.T, want int, group string) {
	t.Helper()
	l.are(t, "all members are refused", want, refusedToSchedule)
	for _, pod := range l(t.Context()) {
		if name, _ := schedulerplugins.NameOf(&pod); name != group || pod.Spec.NodeName != "" || pod.Spec.SchedulerName != "gang-scheduler" {
			t.Errorf("%s is in gang %q of %s, on node %q", pod.Name, name, pod.Spec.SchedulerName, pod.Spec.NodeName)
		}
	}
}

func count(pods []corev1.Pod, is func(*corev1.Pod) bool) (n int) {
	for i := range pods {
		if is(&pods[i]) {
			n++
		}
	}
	return n
}

func runs(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil
}

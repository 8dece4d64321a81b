package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
)

// TestForeignNames: a pod that is kept off the places that are reserved for a gang of another namespace reads whose they are if the
// configuration sets that, and otherwise how much that gang requests.
func TestForeignNames(t *testing.T) {
	t.Parallel()
	const other = "covert"
	c := newSharedCluster(t, twoNodes())
	_, err := c.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}, metav1.CreateOptions{})
	must(t, err)
	theirs := c.client.CoreV1().Pods(other)
	for i, tt := range []struct{ args, want string }{
		{"{}", "reserved for a gang of another namespace (8 cpu, priority 0), which has waited since"},
		{"{foreignNames: true}", "reserved for gang covert/llama, which has waited since"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			s := startScheduler(t, c.DataDir, nil, map[string]string{"GangAging": "{after: 2s}", "GangClaims": tt.args})
			defer s.stop()
			pods := []*corev1.Pod{plain("filler", "gang-scheduler", "1"), plain("llama-0", "gang-scheduler", "4"), plain("llama-1", "gang-scheduler", "4")}
			for _, p := range pods {
				if strings.HasPrefix(p.Name, "llama") {
					labels.SetGroup(&p.ObjectMeta, "llama", 2)
				}
				_, err := theirs.Create(t.Context(), p, metav1.CreateOptions{})
				must(t, err)
				eventually(t, p.Name+" is decided", func(ctx context.Context) bool {
					now, err := theirs.Get(ctx, p.Name, metav1.GetOptions{})
					return err == nil && (now.Spec.NodeName != "" || p.Name != "filler")
				})
			}
			// The next pod that is tried has places reserved for a gang that has waited so long.
			eventually(t, "the gang has waited long", func(ctx context.Context) bool {
				p, err := theirs.Get(ctx, "llama-1", metav1.GetOptions{})
				return err == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
					return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable && time.Since(c.LastTransitionTime.Time) > 4*time.Second
				})
			})
			stranger := fmt.Sprintf("stranger-%d", i)
			c.create(t, plain(stranger, "gang-scheduler", "4"))
			eventually(t, "the stranger reads why", func(ctx context.Context) bool {
				p, err := c.client.CoreV1().Pods(space).Get(ctx, stranger, metav1.GetOptions{})
				return err == nil && strings.Contains(conditionOf(p), tt.want)
			})
			must(t, theirs.DeleteCollection(t.Context(), now(), metav1.ListOptions{}))
			must(t, c.client.CoreV1().Pods(space).Delete(t.Context(), stranger, now()))
			c.empty(t)
			eventually(t, "their pods are gone", func(ctx context.Context) bool {
				list, err := theirs.List(ctx, metav1.ListOptions{})
				return err == nil && len(list.Items) == 0
			})
		})
	}
}

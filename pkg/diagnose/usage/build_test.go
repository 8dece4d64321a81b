package usage_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

const (
	nvidia = corev1.ResourceName("nvidia.com/gpu")
	amd    = corev1.ResourceName("amd.com/gpu")
	mig    = corev1.ResourceName("nvidia.com/mig-1g.5gb")
)

func nodesOf(c *clustertest.Cluster) usage.Nodes   { return usage.OfNodes(view.New(c.Done())) }
func jobsOf(c *clustertest.Cluster) usage.Jobs     { return usage.OfJobs(view.New(c.Done())) }
func queuesOf(c *clustertest.Cluster) usage.Queues { return usage.OfQueues(view.New(c.Done())) }

// has gives a node so many devices of a kind, of which some went unhealthy.
func has(n *corev1.Node, kind corev1.ResourceName, total, unhealthy int64) *corev1.Node {
	n.Status.Capacity[kind] = *resource.NewQuantity(total, resource.DecimalSI)
	n.Status.Allocatable[kind] = *resource.NewQuantity(total-unhealthy, resource.DecimalSI)
	return n
}

// withRequests replaces what the first container of a pod requests.
func withRequests(p *corev1.Pod, pairs ...string) *corev1.Pod {
	list := clustertest.List(pairs...)
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	return p
}

// bare is a pod of its own that runs on a node.
func bare(name, node string, pairs ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main"}}}}
	p.Status.Phase = corev1.PodRunning
	return withRequests(p, pairs...)
}

// leaving makes a pod one that is being deleted, and still holds what it holds.
func leaving(p *corev1.Pod, ago time.Duration) *corev1.Pod {
	grace := int64(30)
	at := metav1.NewTime(clustertest.Now.Add(-ago).Add(time.Duration(grace) * time.Second))
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	return p
}

// show is a node in one line, as tests compare it.
func show(n usage.Node) string {
	text := fmt.Sprint(n.Name, " ", n.States)
	for _, d := range n.Devices {
		text += fmt.Sprintf(" %s %d/%d free %d", usage.Short(d.Kind), d.Used, d.Total, d.Free)
		if d.Leaving > 0 {
			text += fmt.Sprintf(" leaving %d", d.Leaving)
		}
		if d.Unhealthy > 0 {
			text += fmt.Sprintf(" unhealthy %d", d.Unhealthy)
		}
		for _, u := range d.Unusable {
			text += fmt.Sprintf(" [%d %s]", u.Amount, u.Reason)
		}
	}
	return text
}

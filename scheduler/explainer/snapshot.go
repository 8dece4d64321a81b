package explainer

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
)

// Collector reads a cluster; collect.Collect is it.
type Collector func(context.Context, *kube.Client, collect.Options) (*snapshot.Snapshot, error)

// Cluster is the cluster as the scheduler reads it for an explanation: pods and nodes it has anyway, the rest it reads when a gang
// waits. What it may not read the answers do without, and name.
type Cluster struct {
	Client  *kube.Client
	Collect Collector
	// Pods are all pods as users see them, not as the engine does.
	Pods  func() []*corev1.Pod
	Nodes corelisters.NodeLister
	// Names are the schedulerNames that this scheduler answers to.
	Names []string
	Clock clock.PassiveClock
}

// Snapshot leaves out the events: what schedulers report in them is in the conditions of
// pods, too, and a cluster may have more events than all else together.
func (c *Cluster) Snapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	s, err := c.Collect(ctx, c.Client, collect.Options{Without: []string{"pods", "nodes", "events"}, Now: c.Clock.Now})
	if err != nil {
		return nil, err
	}
	s.Schedulers = c.Names
	s.Pods = append(s.Pods, c.Pods()...)
	if s.Nodes, err = c.Nodes.List(labels.Everything()); err != nil {
		return nil, err
	}
	s.Finish()
	return s, nil
}

package explainer

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
)

// Mirror is a snapshot that keeps up with its cluster; [collect.Mirror] is one.
type Mirror interface {
	Snapshot() (*snapshot.Snapshot, error)
	Lost() []collect.Loss
	Close()
}

// Follow begins to follow a cluster until ctx ends; [FollowCluster] does.
type Follow func(context.Context, *kube.Client, collect.Options) (Mirror, error)

// FollowCluster follows a running cluster.
func FollowCluster(ctx context.Context, client *kube.Client, o collect.Options) (Mirror, error) {
	return collect.NewMirror(ctx, client, o)
}

// Cluster is the cluster as the scheduler reads it for an explanation: pods and nodes it has anyway, the rest it follows from when the first gang waits
// until none has for a while. What has not changed from one snapshot to the next is the same object, and no work. What it may not read the answers do without, and
// name.
type Cluster struct {
	Client *kube.Client
	Follow Follow
	// Pods are all pods as users see them, not as the engine does.
	Pods  func() []*corev1.Pod
	Nodes corelisters.NodeLister
	// Names are the schedulerNames that this scheduler answers to.
	Names []string
	Clock clock.PassiveClock

	rest Mirror
}

// Snapshot leaves out the events: what schedulers report in them is in the conditions of
// pods, too, and a cluster may have more events than all else together. Context ctx is that in which the cluster is followed until [Cluster.Close].
func (c *Cluster) Snapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	s, err := c.others(ctx)
	if err != nil {
		c.Close() // the next one reads everything again
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

// others is all but the pods, the nodes and the events. What fails to be read for longer than an answer may be old is an error.
func (c *Cluster) others(ctx context.Context) (s *snapshot.Snapshot, err error) {
	if c.rest == nil {
		c.rest, err = c.Follow(ctx, c.Client, collect.Options{Without: []string{"pods", "nodes", "events"}, Now: c.Clock.Now, Poll: sightFor})
		if err != nil {
			c.rest = nil
			return nil, err
		}
	}
	for _, l := range c.rest.Lost() {
		if c.Clock.Since(l.Failing) > oldest {
			return nil, fmt.Errorf("nothing is heard of %s since %s: %w", l.Resource, l.Since.Format(time.RFC3339), l.Err)
		}
	}
	return c.rest.Snapshot()
}

// Close ends what the cluster is followed by, until the next snapshot.
func (c *Cluster) Close() {
	if c.rest != nil {
		c.rest.Close()
		c.rest = nil
	}
}

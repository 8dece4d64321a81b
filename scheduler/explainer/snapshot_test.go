package explainer

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// A scheduler without a Deployment or a lease, whose pods have no condition yet, is there all the same: it is the one that answers.
func TestTheSchedulerDoesNotMissItself(t *testing.T) {
	all := clustertest.New().Nodes(2, 8).Add(clustertest.Gang{Name: "llama", Workers: 2, GPUs: 8, Scheduler: "mine"}).Done()
	for _, pod := range all.Pods {
		pod.Status.Conditions = nil
	}
	nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	for _, n := range all.Nodes {
		if err := nodes.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	for _, names := range [][]string{nil, {"yours", "mine"}} {
		c := &Cluster{
			Collect: func(context.Context, *kube.Client, collect.Options) (*snapshot.Snapshot, error) {
				rest := *all
				rest.Pods, rest.Nodes = nil, nil
				return &rest, nil
			},
			Pods: func() []*corev1.Pod { return all.Pods }, Nodes: corelisters.NewNodeLister(nodes), Names: names, Clock: clock.RealClock{},
		}
		s, err := c.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		a, err := diagnose.Explain(t.Context(), s, diagnose.Query{Namespace: "team", Name: "llama"}, diagnose.Options{NoAdvice: true})
		if err != nil {
			t.Fatal(err)
		}
		missed := a.Primary != nil && a.Primary.Code == answer.SchedulerNotFound
		if missed != (names == nil) {
			t.Errorf("of the scheduler that answers to %v: %s", names, a.Headline)
		}
	}
}

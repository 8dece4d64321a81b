package explainer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// still is a mirror of a cluster in which nothing changes, but for what is lost.
type still struct {
	all    *snapshot.Snapshot
	lost   []collect.Loss
	closed bool
}

func (m *still) Snapshot() (*snapshot.Snapshot, error) {
	rest := *m.all
	rest.Pods, rest.Nodes = nil, nil
	return &rest, nil
}

func (m *still) Lost() []collect.Loss { return m.lost }

func (m *still) Close() { m.closed = true }

// A cluster is followed from the first snapshot until it is closed, and anew where that failed, or where something fails to be read for longer than an
// answer may be old.
func TestClusterIsFollowed(t *testing.T) {
	var mirrors []*still
	var refused error
	now := clocktesting.NewFakePassiveClock(clustertest.Now)
	c := &Cluster{
		Follow: func(_ context.Context, _ *kube.Client, o collect.Options) (Mirror, error) {
			if o.Poll != sightFor || o.Without == nil {
				t.Errorf("it is followed with %+v", o)
			}
			mirrors = append(mirrors, &still{all: clustertest.New().Done()})
			return mirrors[len(mirrors)-1], refused
		},
		Pods: func() []*corev1.Pod { return nil }, Nodes: corelisters.NewNodeLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)), Clock: now,
	}
	look := func(followed int, fails string) {
		t.Helper()
		_, err := c.Snapshot(t.Context())
		if fails == "" && err != nil || fails != "" && (err == nil || !strings.Contains(err.Error(), fails)) {
			t.Errorf("got %v, want %q", err, fails)
		}
		if len(mirrors) != followed {
			t.Errorf("it was followed %d times, want %d", len(mirrors), followed)
		}
	}
	refused = errors.New("no route")
	look(1, "no route")
	refused = nil
	look(2, "")
	look(2, "")
	mirrors[1].lost = []collect.Loss{{Resource: "jobs.batch", Since: now.Now().Add(-oldest), Failing: now.Now(), Err: errors.New("etcd is gone")}}
	look(2, "")
	now.SetTime(now.Now().Add(oldest + time.Second))
	look(2, "nothing is heard of jobs.batch")
	look(3, "")
	c.Close()
	look(4, "")
	for i, closed := range []bool{1: true, 2: true, 3: false} {
		if i > 0 && mirrors[i].closed != closed {
			t.Errorf("mirror %d is closed: %t", i, mirrors[i].closed)
		}
	}
}

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
			Follow: func(context.Context, *kube.Client, collect.Options) (Mirror, error) { return &still{all: all}, nil },
			Pods:   func() []*corev1.Pod { return all.Pods }, Nodes: corelisters.NewNodeLister(nodes), Names: names, Clock: clock.RealClock{},
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

package diagnose

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
)

// serves3 adds a LeaderWorkerSet of one member each with 8 GPUs on two nodes that its replicas 0 and 1 use, and replica 2, which waits.
func serves3(c *clustertest.Cluster, replicas int64, updates bool) {
	c.Nodes(2, 8).Add(clustertest.Gang{Name: "llm", Kind: "LeaderWorkerSet", Workers: 1, GPUs: 8, NoGroup: true, Nodes: []string{"n1"}, Age: 5 * time.Hour, Job: func(job map[string]any) {
		clustertest.Set(replicas, "spec", "replicas")(job)
		clustertest.Set(int64(3), "status", "replicas")(job)
		if updates {
			clustertest.Set([]any{clustertest.Condition("UpdateInProgress", "True", "GroupsUpdating", "", time.Minute)}, "status", "conditions")(job)
		}
	}})
	first := c.S.Pods[len(c.S.Pods)-1]
	for i, node := range []string{"n2", ""} {
		p := first.DeepCopy()
		p.Name = fmt.Sprintf("llm-%d", i+1)
		p.UID, p.Spec.NodeName = types.UID("Pod:team/"+p.Name), node
		p.Labels[leaderworkerset.GroupIndexLabel] = fmt.Sprint(i + 1)
		if node == "" {
			p.Status = corev1.PodStatus{Phase: corev1.PodPending}
		}
		c.Put(p)
	}
}

// raySuccessor adds the two RayClusters of a RayService, of which one has the only node and the other waits for it.
func raySuccessor(c *clustertest.Cluster, waits time.Duration) {
	of := func(name string, age time.Duration) clustertest.Gang {
		return clustertest.Gang{Name: name, Kind: "RayCluster", Workers: 1, GPUs: 8, NoGroup: true, Age: age, Job: clustertest.Set([]any{map[string]any{"apiVersion": "ray.io/v1", "kind": "RayService", "name": "llm", "uid": "s", "controller": true}},
			"metadata", "ownerReferences")}
	}
	runs := of("llm-a", 5*time.Hour)
	runs.Nodes = []string{"n1"}
	c.Nodes(1, 8).Add(runs).Add(of("llm-b", waits))
}

// What a gang is a part of may have the room for it: it is named as that, and no stranger is to give way. Where it goes only when the gang is ready, that is what is wrong.
func TestOwnRoom(t *testing.T) {
	for _, tt := range []struct {
		name    string
		build   func(*clustertest.Cluster)
		query   Query
		exit    int
		text    string // of the primary finding
		command string // of what the user can do
	}{
		{name: "a replica that an update adds", build: func(c *clustertest.Cluster) { serves3(c, 2, true) }, query: Query{Kind: "lws", Name: "llm", Portion: "2"}, exit: 4,
			text: "the update of LeaderWorkerSet llm waits for itself: it adds replica 2 first (maxSurge), and replica 0, replica 1 are replaced only when that is Ready; 0 of 16 GPUs free", command: "kubectl -n team patch leaderworkerset llm"},
		{name: "a further replica", build: func(c *clustertest.Cluster) { serves3(c, 3, false) }, query: Query{Kind: "lws", Name: "llm", Portion: "2"}, exit: 5,
			text: "replica 0, replica 1 of the same LeaderWorkerSet llm have room that it could use"},
		{name: "the next RayCluster of a RayService", build: func(c *clustertest.Cluster) { raySuccessor(c, time.Hour) }, query: Query{Kind: "raycluster", Name: "llm-b"}, exit: 4,
			text: "the update of RayService llm waits for itself: RayCluster llm-a is deleted only when llm-b is ready", command: "kubectl -n team delete raycluster.ray.io/llm-a"},
		{name: "the RayCluster before it", build: func(c *clustertest.Cluster) { raySuccessor(c, 9*time.Hour) }, query: Query{Kind: "raycluster", Name: "llm-b"}, exit: 5,
			text: "RayCluster llm-a of the same RayService llm has room that it could use"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := clustertest.New()
			tt.build(c)
			tt.query.Namespace = "team"
			a, err := Explain(context.Background(), c.Done(), tt.query, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if a.Exit != tt.exit || a.Primary == nil || !strings.Contains(a.Primary.Message+"\n"+strings.Join(a.Primary.Details, "\n"), tt.text) {
				t.Errorf("exit %d, %+v", a.Exit, a.Primary)
			}
			for _, row := range a.Nodes.Rows {
				if held := strings.Join(row.Consumers, "; "); tt.query.Kind == "lws" && held != "LeaderWorkerSet team/llm, of which it is a part" {
					t.Errorf("%s is held by %q", row.Node, held)
				}
			}
			own := slices.IndexFunc(a.Unblock, func(x answer.Action) bool { return x.By == answer.User })
			if (own >= 0) != (tt.command != "") || own >= 0 && !strings.HasPrefix(a.Unblock[own].Command, tt.command) {
				t.Errorf("got %+v", a.Unblock)
			}
		})
	}
}

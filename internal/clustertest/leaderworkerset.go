package clustertest

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
)

// addLeaderWorkerSet adds a LeaderWorkerSet of one replica, of which the first worker is the leader, in a cluster in which its controller runs.
func (c *Cluster) addLeaderWorkerSet(g Gang) {
	version := leaderworkerset.Group + "/" + leaderworkerset.Version
	c.S.Server.Resources = append(c.S.Server.Resources, leaderworkerset.Resource+"."+version)
	c.Deployment("lws-system", "lws-controller-manager", "registry.k8s.io/lws/lws:v0.9.0")
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(g.template(g.roles()[0]))
	if err != nil {
		panic(err) // a mistake in a test
	}
	job := map[string]any{
		"apiVersion": version, "kind": leaderworkerset.Kind,
		"metadata": map[string]any{"name": g.Name, "namespace": g.Namespace, "uid": string(g.uid()), "creationTimestamp": stamp(g.Age)},
		"spec":     map[string]any{"replicas": int64(1), "leaderWorkerTemplate": map[string]any{"size": int64(g.Workers), "workerTemplate": template}},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Progressing", "status": "True"}}},
	}
	if g.Job != nil {
		g.Job(job)
	}
	c.Object(job)
}

// replicaMeta is the metadata that the controller of LeaderWorkerSets gives to a pod of the only replica.
func (g Gang) replicaMeta(i int) metav1.ObjectMeta {
	yes := true
	meta := metav1.ObjectMeta{
		Name: fmt.Sprintf("%s-0-%d", g.Name, i), Annotations: map[string]string{leaderworkerset.SizeAnnotation: fmt.Sprint(g.Workers)},
		Labels: map[string]string{leaderworkerset.NameLabel: g.Name, leaderworkerset.GroupIndexLabel: "0", leaderworkerset.WorkerIndexLabel: fmt.Sprint(i), leaderworkerset.RevisionLabel: "abc"},
	}
	set := g.Name + "-0"
	if i == 0 {
		meta.Name, set = set, g.Name
	}
	meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set, UID: uid("StatefulSet", g.Namespace, set), Controller: &yes}}
	return meta
}

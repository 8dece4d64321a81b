package diagnose

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
)

// serving is a cluster of nodes of 8 GPUs with the controller of LeaderWorkerSet.
func serving(nodes int) *clustertest.Cluster {
	c := clustertest.New().Nodes(nodes, 8)
	c.S.Server.Resources = append(c.S.Server.Resources, "leaderworkersets.leaderworkerset.x-k8s.io/v1")
	c.Deployment("lws-system", "lws-controller-manager", "registry.k8s.io/lws/lws:v0.9.0")
	return c
}

// service is a LeaderWorkerSet of replicas of a leader and a worker with 8 GPUs each.
func service(replicas int64) *unstructured.Unstructured {
	container := map[string]any{"name": "main", "image": "x", "resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": int64(8)}}}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": map[string]any{"name": "llama", "namespace": "team"},
		"spec": map[string]any{"replicas": replicas, "leaderWorkerTemplate": map[string]any{"size": int64(2),
			"workerTemplate": map[string]any{"spec": map[string]any{"schedulerName": "gang-scheduler", "containers": []any{container}}}}},
	}}
}

// Each replica is tried with those before it running, and answered for by itself.
func TestReplicas(t *testing.T) {
	for _, tt := range []struct {
		nodes    int
		exit     int
		headline string
		note     string
	}{
		{nodes: 6, exit: 0, headline: "llama replica 2: "},
		{nodes: 5, exit: 3, headline: "llama replica 2: ", note: "llama has 3 replicas, each a gang of its own: 2 run, and this is about replica 2"},
		{nodes: 2, exit: 3, headline: "llama replica 1: ", note: "1 runs, and this is about replica 1; replica 2 waits for the same reason"},
		{nodes: 1, exit: 6, headline: "llama replica 0: ", note: "0 run, and this is about replica 0; replica 1 and replica 2 wait for the same reason"},
	} {
		t.Run(fmt.Sprintf("%d nodes", tt.nodes), func(t *testing.T) {
			c := serving(tt.nodes).Schedules("gang-scheduler")
			trial, err := DryRun(context.Background(), c.Done(), service(3), "team", Options{})
			if err != nil {
				t.Fatal(err)
			}
			notes := strings.Join(trial.Notes, "\n")
			if (trial.Exit == 0) != (tt.exit == 0) || !strings.HasPrefix(trial.Headline, tt.headline) || !strings.Contains(notes, tt.note) {
				t.Errorf("exit %d, %s\n%s", trial.Exit, trial.Headline, notes)
			}
		})
	}
}

// One of several is chosen by its number, and one that runs is not held up by one that waits.
func TestReplicaIsChosen(t *testing.T) {
	c := serving(2).Schedules("gang-scheduler")
	trial, err := DryRun(context.Background(), c.Done(), service(2), "team", Options{})
	if err != nil {
		t.Fatal(err)
	}
	after := trial.After()
	for replica, want := range map[int32]answer.Verdict{0: answer.Running, 1: trial.Verdict} {
		a, err := Explain(context.Background(), after, Query{Kind: "lws", Namespace: "team", Name: "llama", Portion: fmt.Sprint(replica)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if a.Verdict != want || a.Gang.Replica == nil || *a.Gang.Replica != replica || a.Gang.Replicas != 2 || a.Gang.MinMember != 2 {
			t.Errorf("replica %d: %s\n%s", replica, a.Line(), fmt.Sprint(a.Gang))
		}
	}
	if _, err := Explain(context.Background(), after, Query{Namespace: "team", Name: "llama", Portion: "7"}, Options{}); err == nil || !strings.Contains(err.Error(), "has no replica 7: it has 2") {
		t.Errorf("got %v", err)
	}
}

// A LeaderWorkerSet whose workers follow their leader may request gangctl's scheduler since before that knew replicas as gangs: each waits for
// itself then, which is reported with the way out.
func TestReplicaThatWaitsForItself(t *testing.T) {
	s := serving(2).Schedules("gang-scheduler")
	u := service(1)
	u.SetUID("s")
	u.SetCreationTimestamp(metav1.NewTime(s.S.At.Add(-time.Hour)))
	for _, value := range []struct {
		value any
		path  []string
	}{{"LeaderReady", []string{"spec", "startupPolicy"}}, {[]any{map[string]any{"type": "Available", "status": "False"}}, []string{"status", "conditions"}}} {
		if err := unstructured.SetNestedField(u.Object, value.value, value.path...); err != nil {
			t.Fatal(err)
		}
	}
	yes := true
	leader := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "llama-0", UID: "p", CreationTimestamp: metav1.NewTime(s.S.At.Add(-time.Hour)),
		Labels:          map[string]string{leaderworkerset.NameLabel: "llama", leaderworkerset.GroupIndexLabel: "0", leaderworkerset.WorkerIndexLabel: "0"},
		Annotations:     map[string]string{leaderworkerset.SizeAnnotation: "2"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "llama", UID: "x", Controller: &yes}},
	}, Spec: corev1.PodSpec{SchedulerName: "gang-scheduler", Containers: []corev1.Container{{Name: "main", Image: "x"}}}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	s.S.Pods = append(s.S.Pods, leader)
	if err := s.S.PutUntyped(u); err != nil {
		t.Fatal(err)
	}
	a, err := Explain(context.Background(), s.Done(), Query{Namespace: "team", Name: "llama"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a.Verdict != answer.Blocked || !strings.Contains(a.Headline, "so it waits for itself") {
		t.Fatalf("got %s", a.Line())
	}
	want := "kubectl -n team patch leaderworkerset.leaderworkerset.x-k8s.io/llama --type=merge -p '" +
		`{"spec":{"leaderWorkerTemplate":{"workerTemplate":{"metadata":{"annotations":{"gangctl.dev/dialect":"none"}}}}}}` + "'"
	if len(a.Unblock) == 0 || a.Unblock[0].Command != want || !a.Unblock[0].Verified {
		t.Errorf("got %+v", a.Unblock)
	}
}

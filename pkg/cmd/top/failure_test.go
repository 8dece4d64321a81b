package top

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

var views = []string{"node", "job", "job -A", "queue", "node -o json", "job -o json", "queue -o json", "node -w", "job -w", "queue -w"}

// A list that failed is an error in every view, never an empty table.
func TestFailures(t *testing.T) {
	tests := map[string]struct {
		prepare       func(*kubetest.Cluster)
		only          string // the views that need it, by their name; empty: all
		message, hint string
	}{
		"401": {func(l *kubetest.Cluster) {
			l.Fail("/api/v1/nodes", kubetest.Status(401, metav1.StatusReasonUnauthorized, "Unauthorized", nil))
		}, "", "list Nodes in all namespaces: the API server does not accept your credentials (401 Unauthorized)", "log in"},
		"403 on nodes": {func(l *kubetest.Cluster) { l.Deny("bob", "/api/v1/nodes") }, "node queue",
			`list nodes in all namespaces: x is forbidden: User "bob" cannot list resource "nodes"`, `resources: ["nodes"]`},
		"403 on pods": {func(l *kubetest.Cluster) { l.Deny("bob", "/api/v1/pods", "/api/v1/namespaces/team/pods") }, "",
			`cannot list resource "pods"`, `resources: ["pods"]`},
		"403 on jobs": {func(l *kubetest.Cluster) {
			l.Deny("bob", "/apis/kubeflow.org/v1/tfjobs", "/apis/kubeflow.org/v1/namespaces/team/tfjobs")
		}, "job queue", `cannot list resource "tfjobs"`, "- tfjobs"},
		"404 of the kind": {nil, "job queue", "list jobs: the cluster does not serve tfjobs.kubeflow.org", "Training Operator"},
		"500": {func(l *kubetest.Cluster) {
			l.Fail("/api/v1/pods", kubetest.Status(500, metav1.StatusReasonInternalError, "etcd is gone", nil))
		}, "", "list Pods in all namespaces: etcd is gone", "try again"},
	}
	for name, tt := range tests {
		for _, args := range views {
			view, _, _ := strings.Cut(args, " ")
			if tt.only != "" && !strings.Contains(tt.only, view) {
				continue
			}
			t.Run(name+"/"+args, func(t *testing.T) {
				var client func() (*kube.Client, error)
				if strings.HasPrefix(name, "404") {
					client = withoutKinds(t)
				} else {
					cluster := kubetest.Serve(t, shop().Done())
					tt.prepare(cluster)
					client = cluster.Client
				}
				stdout, stderr, failed := run(t, client, 0, strings.Fields(args)...)
				if stdout != "" || stderr != "" || failed == nil || failed.Code != failure.CodeError || !strings.Contains(failed.Message, tt.message) || !strings.Contains(failed.Hint, tt.hint) {
					t.Errorf("got %+v, %q, %q", failed, stdout, stderr)
				}
			})
		}
	}
}

// Jobs of the kinds that may be listed are shown, and that it is not all is an error.
func TestJobsWithoutOneKind(t *testing.T) {
	denied := snapshot.Denial{Resource: "pytorchjobs.kubeflow.org", Message: "you cannot list them"}
	s := shop().Done()
	s.Denied = append(s.Denied, denied)
	v, err := (&Options{What: Job}).view(t.Context(), s, "team", &gauge{})
	if err != nil || len(v.jobs.Jobs) == 0 || v.refused == nil || !strings.Contains(v.refused.Error(), denied.Message) {
		t.Fatalf("got %v, %+v", err, v)
	}
	none := clustertest.New().Done()
	none.Denied = append(none.Denied, denied)
	if _, err := (&Options{What: Job}).view(t.Context(), none, "team", &gauge{}); err == nil || !strings.Contains(err.Error(), denied.Message) {
		t.Errorf("no job is seen: got %v", err)
	}
}

// Everything that a view lacks is in one hint.
func TestAllThatIsMissing(t *testing.T) {
	cluster := kubetest.Serve(t, shop().Done())
	cluster.Deny("bob", "/api/v1/nodes", "/api/v1/pods", "/api/v1/namespaces/team/pods")
	_, _, failed := run(t, cluster.Client, 0, "node")
	if failed == nil || strings.Count(failed.Message, "cannot list") != 2 || !strings.Contains(failed.Hint, `resources: ["nodes", "pods"]`) {
		t.Errorf("got %+v", failed)
	}
}

// withoutKinds is a cluster that knows no kind of job.
func withoutKinds(t *testing.T) func() (*kube.Client, error) {
	t.Helper()
	s := kubetest.New(t)
	s.Answer("GET /version", 200, map[string]string{"gitVersion": "v1.37.1"})
	s.Answer("GET /api", 200, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	s.Answer("GET /api/v1", 200, metav1.APIResourceList{GroupVersion: "v1"})
	s.Answer("GET /apis", 200, metav1.APIGroupList{})
	s.Answer("GET /api/v1/nodes", 200, map[string]any{"kind": "NodeList", "apiVersion": "v1", "items": []any{}})
	s.Answer("GET /api/v1/pods", 200, kubetest.PodList())
	return s.Client
}

// A server that is away, or does not answer in time, is an error too.
func TestNoServer(t *testing.T) {
	for want, client := range kubetest.Away(t) {
		for _, args := range views {
			stdout, _, failed := run(t, client, 0, strings.Fields(args)...)
			if stdout != "" || failed == nil || failed.Code != failure.CodeError || !strings.Contains(failed.Message, want) || failed.Hint == "" {
				t.Errorf("%s: got %+v, %q", args, failed, stdout)
			}
		}
	}
}

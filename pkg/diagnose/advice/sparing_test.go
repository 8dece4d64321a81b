package advice_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// stateful runs a StatefulSet with one pod of so many GPUs on each node, in the order of their ordinals.
func stateful(c *clustertest.Cluster, name string, gpus int64, nodes ...string) {
	c.Serves(name, gpus, nodes...)
	yes := true
	for _, p := range c.S.Pods {
		if strings.HasPrefix(p.Name, name+"-abc-") {
			p.Name, p.Labels = strings.Replace(p.Name, "-abc", "", 1), nil
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: name, UID: "sts", Controller: &yes}}
		}
	}
}

func guard(c *clustertest.Cluster, name string, allowed int32, pods ...*corev1.Pod) {
	most := intstr.FromInt32(allowed)
	for _, p := range pods {
		p.Labels["app"] = name
	}
	c.Put(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "serving", Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &most, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed}})
}

// A service gives up no more of its pods than have to go.
func TestEvictFewPods(t *testing.T) {
	tests := map[string]struct {
		build         func(*clustertest.Cluster)
		want, command string
		cost          string
	}{
		"whichever goes": {func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Serves("web", 8, "n1", "n2", "n3").Add(gangOf(2, 8))
			guard(c, "web", 1, c.S.Pods[:3]...)
		}, "jobs=[serving/web] replicas=map[serving/web:2]", "kubectl -n serving scale deployment/web --replicas=2", "serving/web serves with 2 instead of 3 pods until it is scaled up again, as its HorizontalPodAutoscaler would, if it has one"},
		"more than its budget allows": {func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Serves("web", 8, "n1", "n2", "n3").Add(gangOf(3, 8))
			guard(c, "web", 1, c.S.Pods[:3]...)
		}, "jobs=[serving/web] replicas=map[serving/web:1]", "kubectl -n serving scale deployment/web --replicas=1",
			"serving/web serves with 1 instead of 3 pods until it is scaled up again, as its HorizontalPodAutoscaler would, if it has one; PodDisruptionBudget serving/web lets 1 of 2 pods go, which the command does not respect"},
		"one that is marked": {func(c *clustertest.Cluster) {
			c.Node("n1", 4)
			c.Node("n2", 8)
			c.Node("n3", 4)
			c.Serves("web", 4, "n1", "n2", "n3").Add(gangOf(1, 8))
		}, "jobs=[serving/web] pods=[web-abc-1] replicas=map[serving/web:2]",
			"kubectl -n serving annotate --overwrite pod web-abc-1 controller.kubernetes.io/pod-deletion-cost=-1\nkubectl -n serving scale deployment/web --replicas=2", ""},
		"below what others are marked with": {func(c *clustertest.Cluster) {
			c.Node("n1", 4)
			c.Node("n2", 8)
			c.Serves("web", 4, "n1", "n2").Add(gangOf(1, 8))
			c.S.Pods[0].Annotations = map[string]string{corev1.PodDeletionCost: "-7"}
		}, "jobs=[serving/web] pods=[web-abc-1] replicas=map[serving/web:1]",
			"kubectl -n serving annotate --overwrite pod web-abc-1 controller.kubernetes.io/pod-deletion-cost=-8\nkubectl -n serving scale deployment/web --replicas=1", ""},
		"those that are not ready go before": {func(c *clustertest.Cluster) {
			c.Node("n1", 4)
			c.Node("n2", 8)
			c.Node("n3", 8)
			c.Serves("web", 4, "n1", "n2", "n3").Add(gangOf(1, 8))
			c.S.Pods[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		}, "jobs=[serving/web] replicas=map[serving/web:1]", "kubectl -n serving scale deployment/web --replicas=1", ""},
		"while it is rolled out it is not known": {func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Serves("web", 8, "n1", "n2").Add(gangOf(1, 8))
			c.S.Pods[0].OwnerReferences[0].UID = "before"
		}, "jobs=[serving/web]", "kubectl -n serving scale deployment/web --replicas=0", ""},
		"the last ordinals": {func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			stateful(c, "triton", 8, "n1", "n2", "n3", "n4")
			c.Add(gangOf(2, 8))
		}, "jobs=[serving/triton] pods=[triton-3 triton-2] replicas=map[serving/triton:2]", "kubectl -n serving scale statefulset/triton --replicas=2", ""},
		"the first ordinal goes last": {func(c *clustertest.Cluster) {
			c.Node("n1", 8)
			c.Node("n2", 4)
			stateful(c, "triton", 4, "n1", "n2")
			c.Add(gangOf(1, 8))
		}, "jobs=[serving/triton]", "kubectl -n serving scale statefulset/triton --replicas=0", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New()
			tt.build(c)
			_, found := look(t, c, advice.Options{})
			got := offers(found.Actions, answer.Evict)
			if !slices.Equal(got, []string{tt.want}) {
				t.Fatalf("got  %q\nwant %q", got, tt.want)
			}
			for _, a := range found.Actions {
				check(t, a)
				if a.Kind == answer.Evict && (a.Command != tt.command || tt.cost != "" && a.Cost != tt.cost) {
					t.Errorf("got %s\n%s", a.Command, a.Cost)
				}
			}
		})
	}
}

// Of many pods on one node as many go as a member needs.
func TestEvictSomeOfManyPods(t *testing.T) {
	c := clustertest.New().Nodes(2, 8)
	var nodes []string
	for i := range 80 {
		nodes = append(nodes, fmt.Sprint("n", 1+i%2))
	}
	c.ServesWith("api", 0, "2", nodes...)
	for _, p := range c.S.Pods {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = clustertest.List("memory", "1Gi")[corev1.ResourceMemory]
	}
	c.Add(gangOf(1, 8, func(g *clustertest.Gang) { g.CPU = "26" }))
	_, found := look(t, c, advice.Options{})
	if got := offers(found.Actions, answer.Evict); len(got) != 1 || !strings.HasSuffix(got[0], "replicas=map[serving/api:75]") || strings.Count(got[0], "api-abc-") != 5 {
		t.Errorf("got %q", got)
	}
}

// Of two services each loses the pods that were tried together: that it is the same whichever go holds for one of them alone.
func TestEvictPodsOfTwoServices(t *testing.T) {
	c := clustertest.New().Nodes(2, 8).Serves("a", 4, "n1", "n2").Serves("b", 4, "n1", "n2").Add(gangOf(1, 8))
	_, found := look(t, c, advice.Options{})
	got := offers(found.Actions, answer.Evict)
	if want := []string{"jobs=[serving/a serving/b] pods=[a-abc-0 b-abc-0] replicas=map[serving/a:1 serving/b:1]"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

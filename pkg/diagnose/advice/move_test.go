package advice_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// scattered has two nodes, on each of which a service holds one GPU, and a gang that needs a whole node.
func scattered(c *clustertest.Cluster) *clustertest.Cluster {
	return c.Nodes(2, 8).Serves("web", 1, "n1").Serves("db", 1, "n2")
}

// webMoves is the best that can be done there.
const webMoves = "from=[n1] pods=[serving/web-abc-0] to=[n2]"

// webPod changes the pod of the service on n1.
func webPod(f func(*corev1.Pod)) func(*clustertest.Cluster) {
	return func(c *clustertest.Cluster) {
		scattered(c).Add(gangOf(1, 8))
		for _, p := range c.S.Pods {
			if strings.HasPrefix(p.Name, "web-") || strings.HasPrefix(p.Name, "db-") {
				f(p)
			}
		}
	}
}

// guarded adds a disruption budget for the services.
func guarded(c *clustertest.Cluster, name string, allowed int32) {
	c.Put(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "serving", Name: name},
		Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"pod-template-hash": "abc"}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed}})
}

// one is a job with one pod and one GPU.
func one(name, node, kind string, restart corev1.RestartPolicy) clustertest.Gang {
	return clustertest.Gang{Namespace: "research", Name: name, Kind: kind, Workers: 1, GPUs: 1, Nodes: []string{node}, Age: time.Hour,
		Pod: func(_ int, p *corev1.Pod) { p.Spec.RestartPolicy = restart }}
}

func TestMove(t *testing.T) {
	runCases(t, answer.Move, []testCase{
		{"one small pod", func(c *clustertest.Cluster) { scattered(c).Add(gangOf(1, 8)) }, []string{webMoves}},
		{"the smaller of two", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Serves("web", 2, "n1").Serves("db", 1, "n2").Add(gangOf(1, 8))
		}, []string{"from=[n2] pods=[serving/db-abc-0] to=[n1]"}},
		{"two pods, for two members", func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Serves("a", 1, "n1").Serves("b", 1, "n2").Runs("c", 4, "n3").Add(gangOf(2, 8))
		}, []string{"from=[n1 n2] pods=[serving/a-abc-0 serving/b-abc-0] to=[n3 n3]"}},
		{"one member more on a node that takes one already", func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Serves("a", 1, "n1").Node("n2", 1)
			c.Add(gangOf(2, 4))
		}, []string{"from=[n1] pods=[serving/a-abc-0] to=[n2]"}},
		{"cpu is what is short", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).ServesWith("web", 0, "60", "n1").ServesWith("db", 0, "70", "n2")
			c.Add(gangOf(1, 8, func(g *clustertest.Gang) { g.CPU = "40" }))
		}, nil}, // 60 and 70 do not go together
		{"cpu is what is short, and there is some elsewhere", func(c *clustertest.Cluster) {
			c.Nodes(1, 8).ServesWith("web", 0, "60", "n1").Node("n2", 0)
			c.Add(gangOf(1, 8, func(g *clustertest.Gang) { g.CPU = "40" }))
		}, []string{"from=[n1] pods=[serving/web-abc-0] to=[n2]"}},
		{"memory of which none is requested, where more is used than there is", func(c *clustertest.Cluster) {
			scattered(c).Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) {
				p.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("0")
			})))
			for _, n := range c.S.Nodes {
				n.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("1Mi")
			}
		}, nil}, // web finds no memory elsewhere
		{"no room elsewhere", func(c *clustertest.Cluster) { c.Nodes(1, 8).Serves("web", 1, "n1").Add(gangOf(1, 8)) }, nil},
		{"the room elsewhere is the gang's", func(c *clustertest.Cluster) { c.Nodes(2, 8).Serves("web", 1, "n1").Add(gangOf(2, 8)) }, nil},
		{"a budget allows none", func(c *clustertest.Cluster) {
			guarded(c, "b", 0)
			scattered(c).Add(gangOf(1, 8))
		}, nil},
		{"a budget allows one", func(c *clustertest.Cluster) {
			guarded(c, "b", 1)
			scattered(c).Add(gangOf(1, 8))
		}, []string{webMoves}},
		{"a budget allows one, and two would have to move", func(c *clustertest.Cluster) {
			guarded(c, "b", 1)
			c.Nodes(3, 8).Serves("a", 1, "n1").Serves("b", 1, "n2").Runs("c", 4, "n3").Add(gangOf(2, 8))
		}, nil},
		{"two budgets: the API server evicts no such pod", func(c *clustertest.Cluster) {
			guarded(c, "b1", 1)
			guarded(c, "b2", 1)
			scattered(c).Add(gangOf(1, 8))
		}, nil},
		{"there may be a budget that is not read, as one selects by too much", func(c *clustertest.Cluster) {
			guarded(c, "b", 1)
			c.S.DisruptionBudgets[0].Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: metav1.LabelSelectorOpNotIn, Values: make([]string, 200)}}
			scattered(c).Add(gangOf(1, 8))
		}, nil},
		{"there may be a budget that is not read, as there are too many", func(c *clustertest.Cluster) {
			for i := range 101 {
				guarded(c, fmt.Sprint("b", i), 1)
				c.S.DisruptionBudgets[i].Spec.Selector.MatchLabels["app"] = "another"
			}
			scattered(c).Add(gangOf(1, 8))
		}, nil},
		{"its owner wants it to stay", webPod(func(p *corev1.Pod) {
			p.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
		}), nil},
		{"it is the system's", webPod(func(p *corev1.Pod) { n := int32(2000001000); p.Spec.Priority = &n }), nil},
		{"it is leaving", webPod(func(p *corev1.Pod) { at := metav1.NewTime(clustertest.Now.Add(time.Minute)); p.DeletionTimestamp = &at }), nil},
		{"it has claimed a device", webPod(func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "x"}} }), nil},
		{"it is one of a gang", webPod(func(p *corev1.Pod) { p.Labels["scheduling.x-k8s.io/pod-group"] = "serving-gang" }), nil},
		{"no controller would create it again", webPod(func(p *corev1.Pod) { p.OwnerReferences = nil }), nil},
		{"of another group's StatefulSet it is not known what becomes", webPod(func(p *corev1.Pod) {
			p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind = "apps.kruise.io/v1beta1", "StatefulSet"
		}), nil},
		{"a DaemonSet's stays", webPod(func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }), nil},
		{"a static pod stays", webPod(func(p *corev1.Pod) { p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name = "Node", p.Spec.NodeName }), nil},
		{"a job of one pod that is restarted", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(one("a", "n1", "TFJob", corev1.RestartPolicyOnFailure)).Add(one("b", "n2", "TFJob", corev1.RestartPolicyNever)).Add(gangOf(1, 8))
		}, []string{"from=[n1] pods=[research/a-worker-0] to=[n2]"}},
		{"jobs that an eviction ends", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(one("a", "n1", "TFJob", corev1.RestartPolicyNever)).Add(one("b", "n2", "PyTorchJob", corev1.RestartPolicyNever)).Add(gangOf(1, 8))
		}, nil},
		{"a batch Job with tries left", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(one("a", "n1", "Job", corev1.RestartPolicyNever)).Runs("b", 1, "n2").Add(gangOf(1, 8))
		}, []string{"from=[n1] pods=[research/a-x7k00] to=[n2]"}},
		{"a batch Job without", func(c *clustertest.Cluster) {
			j := one("a", "n1", "Job", corev1.RestartPolicyNever)
			j.BatchJob = func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32) }
			c.Nodes(2, 8).Add(j).Runs("b", 1, "n2").Add(gangOf(1, 8))
		}, nil},
		{"a member of a larger job", func(c *clustertest.Cluster) {
			g := one("a", "n1", "TFJob", corev1.RestartPolicyOnFailure)
			g.Workers, g.Nodes = 2, []string{"n1", "n2"}
			c.Nodes(2, 8).Add(g).Add(gangOf(1, 8))
		}, nil},
		{"a job of one pod whose gang has another job's, too", func(c *clustertest.Cluster) {
			c.Nodes(3, 8)
			for i, node := range []string{"n1", "n2"} {
				g := one([]string{"a", "b"}[i], node, "TFJob", corev1.RestartPolicyOnFailure)
				g.NoGroup = true
				g.Pod = func(_ int, p *corev1.Pod) {
					p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
					p.Labels["scheduling.x-k8s.io/pod-group"] = "both"
				}
				c.Add(g)
			}
			c.Object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"namespace": "research", "name": "both"}, "spec": map[string]any{"minMember": int64(2)}})
			c.Runs("c", 4, "n3").Add(gangOf(2, 8))
		}, nil},
		{"one of a unit that starts again as a whole", webPod(func(p *corev1.Pod) {
			p.Labels["leaderworkerset.sigs.k8s.io/name"], p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name = "vllm", "StatefulSet", "vllm"
		}), nil},
		{"a pod that would go back to a node of the gang by its rules", webPod(func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: p.Spec.NodeName}
		}), nil},
		{"another blocker remains", func(c *clustertest.Cluster) {
			c.Queue("q", "Open", map[string]any{"nvidia.com/gpu": "4"})
			scattered(c).Add(gangOf(1, 8, func(g *clustertest.Gang) { g.Volcano, g.Missing = "q", 1 }))
		}, nil},
	})
}

// The nodes that the gang is to have are closed before the first pod leaves, and opened after the last has a place; a pod is
// evicted, not deleted, so that budgets count.
func TestMoveCommands(t *testing.T) {
	c := clustertest.New()
	_, found := look(t, scattered(c).Add(gangOf(1, 8)), advice.Options{})
	i := slices.IndexFunc(found.Actions, func(a answer.Action) bool { return a.Kind == answer.Move })
	if i < 0 {
		t.Fatal("no move")
	}
	a := found.Actions[i]
	want := `kubectl cordon n1
echo '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"namespace":"serving","name":"web-abc-0"}}' | kubectl create --raw /api/v1/namespaces/serving/pods/web-abc-0/eviction -f -
kubectl -n serving wait --for=delete pod/web-abc-0 --timeout=10m
kubectl -n serving rollout status deployment/web --timeout=10m
kubectl uncordon n1`
	if a.Command != want || a.By != answer.Admin || a.Cost != "serving/web starts 1 pod again" {
		t.Errorf("by %s, cost %q\ngot\n%s\nwant\n%s", a.By, a.Cost, a.Command, want)
	}
	if len(a.Placement) != 1 || a.Placement[0].Node != "n1" {
		t.Errorf("the gang goes to %v", a.Placement)
	}
}

package whatif_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// written is a snapshot as text, to compare before and after.
func written(t *testing.T, s *snapshot.Snapshot) string {
	t.Helper()
	var out bytes.Buffer
	if err := s.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// gangOf finds a job in a snapshot.
func gangOf(t *testing.T, s *snapshot.Snapshot, name string) *gang.Gang {
	t.Helper()
	w := view.New(s)
	job, err := w.Find(view.Query{Namespace: "team", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return w.Gang(job)
}

// busy has two nodes, a job that holds one of them, a quota that both are charged to, a claim, and a gang that waits.
func busy() *clustertest.Cluster {
	c := clustertest.New().Nodes(2, 8).Add(clustertest.Gang{Name: "a", Workers: 1, GPUs: 8, Nodes: []string{"n1"}}).Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 8})
	c.Put(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "q"},
		Spec:   corev1.ResourceQuotaSpec{Hard: clustertest.List("requests.nvidia.com/gpu", "16")},
		Status: corev1.ResourceQuotaStatus{Hard: clustertest.List("requests.nvidia.com/gpu", "16"), Used: clustertest.List("requests.nvidia.com/gpu", "24")}})
	c.Put(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "c"},
		Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{}, ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "a-worker-0", UID: "Pod:team/a-worker-0"}}}})
	return c
}

func podsOf(s *snapshot.Snapshot, prefix string) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(s.Pods), func(p *corev1.Pod) bool { return p.Name != prefix+"-worker-0" && p.Name != prefix+"-worker-1" })
}

// No function changes the snapshot that it is given, and each changes something in the one that it returns.
func TestArgumentsStay(t *testing.T) {
	c := busy()
	c.S.Nodes[0].Spec.Unschedulable = true
	c.Event("Pod", "team", "gang-worker-0", "x", "FailedScheduling", "no", 0)
	s := c.Done()
	s.Probes = []snapshot.Probe{{Kind: "Pod", Namespace: "team", Name: "x", Code: 403}}
	g := gangOf(t, s, "gang")
	tfjob := schema.GroupKind{Group: "kubeflow.org", Kind: "TFJob"}
	tests := map[string]func() *snapshot.Snapshot{
		"Gone": func() *snapshot.Snapshot {
			return whatif.Gone(s, podsOf(s, "a"), gang.Identity{Namespace: "team", UID: "TFJob:team/a"})
		},
		"Nodes": func() *snapshot.Snapshot {
			return whatif.Nodes(s, func(n *corev1.Node) *corev1.Node {
				n = n.DeepCopy()
				n.Spec.Unschedulable = !n.Spec.Unschedulable
				return n
			})
		},
		"MoreNodes": func() *snapshot.Snapshot { return whatif.MoreNodes(s, s.Nodes[0], nil, 2) },
		"Moved":     func() *snapshot.Snapshot { return whatif.Moved(s, map[*corev1.Pod]string{podsOf(s, "a")[0]: "n2"}) },
		"Edit": func() *snapshot.Snapshot {
			return whatif.Edit(s, tfjob, "team", "gang", func(u *unstructured.Unstructured) { whatif.Set(u, true, "spec", "runPolicy", "suspend") })
		},
		"QuotaLimit": func() *snapshot.Snapshot {
			q := resource.MustParse("32")
			return whatif.QuotaLimit(s, s.ResourceQuotas[0], "requests.nvidia.com/gpu", whatif.Limit("requests.nvidia.com/gpu", q))
		},
		"WithoutEvents": func() *snapshot.Snapshot { return whatif.WithoutEvents(s, func(*corev1.Event) bool { return true }) },
		"WithoutProbes": func() *snapshot.Snapshot { return whatif.WithoutProbes(s, "Pod") },
		"Resubmit": func() *snapshot.Snapshot {
			return whatif.Resubmit(s, g, func(spec *whatif.Spec) {
				r := spec.Role("Worker")
				r.Replicas = 1
				r.Template.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("1")
				r.Template.Spec.NodeSelector = map[string]string{"a": "b"}
			})
		},
	}
	before := written(t, s)
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			changed := change()
			if after := written(t, s); after != before {
				t.Fatal("the argument was changed")
			}
			if written(t, changed) == before {
				t.Error("nothing is different")
			}
		})
	}
}

func TestGone(t *testing.T) {
	s := busy().Done()
	after := whatif.Gone(s, podsOf(s, "a"), gang.Identity{Namespace: "team", UID: "TFJob:team/a"})
	if len(after.Pods) != len(s.Pods)-1 || len(podsOf(after, "a")) != 0 {
		t.Errorf("%d of %d pods are left", len(after.Pods), len(s.Pods))
	}
	for kind, list := range after.Custom {
		for _, u := range list {
			if u.GetName() == "a" {
				t.Errorf("%s a is left", kind.Kind)
			}
		}
	}
	if used := after.ResourceQuotas[0].Status.Used["requests.nvidia.com/gpu"]; used.Value() != 16 {
		t.Errorf("the quota is charged %s", used.String())
	}
	if claim := after.ResourceClaims[0].Status; claim.Allocation != nil || len(claim.ReservedFor) != 0 {
		t.Errorf("the claim is still %v", claim)
	}
	if all := whatif.Gone(s, nil, gang.Identity{Namespace: "team"}); len(all.Custom[schema.GroupKind{Group: "kubeflow.org", Kind: "TFJob"}]) != 2 {
		t.Error("an empty uid matches an object")
	}
}

func TestMoreNodes(t *testing.T) {
	c := clustertest.New().Nodes(1, 8)
	daemon := c.Daemon("agent", "n1", "2")
	s := c.Done()
	after := whatif.MoreNodes(s, s.Nodes[0], []*corev1.Pod{daemon}, 3)
	var names, hosts, pods []string
	for _, n := range after.Nodes {
		names, hosts = append(names, n.Name), append(hosts, n.Labels[corev1.LabelHostname])
	}
	for _, p := range after.Pods {
		if p.Spec.NodeName != "" {
			pods = append(pods, p.Spec.NodeName)
		}
	}
	want := "[n1 n1-new-1 n1-new-2 n1-new-3]"
	if fmt.Sprint(names) != want || fmt.Sprint(hosts) != want || fmt.Sprint(pods) != want {
		t.Errorf("nodes %v, host names %v, daemons on %v", names, hosts, pods)
	}
}

func TestMoved(t *testing.T) {
	s := busy().Done()
	pod := podsOf(s, "a")[0]
	w := view.New(s).Assume(whatif.Moved(s, map[*corev1.Pod]string{pod: "n2"}))
	n1, n2 := w.Cluster().Free("n1")["nvidia.com/gpu"], w.Cluster().Free("n2")["nvidia.com/gpu"]
	if n1.Value() != 8 || n2.Value() != 0 {
		t.Errorf("free: n1 %s, n2 %s", n1.String(), n2.String())
	}
}

// A user may write null, or anything else that the API server keeps, where an object is expected.
func TestSetWhereNoObjectIs(t *testing.T) {
	for _, spec := range []any{"text", nil, int64(1), []any{}} {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		whatif.Set(u, true, "spec", "runPolicy", "suspend")
		if got, _, err := unstructured.NestedBool(u.Object, "spec", "runPolicy", "suspend"); !got || err != nil {
			t.Errorf("over %v: %v, %v", spec, got, err)
		}
	}
}

// What is not a whole number of Mi or of pages would be printed in bytes, and refused by the API server.
func TestScaleToWholeUnits(t *testing.T) {
	r := corev1.ResourceRequirements{Requests: clustertest.List("memory", "16Gi", "hugepages-2Mi", "1Gi", "ephemeral-storage", "100G")}
	whatif.Scale(&r, 1, 3)
	for name, want := range map[corev1.ResourceName]string{"memory": "5461Mi", "hugepages-2Mi": "340Mi", "ephemeral-storage": "31789Mi"} {
		if q := r.Requests[name]; q.String() != want {
			t.Errorf("%s: got %s, want %s", name, q.String(), want)
		}
	}
}

func TestScale(t *testing.T) {
	r := corev1.ResourceRequirements{
		Requests: clustertest.List("cpu", "7", "memory", "10Gi"),
		Limits:   clustertest.List("cpu", "14", "memory", "10Gi", "nvidia.com/gpu", "8"),
	}
	whatif.Scale(&r, 3, 8)
	want := corev1.ResourceRequirements{
		Requests: clustertest.List("cpu", "2625m", "memory", "3840Mi", "nvidia.com/gpu", "3"),
		Limits:   clustertest.List("cpu", "5250m", "memory", "3840Mi", "nvidia.com/gpu", "3"),
	}
	if !equality.Semantic.DeepEqual(r, want) {
		t.Errorf("got %v, want %v", r, want)
	}
}

package e2e

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestCompositeGroups has the API server serve composite PodGroups, of which the scheduler finds out by itself: a tree starts as a whole or not at all, and a
// part that is not needed starts later.
func TestCompositeGroups(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "--nodes=1", "--cpu=4", "--gpus=0", "--run-for=0", "--native-gangs", "--composite-groups", "--operator=false")
	g := c.with(t, wires()[0])

	g.composite(t, "llama", 2)
	g.part("prefill", "llama", 3)
	g.part("decode", "llama", 2)
	all := append(g.names("prefill", 3), g.names("decode", 2)...)
	for _, name := range all {
		g.isRefused(t, name)
	}
	g.composite(t, "alone", 1)
	g.part("small", "alone", 1)
	g.placed(t, "small-0") // what is left, as llama holds nothing
	stdout, _, code := gangctlAt(t, c.Kubeconfig, "why-pending", "pod/prefill-0")
	if code != 6 || !strings.Contains(stdout, "the parts of CompositePodGroup llama that start together can never have any: prefill (3 members) and decode (2 members)") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	g.none(t, all...)
	if _, stderr, err := c.Run("node", "add", "joins", "--cpu", "2", "--gpus", "0"); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	g.placed(t, all...)

	// A tree of which a part is not there yet is not tried, however much room there is.
	g.composite(t, "early", 2)
	g.part("alone", "early", 1)
	eventually(t, "the missing part is named", func(context.Context) bool {
		stdout, _, code := gangctlAt(t, c.Kubeconfig, "why-pending", "pod/alone-0")
		return code == 3 && strings.Contains(stdout, "CompositePodGroup early needs 2 parts, and 1 of its 1 has enough pods that may be scheduled")
	})
	g.none(t, "alone-0")
	must(t, c.client.CoreV1().Pods(space).Delete(t.Context(), "alone-0", now()))

	// One of two parts is enough, and the other starts when there is room for it.
	g.composite(t, "either", 1)
	g.part("large", "either", 4)
	g.isRefused(t, "large-0")
	must(t, c.client.CoreV1().Pods(space).Delete(t.Context(), "small-0", now()))
	g.part("tiny", "either", 1)
	g.placed(t, "tiny-0")
	g.none(t, g.names("large", 4)...)
	if _, stderr, err := c.Run("node", "add", "later", "--cpu", "4", "--gpus", "0"); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	g.placed(t, g.names("large", 4)...)
}

func compositeResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1alpha3", Resource: "compositepodgroups"}
}

// workload is the object that trees refer to.
func workload() map[string]any { return map[string]any{"workloadName": "w", "templateName": "t"} }

// composite creates a composite PodGroup of which so many parts are needed.
func (g team) composite(t *testing.T, name string, min int) {
	t.Helper()
	spec := map[string]any{"workloadRef": workload(), "schedulingPolicy": map[string]any{"gang": map[string]any{"minGroupCount": int64(min)}}}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(compositeResource().GroupVersion().WithKind("CompositePodGroup"))
	u.SetName(name)
	_, err := g.dynamic.Resource(compositeResource()).Namespace(space).Create(t.Context(), u, metav1.CreateOptions{})
	must(t, err)
}

// part creates a PodGroup of a tree, whose members are all needed, and its pods.
func (g team) part(name, parent string, members int) {
	g.t.Helper()
	g.declareGroup(name, members, func(u *unstructured.Unstructured) {
		spec := u.Object["spec"].(map[string]any)
		spec["parentCompositePodGroupName"], spec["workloadRef"] = parent, workload()
	})
	g.members(name, members, members)
}

// isRefused waits until a pod was refused.
func (g team) isRefused(t *testing.T, name string) {
	t.Helper()
	eventually(t, name+" is refused", func(ctx context.Context) bool {
		pod, err := g.client.CoreV1().Pods(space).Get(ctx, name, metav1.GetOptions{})
		return err == nil && refusedToSchedule(pod)
	})
}

// none fails the test if one of the pods has a node.
func (g team) none(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		pod, err := g.client.CoreV1().Pods(space).Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		if pod.Spec.NodeName != "" {
			t.Errorf("%s is on %s", name, pod.Spec.NodeName)
		}
	}
}

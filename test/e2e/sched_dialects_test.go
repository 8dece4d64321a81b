package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gangctl/gangctl/internal/sandboxtest"
)

// wire is a dialect as its users write it.
type wire struct {
	name, scheduler string
	resource        schema.GroupVersionResource // of the group object; empty without one
	setGroup        func(pod *corev1.Pod, name string, min int)
	spec            func(min int) map[string]any
	phase           string // of a gang that runs
	waits           string // TYPE=STATUS/REASON of the condition of a gang that has no room
}

func wires() []wire {
	const volcanoKey = "scheduling.k8s.io/group-name"
	minMember := func(min int) map[string]any { return map[string]any{"minMember": int64(min)} }
	label := func(key string) func(*corev1.Pod, string, int) {
		return func(pod *corev1.Pod, name string, _ int) { metav1.SetMetaDataLabel(&pod.ObjectMeta, key, name) }
	}
	note := func(key string) func(*corev1.Pod, string, int) {
		return func(pod *corev1.Pod, name string, _ int) {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, name)
		}
	}
	return []wire{
		{"native", "gang-scheduler", podGroups("scheduling.k8s.io", "v1beta1"), inField, func(min int) map[string]any {
			return map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(min)}}}
		}, "", "PodGroupInitiallyScheduled=False/Unschedulable"},
		{"scheduler-plugins", "scheduler-plugins-scheduler", podGroups("scheduling.x-k8s.io", "v1alpha1"), label("scheduling.x-k8s.io/pod-group"), minMember, "Running", ""},
		{"koordinator", "koord-scheduler", podGroups("scheduling.sigs.k8s.io", "v1alpha1"), label("pod-group.scheduling.sigs.k8s.io"), minMember, "Running", ""},
		{"volcano", "volcano", podGroups("scheduling.volcano.sh", "v1beta1"), note(volcanoKey), minMember, "Running", "Unschedulable=True/NotEnoughResources"},
		{"kube-batch", "kube-batch", podGroups("scheduling.incubator.k8s.io", "v1alpha1"), note(volcanoKey), minMember, "Running", "Unschedulable=True/NotEnoughResources"},
		{"kube-batch-later", "kube-batch", podGroups("scheduling.sigs.dev", "v1alpha2"), note(volcanoKey), minMember, "Running", "Unschedulable=True/NotEnoughResources"},
		{"pdb", "kube-batch", policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), ownedByJob, nil, "", ""},
		{"labels", "gang-scheduler", schema.GroupVersionResource{}, func(pod *corev1.Pod, name string, min int) {
			label("pod-group.scheduling.sigs.k8s.io/name")(pod, name, 0)
			label("pod-group.scheduling.sigs.k8s.io/min-available")(pod, fmt.Sprint(min), 0)
		}, nil, "", ""},
		{"kai", "kai-scheduler", podGroups("scheduling.run.ai", "v2alpha2"), note("pod-group-name"), minMember, "", ""},
	}
}

// some are all dialects where tests may be long, and otherwise these.
func some(names ...string) []wire {
	return slices.DeleteFunc(wires(), func(w wire) bool { return !long() && !slices.Contains(names, w.name) })
}

func podGroups(group, version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: "podgroups"}
}

func inField(pod *corev1.Pod, name string, _ int) {
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
}

// ownedByJob stands for a job that is not there: the sandbox serves none of the
// time, and what matters is that pods and budget have the same one.
func ownedByJob(pod *corev1.Pod, name string, _ int) {
	yes := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Job", Name: name, UID: types.UID("job-of-" + name), Controller: &yes}}
}

// TestDialects runs manifests that were written for other schedulers, on their
// names, under exactly the rights that are shipped.
func TestDialects(t *testing.T) {
	t.Parallel()
	// A cluster of its own: definitions of gangs go and return, and the operator makes gangs for Volcano.
	c := newCluster(t, "--nodes=2", "--cpu=4", "--gpus=0", "--run-for=0", "--native-gangs", "--operator-gang-scheduler=volcano", served)
	for _, w := range wires() {
		t.Run(w.name, func(t *testing.T) { c.with(t, w).secondGangWaitsWhole() })
	}
	t.Run("Kubernetes lets go what is deleted", func(t *testing.T) {
		native := wires()[0]
		eventually(t, "the PodGroup is gone", func(ctx context.Context) bool {
			_, err := c.dynamic.Resource(native.resource).Namespace(space).Get(ctx, native.name+"-first", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	})
	t.Run("volcano with the operator", c.operatorWaitsForInqueue)
	t.Run("volcano to the end", c.volcanoToTheEnd)
	for _, w := range some("kube-batch") {
		if w.defines() {
			t.Run("T16 a definition goes and returns, "+w.name, func(t *testing.T) { c.with(t, w).definitionGoesAndReturns() })
		}
	}
	for _, w := range wires() {
		t.Run("T08 completed members, "+w.name, func(t *testing.T) { c.with(t, w).completedMembers() })
	}
	t.Run("nothing was forbidden", func(t *testing.T) {
		log, err := os.ReadFile(filepath.Join(c.DataDir, "log", "gang-scheduler.log"))
		must(t, err)
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, "forbidden") || strings.Contains(line, "Unauthorized") {
				t.Errorf("refused: %s", line)
			}
		}
	})
}

// team is a dialect on the cluster.
type team struct {
	*cluster
	wire
	t *testing.T
}

func (c *cluster) with(t *testing.T, w wire) team {
	return team{cluster: c, wire: w, t: t}
}

// secondGangWaitsWhole: two gangs of five on eight places. The second one holds
// nothing until the first is gone, and then it runs.
func (g team) secondGangWaitsWhole() {
	g.defined()
	first, second := g.name+"-first", g.name+"-second"
	g.declare(first, 5)
	g.members(first, 5, 5)
	g.placed(g.t, g.names(first, 5)...)
	g.declare(second, 5)
	g.members(second, 5, 5)
	g.waitMessage(g.t, second+"-0", "")
	if n := g.bound(g.t, g.names(second, 5)...); n != 0 {
		g.t.Fatalf("%d members of the second gang have places", n)
	}
	if g.phase != "" {
		eventually(g.t, first+" is "+g.phase, func(context.Context) bool { return g.status(first, "") == g.phase })
	}
	if g.waits != "" {
		kind, _, _ := strings.Cut(g.waits, "=")
		eventually(g.t, second+" has "+g.waits, func(context.Context) bool { return g.status(second, kind) == g.waits })
	}
	if g.name == "kai" && g.status(first, "") != "" {
		g.t.Errorf("wrote %q to KAI's object", g.status(first, ""))
	}
	g.remove(first, 5)
	g.placed(g.t, g.names(second, 5)...)
	g.remove(second, 5)
}

// operatorWaitsForInqueue: the real operator, set up for Volcano, creates no pod
// before a controller has admitted the group.
func (c *cluster) operatorWaitsForInqueue(t *testing.T) {
	g := c.with(t, wires()[3])
	tfjobs := schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}
	job := func(name string, workers int64) {
		replica := func(n int64) map[string]any {
			return map[string]any{"replicas": n, "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
				"name": "tensorflow", "image": "x", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}},
			}}}}}
		}
		_, err := c.dynamic.Resource(tfjobs).Namespace(space).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"tfReplicaSpecs": map[string]any{"PS": replica(1), "Worker": replica(workers)}},
		}}, metav1.CreateOptions{})
		must(t, err)
	}
	names := func(name string, workers int) []string {
		pods := []string{name + "-ps-0"}
		for i := range workers {
			pods = append(pods, fmt.Sprintf("%s-worker-%d", name, i))
		}
		return pods
	}
	job("resnet", 4)
	c.placed(t, names("resnet", 4)...)
	eventually(t, "resnet is Running", func(context.Context) bool { return g.status("resnet", "") == "Running" })
	job("bert", 5)
	for _, name := range names("bert", 5) {
		c.waitMessage(t, name, "")
	}
	if n := c.bound(t, names("bert", 5)...); n != 0 {
		t.Errorf("%d of bert's pods have places", n)
	}
	if got := g.status("bert", ""); got != "Inqueue" {
		t.Errorf("bert's group is %s, want Inqueue", got)
	}
	must(t, c.dynamic.Resource(tfjobs).Namespace(space).Delete(t.Context(), "resnet", metav1.DeleteOptions{}))
	c.placed(t, names("bert", 5)...)
	must(t, c.dynamic.Resource(tfjobs).Namespace(space).Delete(t.Context(), "bert", metav1.DeleteOptions{}))
	c.empty(t)
}

// volcanoToTheEnd: phases up to Completed, and no write once nothing changes.
func (c *cluster) volcanoToTheEnd(t *testing.T) {
	g := c.with(t, wires()[3])
	g.declare("end", 3)
	g.members("end", 3, 3, func(pod *corev1.Pod) {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "sandbox.gangctl.dev/run-for", "1s")
	})
	eventually(t, "end is Completed", func(context.Context) bool { return g.status("end", "") == "Completed" })
	version := g.object("end").GetResourceVersion()
	sandboxtest.Consistently(t, 3*time.Second, func() error {
		if now := g.object("end").GetResourceVersion(); now != version {
			return fmt.Errorf("the group was written again: %v", g.object("end").Object["status"])
		}
		return nil
	})
	g.remove("end", 3)
}

// definitionGoesAndReturns: a gang that runs is untouched, one that waits reports
// so and is scheduled when its object is back.
func (g team) definitionGoesAndReturns() {
	c, t := g.cluster, g.t
	one, two, a, b := g.name+"-filler", g.name+"-filler-2", g.name+"-runs", g.name+"-waits"
	c.create(t, plain(one, "gang-scheduler", "3"), plain(two, "gang-scheduler", "3")) // one on each node
	c.placed(t, one, two)
	g.declare(a, 2)
	g.members(a, 2, 2)
	g.placed(t, g.names(a, 2)...)
	g.declare(b, 2)
	g.members(b, 2, 2)
	c.waitMessage(t, b+"-0", "")

	usual, logged := c.pace(t, "gang-scheduler"), len(c.log(t))
	c.undefine(t, g.resource)
	c.waitMessage(t, b+"-0", "PodGroup default/"+b+" not found")
	must(t, c.client.CoreV1().Pods(space).Delete(t.Context(), one, now()))
	sandboxtest.Consistently(t, 10*time.Second, func() error {
		if n, m := c.bound(t, g.names(a, 2)...), c.bound(t, g.names(b, 2)...); n != 2 || m != 0 {
			return fmt.Errorf("%d members of the gang that runs and %d of the other have places, want 2 and 0", n, m)
		}
		return nil
	})
	if lines := len(c.log(t)) - logged; lines > 100 {
		t.Errorf("%d lines in the log for a definition that is gone", lines)
	}
	c.define(t, g.resource)
	g.declare(a, 2)
	g.declare(b, 2)
	start := time.Now()
	g.placed(t, g.names(b, 2)...)
	if took := time.Since(start); took > 3*time.Second+8*usual {
		t.Errorf("placed %s after its object was back, where a pod takes %s", took, usual)
	}
	g.sweep(t)
	g.drop(a, b)
}

// completedMembers: one has completed, another died and is replaced. The gang
// does not need the first any more.
func (g team) completedMembers() {
	name := g.name + "-done"
	g.declare(name, 3)
	g.members(name, 3, 3)
	g.placed(g.t, g.names(name, 3)...)
	pods := g.client.CoreV1().Pods(space)
	is := func(phase corev1.PodPhase) func(context.Context) bool {
		return func(ctx context.Context) bool {
			pod, err := pods.Get(ctx, name+"-0", metav1.GetOptions{})
			return err == nil && pod.Status.Phase == phase
		}
	}
	eventually(g.t, name+"-0 runs", is(corev1.PodRunning)) // a kubelet that starts it might miss the annotation
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"sandbox.gangctl.dev/ends-at":%q}}}`, time.Now().UTC().Format(time.RFC3339))
	_, err := pods.Patch(g.t.Context(), name+"-0", types.MergePatchType, patch, metav1.PatchOptions{})
	must(g.t, err)
	eventually(g.t, name+"-0 has succeeded", is(corev1.PodSucceeded))
	must(g.t, pods.Delete(g.t.Context(), name+"-1", now()))
	replacement := plain(name+"-1", g.scheduler, "1")
	g.setGroup(replacement, name, 3)
	eventually(g.t, name+"-1 is created again", func(ctx context.Context) bool {
		_, err := pods.Create(ctx, replacement, metav1.CreateOptions{})
		return err == nil
	})
	g.placed(g.t, name+"-1")
	g.sweep(g.t)
	g.drop(name)
}

// defines reports whether a dialect's objects are of a CustomResourceDefinition.
func (w wire) defines() bool {
	return w.resource.Group != "" && w.resource.Group != "policy" && w.resource.Group != "scheduling.k8s.io"
}

func (g team) declare(name string, min int) {
	g.t.Helper()
	if g.resource.Group == "policy" {
		number := intstr.FromInt(min)
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &number, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"job": name}},
		}}
		owned := &corev1.Pod{}
		ownedByJob(owned, name, 0)
		budget.OwnerReferences = owned.OwnerReferences
		_, err := g.client.PolicyV1().PodDisruptionBudgets(space).Create(g.t.Context(), budget, metav1.CreateOptions{})
		must(g.t, err)
	} else if g.resource.Group != "" {
		g.declareGroup(name, min, func(*unstructured.Unstructured) {})
	}
}

// declareGroup creates a PodGroup that differs from others of its dialect.
func (g team) declareGroup(name string, min int, change func(*unstructured.Unstructured)) {
	g.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": g.spec(min)}}
	u.SetGroupVersionKind(g.resource.GroupVersion().WithKind("PodGroup"))
	u.SetName(name)
	change(u)
	eventually(g.t, name+" is declared", func(ctx context.Context) bool { // a new definition takes a moment
		_, err := g.dynamic.Resource(g.resource).Namespace(space).Create(ctx, u, metav1.CreateOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			g.t.Log(err)
		}
		return err == nil
	})
}

func (g team) members(name string, min, count int, change ...func(*corev1.Pod)) {
	g.t.Helper()
	for _, member := range g.names(name, count) {
		pod := plain(member, g.scheduler, "1")
		g.setGroup(pod, name, min)
		for _, c := range change {
			c(pod)
		}
		g.create(g.t, pod)
	}
}

func (g team) names(name string, count int) (names []string) {
	for i := range count {
		names = append(names, fmt.Sprintf("%s-%d", name, i))
	}
	return names
}

// remove deletes a gang and waits until its pods are gone.
func (g team) remove(name string, count int) {
	g.t.Helper()
	ctx := g.t.Context()
	if g.resource.Group != "" {
		must(g.t, g.dynamic.Resource(g.resource).Namespace(space).Delete(ctx, name, metav1.DeleteOptions{}))
	}
	for _, pod := range g.names(name, count) {
		must(g.t, g.client.CoreV1().Pods(space).Delete(ctx, pod, now()))
	}
}

func (g team) object(name string) *unstructured.Unstructured {
	g.t.Helper()
	u, err := g.dynamic.Resource(g.resource).Namespace(space).Get(g.t.Context(), name, metav1.GetOptions{})
	must(g.t, err)
	return u
}

// status is the phase of a group, or one of its conditions as TYPE=STATUS/REASON.
func (g team) status(name, condition string) string {
	g.t.Helper()
	u := g.object(name)
	if condition == "" {
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		return phase
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == condition {
			return fmt.Sprintf("%s=%s/%s", c["type"], c["status"], c["reason"])
		}
	}
	return ""
}

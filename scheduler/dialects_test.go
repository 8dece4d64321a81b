package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/gang"
)

var (
	podResource = corev1.SchemeGroupVersion.WithResource("pods")
	crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

// conforming is one way to declare a gang, as the suite needs to know it.
type conforming struct {
	name, scheduler string
	dialect         gang.Dialect
	// resource is that of the group object; empty without one.
	resource schema.GroupVersionResource
	// mark puts a pod into a gang. Only dialects without objects use the minimum.
	mark func(pod *corev1.Pod, name string, min int)
	// spec is that of the group object.
	spec func(min int) map[string]any
	// phase is that of a gang that runs, or the condition for that where the
	// dialect has no phases; empty where we write none.
	phase string
}

func podGroups(group, version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: "podgroups"}
}

func minMember(min int) map[string]any { return map[string]any{"minMember": int64(min)} }

func minCount(min int) map[string]any {
	return map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(min)}}}
}

func byLabel(key string) func(*corev1.Pod, string, int) {
	return func(pod *corev1.Pod, name string, _ int) { metav1.SetMetaDataLabel(&pod.ObjectMeta, key, name) }
}

func byAnnotation(key string) func(*corev1.Pod, string, int) {
	return func(pod *corev1.Pod, name string, _ int) {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, name)
	}
}

func byField(pod *corev1.Pod, name string, _ int) {
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
}

func byOwner(pod *corev1.Pod, name string, _ int) {
	yes := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kubeflow.org/v1alpha2", Kind: "TFJob", Name: name, UID: types.UID("job " + name), Controller: &yes}}
}

func byLabels(group string) func(*corev1.Pod, string, int) {
	return func(pod *corev1.Pod, name string, min int) {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, "pod-group.scheduling."+group+"/name", name)
		metav1.SetMetaDataLabel(&pod.ObjectMeta, "pod-group.scheduling."+group+"/min-available", fmt.Sprint(min))
	}
}

func byKoordinator(pod *corev1.Pod, name string, min int) {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "gang.scheduling.koordinator.sh/name", name)
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "gang.scheduling.koordinator.sh/min-available", fmt.Sprint(min))
}

// dialects are all ways to declare a gang that the scheduler reads.
func dialects() []conforming {
	group := "scheduling.k8s.io/group-name"
	return []conforming{
		{"native v1beta1", DefaultName, gang.Native, podGroups("scheduling.k8s.io", "v1beta1"), byField, minCount, "PodGroupInitiallyScheduled"},
		{"native v1alpha3", DefaultName, gang.Native, podGroups("scheduling.k8s.io", "v1alpha3"), byField, minCount, "PodGroupInitiallyScheduled"},
		{"native v1alpha2", DefaultName, gang.Native, podGroups("scheduling.k8s.io", "v1alpha2"), byField, minCount, "PodGroupScheduled"},
		{"scheduler-plugins", "scheduler-plugins-scheduler", gang.SchedulerPlugins, podGroups("scheduling.x-k8s.io", "v1alpha1"), byLabel("scheduling.x-k8s.io/pod-group"), minMember, "Running"},
		{"scheduler-plugins of old", DefaultName, gang.SchedulerPlugins, podGroups("scheduling.sigs.k8s.io", "v1alpha1"), byLabel("pod-group.scheduling.sigs.k8s.io"), minMember, "Running"},
		{"Koordinator", "koord-scheduler", gang.Koordinator, podGroups("scheduling.sigs.k8s.io", "v1alpha1"), byLabel("pod-group.scheduling.sigs.k8s.io"), minMember, "Running"},
		{"Koordinator's annotations", "koord-scheduler", gang.Koordinator, schema.GroupVersionResource{}, byKoordinator, nil, ""},
		{"Volcano", "volcano", gang.Volcano, podGroups("scheduling.volcano.sh", "v1beta1"), byAnnotation(group), minMember, "Running"},
		{"kube-batch", "kube-batch", gang.KubeBatch, podGroups("scheduling.incubator.k8s.io", "v1alpha1"), byAnnotation(group), minMember, "Running"},
		{"kube-batch, later group", "kube-batch", gang.KubeBatch, podGroups("scheduling.sigs.dev", "v1alpha2"), byAnnotation(group), minMember, "Running"},
		{"budget", "kube-batch", gang.PDB, policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), byOwner, minMember, ""},
		{"labels", DefaultName, gang.Labels, schema.GroupVersionResource{}, byLabels("sigs.k8s.io"), nil, ""},
		{"labels, other spelling", DefaultName, gang.Labels, schema.GroupVersionResource{}, byLabels("x-k8s.io"), nil, ""},
		{"KAI", "kai-scheduler", gang.KAI, podGroups("scheduling.run.ai", "v2alpha2"), byAnnotation("pod-group-name"), minMember, ""},
	}
}

// team is a gang of a dialect on a rig.
type team struct {
	*rig
	conforming
}

// declare creates a group object.
func (g team) declare(name string, min int) {
	g.t.Helper()
	switch {
	case g.dialect == gang.PDB:
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("budget " + name)}}
		owned := &corev1.Pod{}
		byOwner(owned, name, 0)
		budget.OwnerReferences = owned.OwnerReferences
		number := intstr.FromInt(min)
		budget.Spec.MinAvailable = &number
		_, err := g.server.PolicyV1().PodDisruptionBudgets(namespace).Create(g.t.Context(), budget, metav1.CreateOptions{})
		g.must(err)
	case g.resource.Group != "":
		u := &unstructured.Unstructured{Object: map[string]any{"spec": g.spec(min)}}
		u.SetGroupVersionKind(g.resource.GroupVersion().WithKind("PodGroup"))
		u.SetNamespace(namespace)
		u.SetName(name)
		u.SetUID(types.UID("group " + name))
		_, err := g.groups.Resource(g.resource).Namespace(namespace).Create(g.t.Context(), u, metav1.CreateOptions{})
		g.must(err)
	}
}

// setMin changes the minimum of a gang.
func (g team) setMin(name string, min int, pods ...string) {
	g.t.Helper()
	switch {
	case g.dialect == gang.PDB:
		budget, err := g.server.PolicyV1().PodDisruptionBudgets(namespace).Get(g.t.Context(), name, metav1.GetOptions{})
		g.must(err)
		number := intstr.FromInt(min)
		budget.Spec.MinAvailable = &number
		_, err = g.server.PolicyV1().PodDisruptionBudgets(namespace).Update(g.t.Context(), budget, metav1.UpdateOptions{})
		g.must(err)
	case g.resource.Group != "":
		objects := g.groups.Resource(g.resource).Namespace(namespace)
		u, err := objects.Get(g.t.Context(), name, metav1.GetOptions{})
		g.must(err)
		u.Object["spec"] = g.spec(min)
		_, err = objects.Update(g.t.Context(), u, metav1.UpdateOptions{})
		g.must(err)
	default:
		for _, pod := range pods {
			g.change(pod, func(p *corev1.Pod) { g.mark(p, name, min) })
		}
	}
}

func (g team) undeclare(name string) {
	g.t.Helper()
	switch {
	case g.dialect == gang.PDB:
		g.must(g.server.PolicyV1().PodDisruptionBudgets(namespace).Delete(g.t.Context(), name, metav1.DeleteOptions{}))
	case g.resource.Group != "":
		g.must(g.groups.Resource(g.resource).Namespace(namespace).Delete(g.t.Context(), name, metav1.DeleteOptions{}))
	}
}

// members creates pods of a gang, and returns their names.
func (g team) members(name string, min, from, to int) (names []string) {
	g.t.Helper()
	for i := from; i < to; i++ {
		pod := g.pod(fmt.Sprintf("%s-%d", name, i), g.scheduler)
		g.mark(pod, name, min)
		g.create(pod)
		names = append(names, pod.Name)
	}
	return names
}

// TestConformance holds every dialect to the same.
func TestConformance(t *testing.T) {
	gangCycle(t)
	for _, d := range dialects() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			var serving []string
			if d.scheduler != DefaultName {
				serving = []string{d.scheduler}
			}
			g := team{newRig(t, serving...), d}
			switch {
			case d.dialect == gang.Native:
				g.serveBuiltIn(d.resource)
			case d.dialect != gang.PDB && d.resource.Group != "":
				g.crd(d.resource, true)
			}
			g.node("n1", 4)
			g.node("n2", 4)
			g.start()
			g.conform()
		})
	}
}

func (g team) conform() {
	// A whole gang gets its places.
	g.declare("a", 3)
	a := g.members("a", 3, 0, 3)
	g.waitPlaced(a...)

	// One that lacks members waits, reports that, and runs when its minimum is lowered.
	g.declare("b", 5)
	b := g.members("b", 5, 0, 3)
	g.waitMessage("b-0", "3/5 pods exist")
	if n := g.placed(b...); n != 0 {
		g.t.Fatalf("%d of 3 members are placed of a gang that needs 5", n)
	}
	g.setMin("b", 3, b...)
	g.waitPlaced(b...)

	// With two places left, one that needs three holds nothing, until it fits.
	g.declare("c", 3)
	c := g.members("c", 3, 0, 3)
	g.waitMessage("c-0", "")
	if n := g.placed(c...); n != 0 {
		g.t.Fatalf("%d of 3 members hold places of a gang that does not fit", n)
	}
	g.node("n3", 1)
	g.waitPlaced(c...)

	// A member completes, another one dies: the one that replaces it runs.
	if g.phase != "" {
		for _, name := range a {
			g.change(name, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
		}
		poll.Until(g.t, "the status has "+g.phase, func() bool { return g.written("a") == g.phase })
	}
	g.change("a-0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	g.delete("a-1")
	again := g.members("a", 3, 3, 4)
	g.waitPlaced(again...)
	if g.dialect == gang.KAI && g.written("a") != "" {
		g.t.Errorf("wrote %q to an object of KAI", g.written("a"))
	}

	// What is deleted leaves nothing behind.
	for _, name := range []string{"a", "b", "c"} {
		g.undeclare(name)
	}
	g.delete(append(append(append(again, "a-0", "a-2"), b...), c...)...)
	poll.Until(g.t, "no gang is left", func() bool { return !g.anyLeft("a", "b", "c") })
}

// written is the phase that was written to a group object, or the condition
// that is true.
func (g team) written(name string) string {
	u, err := g.groups.Resource(g.resource).Namespace(namespace).Get(g.t.Context(), name, metav1.GetOptions{})
	g.must(err)
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	if c := conditions; phase == "" && len(c) > 0 && c[0].(map[string]any)["status"] == "True" {
		phase, _ = c[0].(map[string]any)["type"].(string)
	}
	return phase
}

func (g team) anyLeft(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		key := gang.Key{Dialect: g.dialect, Namespace: namespace, Name: name}
		_, published := g.virtualGroups.Get(namespace, key.VirtualName())
		return published || len(g.cache.Pods(key)) > 0
	})
}

func hasMessage(pod *corev1.Pod, why string) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, why) {
			return true
		}
	}
	return false
}

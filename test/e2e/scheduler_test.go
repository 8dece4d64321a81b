package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/sandbox/demo"
)

// TestScheduler puts pods of its own before the scheduler, without an operator
// in between.
func TestScheduler(t *testing.T) {
	t.Parallel()
	stage := newStage(t, gangScheduler("scheduler-plugins"))
	must(t, stage.AddNodes(t.Context(), 2, 0))
	t.Run("a pod on its own", func(t *testing.T) {
		create(t, stage, pod("single", nil))
		bound(t, stage, "single")
	})
	t.Run("incomplete, by labels", func(t *testing.T) {
		setGroup := func(meta *metav1.ObjectMeta) { labels.SetGroup(meta, "l", 3) }
		create(t, stage, pod("l-0", setGroup), pod("l-1", setGroup))
		explained(t, stage, "l-0", "2/3 pods exist")
		create(t, stage, pod("l-2", setGroup))
		bound(t, stage, "l-0", "l-1", "l-2")
	})
	t.Run("no object, then one", func(t *testing.T) {
		setGroup := func(meta *metav1.ObjectMeta) { schedulerplugins.SetGroup(meta, "o") }
		create(t, stage, pod("o-0", setGroup), pod("o-1", setGroup))
		explained(t, stage, "o-0", "PodGroup default/o not found")
		createGroup(t, stage, "o", 2)
		bound(t, stage, "o-0", "o-1")
	})
	t.Run("the minimum is lowered", func(t *testing.T) {
		setGroup := func(meta *metav1.ObjectMeta) { schedulerplugins.SetGroup(meta, "m") }
		createGroup(t, stage, "m", 5)
		for i := range 3 {
			create(t, stage, pod(fmt.Sprintf("m-%d", i), setGroup))
		}
		explained(t, stage, "m-0", "3/5 pods exist")
		client, err := dynamic.NewForConfig(stage.Config())
		must(t, err)
		_, err = client.Resource(schedulerplugins.GVR()).Namespace(demo.Namespace).
			Patch(t.Context(), "m", "application/merge-patch+json", []byte(`{"spec":{"minMember":2}}`), metav1.PatchOptions{})
		must(t, err)
		bound(t, stage, "m-0", "m-1")
	})
	t.Run("a waiting pod changes its gang", func(t *testing.T) {
		setGroup := func(meta *metav1.ObjectMeta) { labels.SetGroup(meta, "before", 3) }
		create(t, stage, pod("r-0", setGroup), pod("r-1", setGroup))
		explained(t, stage, "r-0", "2/3 pods exist")
		for _, name := range []string{"r-0", "r-1"} {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"after",%q:"2"}}}`, labels.NameLabel, labels.MinAvailableLabel)
			_, err := stage.Client().CoreV1().Pods(demo.Namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
			must(t, err)
		}
		bound(t, stage, "r-0", "r-1")
	})
	t.Run("the API of PodGroups goes and returns", func(t *testing.T) { apiGoesAndReturns(t, stage) })
	t.Run("members on dead nodes do not count", func(t *testing.T) { deadMembersDoNotCount(t, stage) })
	t.Run("nothing was forbidden", func(t *testing.T) { nothingForbidden(t, stage) })
}

func apiGoesAndReturns(t *testing.T, stage *demo.Stage) {
	ctx := t.Context()
	client, err := dynamic.NewForConfig(stage.Config())
	must(t, err)
	setGroup := func(meta *metav1.ObjectMeta) { schedulerplugins.SetGroup(meta, "crd") }
	createGroup(t, stage, "crd", 3)
	create(t, stage, pod("crd-0", setGroup), pod("crd-1", setGroup))
	explained(t, stage, "crd-0", "2/3 pods exist")

	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	must(t, crds.Delete(ctx, schedulerplugins.CRDName, metav1.DeleteOptions{}))
	explained(t, stage, "crd-0", "PodGroup default/crd not found")

	crd := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(install.PodGroupCRD(), crd))
	eventually(t, "the API is served again", func(ctx context.Context) bool {
		_, err := crds.Create(ctx, crd, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	group := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "crd"}, "spec": map[string]any{"minMember": int64(2)},
	}}
	group.SetGroupVersionKind(schedulerplugins.GVK())
	eventually(t, "the group exists again", func(ctx context.Context) bool {
		_, err := client.Resource(schedulerplugins.GVR()).Namespace(demo.Namespace).Create(ctx, group, metav1.CreateOptions{})
		return err == nil
	})
	bound(t, stage, "crd-0", "crd-1")
}

// deadMembersDoNotCount: members whose nodes are dead are being deleted for as
// long as their nodes are. Two of four cannot run alongside two that terminate.
func deadMembersDoNotCount(t *testing.T, stage *demo.Stage) {
	ctx := t.Context()
	pods := stage.Client().CoreV1().Pods(demo.Namespace)
	setGroup := func(meta *metav1.ObjectMeta) { labels.SetGroup(meta, "dead", 2) }
	large := func(name string) *corev1.Pod {
		p := pod(name, setGroup)
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2500m")
		return p
	}
	create(t, stage, large("dead-0"), large("dead-1"))
	bound(t, stage, "dead-0", "dead-1")
	must(t, stage.RunSandbox(ctx, "node", "fail", "node-1", "node-2"))
	for _, name := range []string{"dead-0", "dead-1"} {
		must(t, pods.Delete(ctx, name, metav1.DeleteOptions{}))
	}
	must(t, stage.AddNodes(ctx, 1, 0)) // room for one of two
	create(t, stage, large("next-0"), large("next-1"))
	for _, name := range []string{"next-0", "next-1"} {
		explained(t, stage, name, "")
	}
	must(t, stage.AddNodes(ctx, 1, 0))
	bound(t, stage, "next-0", "next-1")
}

// nothingForbidden holds the scheduler to the rights in its manifest, under
// which the sandbox runs it: a request that they do not cover shows in its log.
func nothingForbidden(t *testing.T, stage *demo.Stage) {
	log, err := os.ReadFile(filepath.Join(stage.DataDir, "log", "gang-scheduler.log"))
	must(t, err)
	if len(log) == 0 {
		t.Fatal("the scheduler's log is empty")
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "forbidden") || strings.Contains(line, "Unauthorized") {
			t.Errorf("refused: %s", line)
		}
	}
}

func pod(name string, setGroup func(*metav1.ObjectMeta)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: "gang-scheduler",
			Containers: []corev1.Container{{
				Name: "main", Image: "x", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
			}},
		},
	}
	if setGroup != nil {
		setGroup(&p.ObjectMeta)
	}
	return p
}

func create(t *testing.T, stage *demo.Stage, pods ...*corev1.Pod) {
	t.Helper()
	for _, p := range pods {
		_, err := stage.Client().CoreV1().Pods(demo.Namespace).Create(t.Context(), p, metav1.CreateOptions{})
		must(t, err)
	}
}

func createGroup(t *testing.T, stage *demo.Stage, name string, minMember int64) {
	t.Helper()
	client, err := dynamic.NewForConfig(stage.Config())
	must(t, err)
	group := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"minMember": minMember},
	}}
	group.SetGroupVersionKind(schedulerplugins.GVK())
	_, err = client.Resource(schedulerplugins.GVR()).Namespace(demo.Namespace).Create(t.Context(), group, metav1.CreateOptions{})
	must(t, err)
}

func bound(t *testing.T, stage *demo.Stage, names ...string) {
	t.Helper()
	for _, name := range names {
		eventually(t, name+" gets a node", func(ctx context.Context) bool {
			p, err := stage.Client().CoreV1().Pods(demo.Namespace).Get(ctx, name, metav1.GetOptions{})
			return err == nil && p.Spec.NodeName != ""
		})
	}
}

func explained(t *testing.T, stage *demo.Stage, name, why string) {
	t.Helper()
	eventually(t, name+" says "+why, func(ctx context.Context) bool {
		p, err := stage.Client().CoreV1().Pods(demo.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || p.Spec.NodeName != "" {
			return false
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, why) {
				return true
			}
		}
		return false
	})
}

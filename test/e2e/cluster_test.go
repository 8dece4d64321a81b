package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/gangctl/gangctl/internal/sandboxtest"
)

// space is the namespace that has a service account from the start.
const space = "default"

// cluster is a sandbox and its clients.
type cluster struct {
	*sandboxtest.Cluster
	client  kubernetes.Interface
	dynamic dynamic.Interface
}

// twoNodes are the flags of `node add` for eight CPUs on two nodes.
func twoNodes() []string { return []string{"--count=2", "--cpu=4", "--gpus=0"} }

// newSharedCluster returns a sandbox without a scheduler of its own, in which pods run until they are deleted. It has the nodes
// of flags of `node add`, and is the test's until its end.
func newSharedCluster(t *testing.T, nodes []string, args ...string) *cluster {
	t.Helper()
	c := newClients(t, sandboxes.Take(t, append([]string{"--scheduler=none", "--run-for=0"}, args...)...))
	if nodes != nil {
		if _, stderr, err := c.Run("node", append([]string{"add"}, nodes...)...); err != nil {
			t.Fatalf("node add: %v\n%s", err, stderr)
		}
	}
	return c
}

// newCluster brings up a sandbox with flags of `up`, and takes it down with the test.
func newCluster(t *testing.T, args ...string) *cluster {
	t.Helper()
	return newClients(t, sandboxtest.Start(t, sandboxtest.Options{Args: args}))
}

func newClients(t *testing.T, sandbox *sandboxtest.Cluster) *cluster {
	t.Helper()
	c := &cluster{Cluster: sandbox}
	var err error
	c.client, err = kubernetes.NewForConfig(c.Config)
	must(t, err)
	c.dynamic, err = dynamic.NewForConfig(c.Config)
	must(t, err)
	return c
}

// plain is a pod that requests CPUs.
func plain(name, scheduler, cpus string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "main", Image: "x", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus)}},
			}},
		},
	}
}

// pace is how long a pod of no gang takes from its creation to its node, here and
// now: limits on a machine that is busy with others are in terms of it.
func (c *cluster) pace(t *testing.T, scheduler string) time.Duration {
	t.Helper()
	start := time.Now()
	c.create(t, plain("pace", scheduler, "0")) // there is room for it in a full cluster
	c.placed(t, "pace")
	took := time.Since(start)
	must(t, c.client.CoreV1().Pods(space).Delete(t.Context(), "pace", now()))
	eventually(t, "pace is gone", func(ctx context.Context) bool {
		_, err := c.client.CoreV1().Pods(space).Get(ctx, "pace", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	return took
}

// now deletes without grace.
func now() metav1.DeleteOptions {
	none := int64(0)
	return metav1.DeleteOptions{GracePeriodSeconds: &none}
}

func (c *cluster) create(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		_, err := c.client.CoreV1().Pods(space).Create(t.Context(), pod, metav1.CreateOptions{})
		must(t, err)
	}
}

// bound counts the pods, of those named, that have a node.
func (c *cluster) bound(t *testing.T, names ...string) (n int) {
	t.Helper()
	for _, name := range names {
		pod, err := c.client.CoreV1().Pods(space).Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		if pod.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// placed waits until all of the pods have a node.
func (c *cluster) placed(t *testing.T, names ...string) {
	t.Helper()
	sandboxtest.Eventually(t, stepTimeout, func() error {
		for _, name := range names {
			pod, err := c.client.CoreV1().Pods(space).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if pod.Spec.NodeName == "" {
				return fmt.Errorf("of %s pod %s has no node, and says %s", strings.Join(names, ", "), name, conditionOf(pod))
			}
		}
		return nil
	})
}

// waitMessage waits until a pod has no node and a scheduler's condition with this message.
func (c *cluster) waitMessage(t *testing.T, name, why string) {
	t.Helper()
	sandboxtest.Eventually(t, stepTimeout, func() error {
		pod, err := c.client.CoreV1().Pods(space).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range pod.Status.Conditions {
			refused := condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse
			if refused && pod.Spec.NodeName == "" && strings.Contains(condition.Message, why) {
				return nil
			}
		}
		return fmt.Errorf("pod %s has the node %q, and says %s; it should have none, and say %s", name, pod.Spec.NodeName, conditionOf(pod), why)
	})
}

// knowsNodes waits until a scheduler has handled what happened to nodes so far. Nodes and pods are two watches: a pod that is created at once
// may be bound to a node that is gone. A node gets a label after all that, which the scheduler needs for a pod.
func (c *cluster) knowsNodes(t *testing.T, scheduler string) {
	t.Helper()
	const label = "example.com/known"
	nodes, err := c.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(nodes.Items) == 0 {
		t.Fatal("there is no node")
	}
	value := string(uuid.NewUUID())
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, label, value)
	_, err = c.client.CoreV1().Nodes().Patch(t.Context(), nodes.Items[0].Name, types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
	probe := plain("knows-"+value, scheduler, "0") // there is room for it in a full cluster
	probe.Spec.NodeSelector = map[string]string{label: value}
	c.create(t, probe)
	c.placed(t, probe.Name)
	c.kill(t, probe.Name)
}

// conditionOf is the PodScheduled condition of a pod.
func conditionOf(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition.Reason + ": " + strings.TrimSpace(condition.Message)
		}
	}
	return "nothing"
}

// empty waits until there is no pod.
func (c *cluster) empty(t *testing.T) {
	t.Helper()
	eventually(t, "no pod is left", func(ctx context.Context) bool {
		pods, err := c.client.CoreV1().Pods(space).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0
	})
}

// log is what the gang scheduler logged, by line.
func (c *cluster) log(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.DataDir, "log", "gang-scheduler.log"))
	must(t, err)
	return strings.Split(string(text), "\n")
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// define serves PodGroups of an API group with a schema that takes anything;
// one that is served already is left as it is.
func (c *cluster) define(t *testing.T, resource schema.GroupVersionResource) {
	t.Helper()
	c.defineKind(t, resource, "PodGroup", "Namespaced")
}

// defineKind is define for objects of any kind.
func (c *cluster) defineKind(t *testing.T, resource schema.GroupVersionResource, kind, scope string) {
	t.Helper()
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name":        resource.GroupResource().String(),
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for a test"},
		},
		"spec": map[string]any{
			"group": resource.Group, "scope": scope,
			"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": resource.Resource, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{
				"name": resource.Version, "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": anything, "status": anything}}},
			}},
		},
	}}
	eventually(t, resource.String()+" is defined", func(ctx context.Context) bool {
		_, err := c.dynamic.Resource(definitions).Create(ctx, crd, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err) && !c.leaving(ctx, crd.GetName())
	})
}

// leaving reports whether a definition is being deleted.
func (c *cluster) leaving(ctx context.Context, name string) bool {
	u, err := c.dynamic.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
	return err != nil || u.GetDeletionTimestamp() != nil
}

func (c *cluster) undefine(t *testing.T, resource schema.GroupVersionResource) {
	t.Helper()
	must(t, c.dynamic.Resource(definitions).Delete(t.Context(), resource.GroupResource().String(), metav1.DeleteOptions{}))
}

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gangctl/gangctl/pkg/cli/failure"

	"github.com/gangctl/gangctl/sandbox/kubelet"
)

// Changer changes the nodes of a running sandbox.
type Changer struct {
	Client  kubernetes.Interface
	Machine Machine
	Now     func() time.Time
}

// Add creates count nodes, or the one of that name, and returns their names.
func (c Changer) Add(ctx context.Context, name string, count int, s Shape) ([]string, error) {
	names := []string{name}
	if name == "" {
		list, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		var taken []string
		for i := range list.Items {
			taken = append(taken, list.Items[i].Name)
		}
		names = nextNames(taken, count)
	}
	for i, name := range names {
		if _, err := c.Client.CoreV1().Nodes().Create(ctx, c.Machine.New(name, s, c.Now()), metav1.CreateOptions{}); err != nil {
			return names[:i], fmt.Errorf("create node %s: %w", name, err)
		}
	}
	return names, nil
}

// Remove deletes a node. Its pods follow when the pod garbage collector notices,
// as in any cluster.
func (c Changer) Remove(ctx context.Context, name string) error {
	if err := c.Client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return explain("remove", name, err)
	}
	return nil
}

// Cordon keeps new pods off a node, or lets them on again.
func (c Changer) Cordon(ctx context.Context, name string, on bool) error {
	verb := "cordon"
	if !on {
		verb = "uncordon"
	}
	return c.patch(ctx, verb, name, map[string]any{"spec": map[string]any{"unschedulable": on}})
}

// Fail kills a node's kubelet: heartbeats stop, pods on it freeze, and the node
// is not ready at once instead of after the usual grace period.
func (c Changer) Fail(ctx context.Context, name string) error {
	if err := c.patch(ctx, "fail", name, meta(map[string]any{kubelet.FailedLabel: "true"})); err != nil {
		return err
	}
	return c.patch(ctx, "fail", name, map[string]any{
		"status": map[string]any{"conditions": []corev1.NodeCondition{kubelet.FailedCondition(c.Now())}},
	}, "status")
}

// Recover starts a node's kubelet again, which makes the node ready.
func (c Changer) Recover(ctx context.Context, name string) error {
	return c.patch(ctx, "recover", name, meta(map[string]any{kubelet.FailedLabel: nil}))
}

func meta(labels map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": labels}}
}

func (c Changer) patch(ctx context.Context, verb, name string, change map[string]any, subresource ...string) error {
	data, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("%s node %s: %w", verb, name, err)
	}
	if _, err := c.Client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, subresource...); err != nil {
		return explain(verb, name, err)
	}
	return nil
}

// explain is the error for what could not be done to a node.
func explain(verb, name string, err error) error {
	if apierrors.IsNotFound(err) {
		return failure.Errorf("%s node %s: not found", verb, name).WithHint("see which nodes there are: kubectl get nodes")
	}
	return fmt.Errorf("%s node %s: %w", verb, name, err)
}

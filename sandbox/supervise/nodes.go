package supervise

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gangctl/gangctl/sandbox/component"
	"github.com/gangctl/gangctl/sandbox/kubelet"
	"github.com/gangctl/gangctl/sandbox/node"
	"github.com/gangctl/gangctl/sandbox/setting"
)

// bringUpNodes creates the nodes, starts their kubelets and waits until pods can
// be put on them.
func (s *supervisor) bringUpNodes(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := Desired(s.plan.settings, Machine(s.plan.ports), time.Now())
	if err != nil {
		return err
	}
	if err := node.Ensure(ctx, client, nodes); err != nil {
		return err
	}
	if err := s.start(s.plan.nodes()); err != nil {
		return err
	}
	if err := s.ready(ctx, component.Nodes, local("https", s.plan.ports[portKubelet], "/healthz")); err != nil {
		return err
	}
	return until(ctx, "nodes to be ready", func(ctx context.Context) error {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return fmt.Errorf("list nodes: %w", err)
		}
		if len(list.Items) < len(nodes) {
			return fmt.Errorf("%d of %d nodes are there", len(list.Items), len(nodes))
		}
		for i := range list.Items {
			if err := usable(&list.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// usable returns why a node takes no pods yet. One that was failed on purpose
// before a restart is none to wait for.
func usable(n *corev1.Node) error {
	if n.Labels[kubelet.FailedLabel] != "" {
		return nil
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return fmt.Errorf("node %s is not ready: %s", n.Name, c.Reason)
		}
	}
	for _, t := range n.Spec.Taints {
		if strings.HasPrefix(t.Key, "node.kubernetes.io/") && t.Key != corev1.TaintNodeUnschedulable {
			return fmt.Errorf("node %s still has the taint %s", n.Name, t.Key)
		}
	}
	return nil
}

func defaultAccount(client kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	}
}

// ready waits for a component to answer; its death ends the wait.
func (s *supervisor) ready(ctx context.Context, name, url string) error {
	return s.untilAlive(ctx, name, func(ctx context.Context) error { return s.prober.answers(ctx, url) })
}

// untilAlive waits for a condition of components; the death of one ends the wait.
func (s *supervisor) untilAlive(ctx context.Context, what string, condition func(context.Context) error) error {
	err := until(ctx, what, condition)
	if err != nil && errors.Is(context.Cause(ctx), errDied) {
		return context.Cause(ctx)
	}
	return err
}

// Desired returns the nodes of the settings.
func Desired(s setting.Settings, m node.Machine, now time.Time) ([]*corev1.Node, error) {
	if s.NodeFile != "" {
		return m.Read(s.NodeFile, now)
	}
	var out []*corev1.Node
	for i := range s.Nodes {
		out = append(out, m.New(fmt.Sprintf("node-%d", i+1), node.ShapeOf(s), now))
	}
	return out, nil
}

// Machine is the shape of the nodes of a sandbox with these ports.
func Machine(ports map[string]int) node.Machine {
	return node.Machine{KubeletPort: ports[portKubelet], KubernetesVersion: KubernetesVersion()}
}

// KubernetesVersion is the release of Kubernetes that is linked in.
func KubernetesVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "k8s.io/kubernetes" {
				return dep.Version
			}
		}
	}
	return "v0.0.0"
}

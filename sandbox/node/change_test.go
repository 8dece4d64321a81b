package node

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gangctl/gangctl/pkg/cli/failure"

	"github.com/gangctl/gangctl/sandbox/kubelet"
	"github.com/gangctl/gangctl/sandbox/setting"
)

func changer(nodes ...string) Changer {
	client := fake.NewClientset()
	c := Changer{Client: client, Machine: machine, Now: func() time.Time { return now }}
	for _, name := range nodes {
		_ = client.Tracker().Add(machine.New(name, ShapeOf(setting.Defaults()), now))
	}
	return c
}

func get(t *testing.T, c Changer, name string) *corev1.Node {
	t.Helper()
	n, err := c.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAdd(t *testing.T) {
	c := changer("node-1", "node-2")
	names, err := c.Add(t.Context(), "", 2, ShapeOf(setting.Defaults()))
	if err != nil || !slices.Equal(names, []string{"node-3", "node-4"}) {
		t.Errorf("got %v, %v", names, err)
	}
	get(t, c, "node-4")
	names, err = c.Add(t.Context(), "node-1", 1, ShapeOf(setting.Defaults()))
	if err == nil || len(names) != 0 || !strings.Contains(err.Error(), "create node node-1") {
		t.Errorf("a name that is taken: %v, %v", names, err)
	}
}

func TestChange(t *testing.T) {
	c := changer("a")
	ctx := t.Context()
	if err := c.Cordon(ctx, "a", true); err != nil || !get(t, c, "a").Spec.Unschedulable {
		t.Errorf("cordon: %v", err)
	}
	if err := c.Cordon(ctx, "a", false); err != nil || get(t, c, "a").Spec.Unschedulable {
		t.Errorf("uncordon: %v", err)
	}
	if err := c.Fail(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	failed := get(t, c, "a")
	ready := slices.IndexFunc(failed.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if failed.Labels[kubelet.FailedLabel] != "true" || failed.Status.Conditions[ready].Status != corev1.ConditionFalse || len(failed.Status.Conditions) < 2 {
		t.Errorf("fail: %v %+v", failed.Labels, failed.Status.Conditions)
	}
	if err := c.Recover(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if _, ok := get(t, c, "a").Labels[kubelet.FailedLabel]; ok {
		t.Error("recover leaves the label")
	}
	if err := c.Remove(ctx, "a"); err != nil {
		t.Error(err)
	}
	for verb, err := range map[string]error{
		"remove": c.Remove(ctx, "a"), "cordon": c.Cordon(ctx, "a", true), "uncordon": c.Cordon(ctx, "a", false),
		"fail": c.Fail(ctx, "a"), "recover": c.Recover(ctx, "a"),
	} {
		var f *failure.Error
		if !errors.As(err, &f) || f.Message != verb+" node a: not found" || !strings.Contains(f.Hint, "kubectl get nodes") {
			t.Errorf("%s of a node that is gone: %v", verb, err)
		}
	}
}

func TestEnsure(t *testing.T) {
	c := changer("node-1", "other")
	bigger := ShapeOf(setting.Defaults())
	bigger.GPUs = 8
	want := []*corev1.Node{machine.New("node-1", bigger, now), machine.New("node-2", bigger, now)}
	if err := Ensure(t.Context(), c.Client, want); err != nil {
		t.Fatal(err)
	}
	for name, gpus := range map[string]int64{"node-1": 8, "node-2": 8, "other": 1} {
		have := get(t, c, name).Status.Allocatable["nvidia.com/gpu"]
		if have.Value() != gpus {
			t.Errorf("%s: %d GPUs, want %d", name, have.Value(), gpus)
		}
	}
}

package scheduler

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/internal/sandboxtest"
)

// peer is a scheduler with one dialect of gangs.
type peer struct {
	name          string
	schedulerName string
	resource      schema.GroupVersionResource
	// join makes a pod a member of a gang, minimum is what its PodGroup declares.
	join    func(pod *corev1.Pod, gang string)
	minimum func(members int) map[string]any
	// command starts the scheduler.
	command func(b testing.TB, c *sandboxtest.Cluster, config string) *exec.Cmd
	profile string
}

func native(pod *corev1.Pod, gang string) {
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &gang}
}

func nativeMinimum(members int) map[string]any {
	return map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(members)}}}
}

var (
	nativeGroups = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1beta1", Resource: "podgroups"}
	coscheduling = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
)

const ourProfile = "profiles: [{schedulerName: gang-scheduler}]"

var peers = []peer{
	{
		name: "ours", schedulerName: "gang-scheduler", resource: coscheduling, command: ours, profile: ourProfile,
		join:    func(pod *corev1.Pod, gang string) { pod.Labels["scheduling.x-k8s.io/pod-group"] = gang },
		minimum: func(members int) map[string]any { return map[string]any{"minMember": int64(members)} },
	},
	{name: "ours, native", schedulerName: "gang-scheduler", resource: nativeGroups, command: ours, profile: ourProfile, join: native, minimum: nativeMinimum},
	{name: "stock", schedulerName: corev1.DefaultSchedulerName, resource: nativeGroups, command: stock, join: native, minimum: nativeMinimum},
}

func (p peer) group(gang string, members int) *unstructured.Unstructured {
	g := &unstructured.Unstructured{Object: map[string]any{"spec": p.minimum(members)}}
	g.SetGroupVersionKind(p.resource.GroupVersion().WithKind("PodGroup"))
	g.SetNamespace(namespace)
	g.SetName(gang)
	return g
}

// config is a scheduler's configuration: as many requests as it likes, and no lease.
func (p peer) config(b testing.TB, kubeconfig string) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "config.yaml")
	text := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection:
  kubeconfig: %s
  qps: 5000
  burst: 5000
  contentType: application/vnd.kubernetes.protobuf
  acceptContentTypes: application/vnd.kubernetes.protobuf,application/json
%s
`, kubeconfig, p.profile)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

func ours(b testing.TB, _ *sandboxtest.Cluster, config string) *exec.Cmd {
	gangctl := os.Getenv("GANGCTL_BIN")
	if gangctl == "" {
		b.Fatal("GANGCTL_BIN is not set: run make bench-scheduler")
	}
	args := []string{"scheduler", "--config", config, "--secure-port", "0"}
	if os.Getenv("GANGCTL_BENCH_PROFILES") != "" {
		args = append(args, serving...)
	}
	return exec.CommandContext(b.Context(), gangctl, args...)
}

func stock(b testing.TB, c *sandboxtest.Cluster, config string) *exec.Cmd {
	cmd := exec.CommandContext(b.Context(), c.Binary, "component", "default-scheduler", "--data-dir", c.DataDir, "--config", config,
		"--secure-port", "0", "--feature-gates", "GenericWorkload=true")
	if _, err := cmd.StdinPipe(); err != nil { // a component ends with what started it
		b.Fatal(err)
	}
	return cmd
}

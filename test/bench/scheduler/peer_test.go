package scheduler

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gangctl/gangctl/internal/leastscheduler"
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
	command func(m *measurement, config string) *exec.Cmd
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

// measured are the peers, and what none of them can be better than.
var measured = append(slices.Clone(peers), peer{
	name: "least", schedulerName: leastscheduler.Name, resource: nativeGroups, command: least, join: native, minimum: nativeMinimum,
})

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

func ours(m *measurement, config string) *exec.Cmd {
	gangctl := os.Getenv("GANGCTL_BIN")
	if gangctl == "" {
		m.b.Fatal("GANGCTL_BIN is not set: run make bench-scheduler")
	}
	args := []string{"scheduler", "--config", config, "--secure-port", "0"}
	if os.Getenv("GANGCTL_BENCH_PROFILES") != "" {
		args = append(args, serving...)
	}
	return exec.CommandContext(m.b.Context(), gangctl, args...)
}

func stock(m *measurement, config string) *exec.Cmd {
	cmd := exec.CommandContext(m.b.Context(), m.cluster.Binary, "component", "default-scheduler", "--data-dir", m.cluster.DataDir, "--config", config,
		"--secure-port", "0", "--feature-gates", "GenericWorkload=true")
	if _, err := cmd.StdinPipe(); err != nil { // a component ends with what started it
		m.b.Fatal(err)
	}
	return cmd
}

// leastFor has this program be the least scheduler, for the workload of that name on so many nodes of the cluster of a kubeconfig.
const leastFor = "GANGCTL_BENCH_LEAST"

// least starts this program as a scheduler: like the others it has a process of its own.
func least(m *measurement, _ string) *exec.Cmd {
	cmd := exec.CommandContext(m.b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", leastFor, m.work.name, m.nodes, m.cluster.Kubeconfig))
	return cmd
}

func TestMain(m *testing.M) {
	of := os.Getenv(leastFor)
	if of == "" {
		os.Exit(m.Run())
	}
	if err := beLeast(of); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// beLeast is the least scheduler until it is told to end. The members of gangs go to one node after the other.
func beLeast(of string) error {
	var name, kubeconfig string
	var nodes int
	if _, err := fmt.Sscan(of, &name, &nodes, &kubeconfig); err != nil {
		return fmt.Errorf("read %s: %w", leastFor, err)
	}
	at := slices.IndexFunc(workloads, func(w workload) bool { return w.name == name })
	if at < 0 {
		return fmt.Errorf("there is no workload %q", name)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read %s: %w", kubeconfig, err)
	}
	sizes := map[string]int{}
	for i, members := range workloads[at].gangs {
		sizes[gangName(i)] = members
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	bound := 0
	if err := leastscheduler.Start(ctx, config, leastscheduler.Gangs{
		Label: gangLabel, Size: func(gang string) int { return sizes[gang] }, Node: func() string { bound++; return nodeName(bound % nodes) },
	}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/internal/sandboxtest"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
)

// kueueQueues are two queues of sixteen GPUs each, on nodes of their own, and two priorities.
const kueueQueues = `apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: reserved}
spec: {nodeLabels: {pool: reserved}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: spot}
spec: {nodeLabels: {pool: spot}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - {name: reserved, resources: [{name: cpu, nominalQuota: 32}, {name: memory, nominalQuota: 64Gi}, {name: nvidia.com/gpu, nominalQuota: 16}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {namespace: default, name: research}
spec: {clusterQueue: research}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: low}
value: 10
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: high}
value: 1000
`

// sharedQueues make two queues of one cohort of these nodes: each may use what the other has left, until that wants it back.
const sharedQueues = `apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec:
  namespaceSelector: {}
  cohortName: lab
  preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - {name: reserved, resources: [{name: cpu, nominalQuota: 32}, {name: memory, nominalQuota: 64Gi}, {name: nvidia.com/gpu, nominalQuota: 16}]}
    - {name: spot, resources: [{name: cpu, nominalQuota: 0}, {name: memory, nominalQuota: 0}, {name: nvidia.com/gpu, nominalQuota: 0}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: vision}
spec:
  namespaceSelector: {}
  cohortName: lab
  preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - {name: spot, resources: [{name: cpu, nominalQuota: 32}, {name: memory, nominalQuota: 64Gi}, {name: nvidia.com/gpu, nominalQuota: 16}]}
    - {name: reserved, resources: [{name: cpu, nominalQuota: 0}, {name: memory, nominalQuota: 0}, {name: nvidia.com/gpu, nominalQuota: 0}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {namespace: default, name: vision}
spec: {clusterQueue: vision}
`

// queuedJob is a gang as it is submitted to a queue of Kueue.
type queuedJob struct {
	name, queue, priority string
	workers, gpus         int
}

// queuedKind is a kind of job that Kueue manages.
type queuedKind struct {
	name, listed string
	// selector finds its pods but for the name of the job, and resource is that of kubectl.
	selector, resource string
	submit             func(t *testing.T, j queuedJob) []string
}

// flagged submits a kind by flags.
func flagged(subcommand string, more ...string) func(*testing.T, queuedJob) []string {
	return func(_ *testing.T, j queuedJob) []string {
		args := []string{"submit", subcommand, j.name, "--image", "x", "--workers", fmt.Sprint(j.workers), "--gpus", fmt.Sprint(j.gpus), "--cpu", "100m", "--memory", "64Mi",
			"--queue", j.queue, "--label", "kueue.x-k8s.io/priority-class=" + j.priority}
		return append(append(args, more...), "--", "python", "train.py")
	}
}

// setFromFile submits the file of a JobSet, in which there is nothing about a gang.
func setFromFile(t *testing.T, j queuedJob) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), j.name+".yaml")
	must(t, os.WriteFile(path, fmt.Appendf(nil, `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: %s
  labels: {kueue.x-k8s.io/priority-class: %s}
spec:
  replicatedJobs:
  - name: workers
    replicas: %d
    template:
      spec:
        parallelism: 1
        completions: 1
        template:
          spec:
            containers:
            - {name: main, image: x, resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {nvidia.com/gpu: %d}}}
`, j.name, j.priority, j.workers, j.gpus), 0o600))
	return []string{"submit", "-f", path, "--queue", j.queue}
}

// trained submits the file of a TrainJob, in which there is nothing about a gang.
func trained(t *testing.T, j queuedJob) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), j.name+".yaml")
	must(t, os.WriteFile(path, fmt.Appendf(nil, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: %s
  labels: {kueue.x-k8s.io/priority-class: %s}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: %d
    resourcesPerNode: {requests: {cpu: 100m, memory: 64Mi}, limits: {nvidia.com/gpu: %d}}
`, j.name, j.priority, j.workers, j.gpus), 0o600))
	return []string{"submit", "-f", path, "--queue", j.queue}
}

// gvr is the resource of a kind.
func (k queuedKind) gvr() schema.GroupVersionResource {
	switch k.listed {
	case "Job":
		return batchv1.SchemeGroupVersion.WithResource("jobs")
	case jobset.Kind:
		return jobSets()
	case trainjob.Kind:
		return trainJobs()
	default:
		return schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: k.resource + "s"}
	}
}

func queuedKinds() []queuedKind {
	const operated, batch = "training.kubeflow.org/job-name=", "batch.kubernetes.io/job-name="
	return []queuedKind{
		{"Job", "Job", batch, "job", flagged("job")},
		{"Job of Kubernetes' own gang", "Job", batch, "job", flagged("job", "--dialect", "native", "--scheduler", "gang-scheduler")},
		{"TFJob", "TFJob", operated, "tfjob", flagged("tf")},
		{"PyTorchJob", "PyTorchJob", operated, "pytorchjob", flagged("pytorch", "--nproc-per-node", "2")},
		{"JobSet", "JobSet", jobset.NameLabel + "=", "jobset", setFromFile},
		{"TrainJob", "TrainJob", jobset.NameLabel + "=", "trainjob", trained},
	}
}

// TestKueue has the controller of Kueue, as it is released, with its webhooks, admit gangs by quota, which gangctl's scheduler then places.
func TestKueue(t *testing.T) {
	if os.Getenv(sandboxtest.ServerEnv) != "" {
		t.Skip("it takes Kubernetes' own PodGroups, too, which an older API server does not serve")
	}
	c := newCluster(t, withControllers(t, "trainer,kueue,lws", "--nodes=0", "--run-for=0", "--native-gangs")...)
	for _, node := range []string{"reserved-1", "reserved-2", "spot-1", "spot-2"} {
		pool, _, _ := strings.Cut(node, "-")
		if _, stderr, err := c.Run("node", "add", node, "--gpus=8", "--cpu=16", "--memory=32Gi", "--label=pool="+pool); err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
	}
	kinds := queuedKinds()
	c.applyQueues(t, kueueQueues)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { c.kueueAdmits(t, k) })
	}
	t.Run("pods", func(t *testing.T) { c.kueueAdmitsPods(t, kinds[0]) })
	t.Run("LeaderWorkerSet", func(t *testing.T) { c.kueueGatesReplicas(t) })
	t.Run("requests that no queue can meet", func(t *testing.T) { c.kueueNeverAdmits(t) })
	c.applyQueues(t, sharedQueues)
	t.Run("sequences", func(t *testing.T) { c.kueueSequences(t, kinds) })
}

// runsIn reports whether a pod runs on a node of a pool.
func runsIn(pool string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return runs(p) && strings.HasPrefix(p.Spec.NodeName, pool+"-") }
}

// kueueAdmits: the first gang is admitted and placed; the second waits, and for what is explained; the third is more urgent, and has the first preempted, which
// starts again when there is quota.
func (c *cluster) kueueAdmits(t *testing.T, k queuedKind) {
	gang := func(name, priority string) queuedJob {
		return queuedJob{name: name, queue: "research", priority: priority, workers: 2, gpus: 8}
	}
	pods := func(name string) podLister { return c.selected(t, k.selector+name) }
	watched := c.watchGangs(t, map[string]int{"first": 2, "second": 2, "urgent": 2})
	defer c.leaveNone(t, "first", "second", "urgent")
	c.run(t, k.submit(t, gang("first", "low"))...)
	pods("first").are(t, "the first runs on the nodes of its flavor", 2, runsIn("reserved"))
	c.run(t, "wait", "first", "--for", "running", "--timeout", "1m")
	matches(t, c.run(t, "list"), `^first +`+k.listed+` +Running +2/2`)
	if page := c.run(t, "describe", "first"); strings.Contains(page, "spec was changed") {
		t.Errorf("what Kueue writes when it admits a job is taken for a change by its user:\n%s", page)
	}

	c.run(t, k.submit(t, gang("second", "low"))...)
	c.waitsForQuota(t, "second", `^WAITING +second: Kueue holds it: ClusterQueue research has 0 of 16 GPUs left \(flavor reserved\), and the gang needs 16, 16 more`,
		`requested 16, used 16, limit 16 \(nvidia.com/gpu\)`, `\bfirst uses 16`, `Kueue reported .* ago: .*insufficient unused quota for nvidia.com/gpu in flavor reserved, 16 more needed`)
	c.seesSecond(t, k)
	if n := len(pods("second")(t.Context())); n != 0 {
		t.Errorf("%d pods of a job that waits for quota", n)
	}

	c.run(t, k.submit(t, gang("urgent", "high"))...)
	pods("urgent").are(t, "the urgent gang runs", 2, runsIn("reserved"))
	pods("first").are(t, "the first has gone, whole", 0, runs)
	c.waitsForQuota(t, "first", `^WAITING +first: Kueue holds it: `, `\burgent uses 16`, `preempted .* ago for .*urgent`)
	matches(t, c.run(t, "events", "first"), `Preempted|Evicted`)

	c.run(t, "delete", "urgent")
	// They may have been created in the same second: then either comes first.
	resumed, other := "first", "second"
	eventually(t, "one of those that wait runs, whole", func(ctx context.Context) bool {
		if count(pods("second")(ctx), runsIn("reserved")) == 2 {
			resumed, other = "second", "first"
		}
		return count(pods(resumed)(ctx), runsIn("reserved")) == 2
	})
	pods(other).are(t, "the other waits", 0, runs)
	c.run(t, "wait", resumed, "--for", "running", "--timeout", "1m")
	c.run(t, "delete", resumed)
	pods(other).are(t, "the other runs, whole", 2, runsIn("reserved"))
	c.run(t, "delete", other)
	c.noWorkloads(t)
	c.empty(t)
	watched.stop()
}

// leaveNone deletes what a test that fails leaves, for the sake of the next.
func (c *cluster) leaveNone(t *testing.T, jobs ...string) {
	if !t.Failed() {
		return
	}
	for _, name := range jobs {
		_, _, _ = gangctlAt(t, c.Kubeconfig, "delete", name) // it may not be there
	}
	c.noWorkloads(t)
}

// waitsForQuota waits until why-pending explains that a job waits for Kueue, with these lines.
func (c *cluster) waitsForQuota(t *testing.T, name string, patterns ...string) {
	t.Helper()
	eventually(t, "Kueue has looked at "+name, func(ctx context.Context) bool {
		list, err := c.dynamic.Resource(kueueResource("workloads")).Namespace(space).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		for i := range list.Items {
			w := &list.Items[i]
			conditions, _, _ := unstructured.NestedSlice(w.Object, "status", "conditions")
			for _, item := range conditions {
				condition, _ := item.(map[string]any)
				refused := condition["type"] == "QuotaReserved" && condition["status"] == "False"
				isIt := func(ref metav1.OwnerReference) bool { return ref.Name == strings.TrimPrefix(name, "pod/") }
				if refused && slices.ContainsFunc(w.GetOwnerReferences(), isIt) {
					return true
				}
			}
		}
		return false
	})
	stdout, stderr, code := gangctlAt(t, c.Kubeconfig, "why-pending", name)
	if code != 3 || strings.Contains(stderr, "deprecated") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if strings.Contains(stdout, "spot-1 would take") {
		t.Error("nodes that are not of its flavor are offered")
	}
	matches(t, stdout, patterns...)
}

// seesSecond looks at a job that waits for Kueue, with each command.
func (c *cluster) seesSecond(t *testing.T, k queuedKind) {
	t.Helper()
	matches(t, c.run(t, "list", "-o", "wide"), `^second +`+k.listed+` +Suspended +0/2 .*Kueue, queue research`)
	matches(t, c.run(t, "get", "second"), `Suspended`, `Kueue, queue research`)
	matches(t, c.run(t, "describe", "second"), `Suspended`, `QuotaReserved|Pending`)
	matches(t, c.run(t, "top", "job"), `second`)
	matches(t, c.run(t, "top", "queue"), `^research +.*16/16.*`)
	stdout, _, code := gangctlAt(t, c.Kubeconfig, "why-pending", "second", "-o", "json")
	if code != 3 {
		t.Errorf("exit code %d", code)
	}
	matches(t, stdout, `"code": "KUEUE_QUOTA"`, `"queue": "research"`, `"requested": 16`, `"used": 16`, `"limit": 16`)
	_, stderr, code := gangctlAt(t, c.Kubeconfig, "wait", "second", "--for", "running", "--timeout", "1s")
	if code == 0 || !strings.Contains(stderr, "Kueue holds it: ClusterQueue research has 0 of 16 GPUs left") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	for _, verb := range []string{"resume", "suspend"} {
		_, stderr, code := gangctlAt(t, c.Kubeconfig, verb, k.resource+"/second")
		if code == 0 || !strings.Contains(stderr, "Kueue decides when it runs, by its queue research") || !strings.Contains(stderr, " lists as "+k.resource+"-second-") {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
	}
	list, err := c.dynamic.Resource(kueueResource("workloads")).Namespace(space).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	var names []string
	for _, w := range list.Items {
		names = append(names, w.GetName())
	}
	if all := strings.Join(names, " "); !strings.Contains(" "+all, " "+k.resource+"-second-") {
		t.Errorf("Kueue's Workloads are called otherwise than a hint has it: %s", all)
	}
	third := queuedJob{name: "third", queue: "research", priority: "low", workers: 2, gpus: 8}
	args := k.submit(t, third)
	fit := append([]string{args[0], "--dry-run=fit"}, args[1:]...)
	if args[1] != "-f" {
		fit = append([]string{args[0], args[1], "--dry-run=fit"}, args[2:]...)
	}
	stdout, stderr, code = gangctlAt(t, c.Kubeconfig, fit...)
	if code != 3 || !strings.Contains(stdout, "Kueue holds it: ClusterQueue research has 0 of 16 GPUs left") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// kueueAdmitsPods: a group of pods without a job, which Kueue holds by a gate.
func (c *cluster) kueueAdmitsPods(t *testing.T, k queuedKind) {
	watched := c.watchGangs(t, map[string]int{"first": 2, "pods": 2})
	defer c.leaveNone(t, "first")
	c.run(t, k.submit(t, queuedJob{name: "first", queue: "research", priority: "low", workers: 2, gpus: 8})...)
	c.selected(t, k.selector+"first").are(t, "the first runs", 2, runs)
	group := &unstructured.Unstructured{Object: map[string]any{"apiVersion": schedulerplugins.GVR().GroupVersion().String(), "kind": "PodGroup",
		"metadata": map[string]any{"name": "pods"}, "spec": map[string]any{"minMember": int64(2)}}}
	_, err := c.dynamic.Resource(schedulerplugins.GVR()).Namespace(space).Create(t.Context(), group, metav1.CreateOptions{})
	must(t, err)
	for _, name := range []string{"pods-0", "pods-1"} {
		pod := plain(name, "gang-scheduler", "100m")
		pod.Labels = map[string]string{kueue.QueueLabel: "research", "kueue.x-k8s.io/pod-group-name": "pods", schedulerplugins.PodGroupLabel: "pods"}
		pod.Annotations = map[string]string{"kueue.x-k8s.io/pod-group-total-count": "2"}
		resources := &pod.Spec.Containers[0].Resources
		resources.Requests["nvidia.com/gpu"] = resource.MustParse("8")
		resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
		c.create(t, pod)
	}
	lister := c.selected(t, schedulerplugins.PodGroupLabel+"=pods")
	lister.are(t, "Kueue holds the pods", 2, func(p *corev1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 && p.Spec.NodeName == "" })
	c.waitsForQuota(t, "pod/pods-1", `^WAITING +pods: Kueue holds it: ClusterQueue research has 0 of 16 GPUs left`, `\bfirst uses 16`)
	c.run(t, "delete", "first")
	lister.are(t, "both run", 2, runsIn("reserved"))
	for _, pod := range lister(t.Context()) {
		must(t, c.client.CoreV1().Pods(space).Delete(t.Context(), pod.Name, now()))
	}
	must(t, c.dynamic.Resource(schedulerplugins.GVR()).Namespace(space).Delete(t.Context(), "pods", metav1.DeleteOptions{}))
	// Kueue keeps the pods of a group until it has others in their place, or the Workload is deleted.
	must(t, c.dynamic.Resource(kueueResource("workloads")).Namespace(space).Delete(t.Context(), "pods", metav1.DeleteOptions{}))
	c.empty(t)
	c.noWorkloads(t)
	watched.stop()
}

// kueueGatesReplicas: a LeaderWorkerSet cannot be suspended. Its pods are there, and gated until there is quota for their replica, each of which is a gang.
func (c *cluster) kueueGatesReplicas(t *testing.T) {
	submit := func(name string) podLister {
		path := filepath.Join(t.TempDir(), name+".yaml")
		must(t, os.WriteFile(path, fmt.Appendf(nil, `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: %s}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      spec:
        containers:
        - {name: main, image: x, resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {nvidia.com/gpu: 4}}}
`, name), 0o600))
		c.run(t, "submit", "-f", path, "--queue", "research")
		return c.selected(t, leaderworkerset.NameLabel+"="+name)
	}
	first := submit("first")
	first.are(t, "both replicas run on the nodes of their flavor", 4, runsIn("reserved"))
	second := submit("second")
	second.are(t, "Kueue holds its pods", 4, func(p *corev1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 && p.Spec.NodeName == "" })
	eventually(t, "it is explained", func(context.Context) bool {
		stdout, _, code := gangctlAt(t, c.Kubeconfig, "why-pending", "second")
		return code == 3 && strings.Contains(stdout, "Kueue holds it: ClusterQueue research has 0 of 16 GPUs left")
	})
	c.run(t, "delete", "first")
	second.are(t, "both replicas run", 4, runsIn("reserved"))
	c.run(t, "delete", "second")
	c.empty(t)
	c.noWorkloads(t)
}

// kueueNeverAdmits: what no queue can give is seen before it is submitted, and after.
func (c *cluster) kueueNeverAdmits(t *testing.T) {
	large := flagged("job")(t, queuedJob{name: "large", queue: "research", priority: "low", workers: 3, gpus: 8})
	stdout, stderr, code := gangctlAt(t, c.Kubeconfig, append([]string{"submit", "job", "--dry-run=fit"}, large[2:]...)...)
	if code != 6 || !strings.Contains(stdout, "Kueue can never admit it: ClusterQueue research allows 16 GPUs in all (flavor reserved), and the gang needs 24") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	c.run(t, flagged("job")(t, queuedJob{name: "lost", queue: "reserch", priority: "low", workers: 1, gpus: 1})...)
	stdout, _, code = gangctlAt(t, c.Kubeconfig, "why-pending", "lost")
	if code != 4 {
		t.Errorf("exit code %d", code)
	}
	matches(t, stdout, `LocalQueue "reserch" does not exist`, `did you mean research\?`)
	c.run(t, "delete", "lost")
	// The queues have no quota for a resource that it requests: by default Kueue never admits that.
	c.run(t, flagged("job", "--set", "spec.template.spec.containers[0].resources.requests.ephemeral-storage=1Gi")(t, queuedJob{name: "stored", queue: "research", priority: "low", workers: 1, gpus: 1})...)
	eventually(t, "why-pending reports what Kueue lacks", func(context.Context) bool {
		stdout, _, code = gangctlAt(t, c.Kubeconfig, "why-pending", "stored")
		return code == 6 && strings.Contains(stdout, "Kueue can never admit it: ClusterQueue research has no quota for ephemeral-storage at all")
	})
	c.run(t, "delete", "stored")
	c.noWorkloads(t)
}

// applyQueues applies objects of Kueue, whose webhooks check them.
func (c *cluster) applyQueues(t *testing.T, manifests ...string) {
	t.Helper()
	applier := &sandboxmanifest.Applier{Client: c.dynamic}
	for _, manifest := range manifests {
		must(t, applier.Apply(t.Context(), []byte(manifest)))
	}
}

// kueueResource is one of Kueue's resources.
func kueueResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: kueue.Group, Version: "v1beta2", Resource: name}
}

// noWorkloads waits until Kueue has seen that all jobs are gone.
func (c *cluster) noWorkloads(t *testing.T) {
	t.Helper()
	eventually(t, "no Workload is left", func(ctx context.Context) bool {
		list, err := c.dynamic.Resource(kueueResource("workloads")).Namespace(space).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
}

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/sandbox/crd"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
)

// submitted is a kind of job as `gangctl submit` makes it of three members that train.
type submitted struct {
	subcommand, flags string
	resource          schema.GroupVersionResource
	// members are all of them, and selector finds their pods but for the name.
	members  int
	selector string
}

func submittedKinds() []submitted {
	kubeflow := func(plural string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: plural}
	}
	const trained = "training.kubeflow.org/job-name="
	return []submitted{
		{"tf", "", kubeflow("tfjobs"), 3, trained},
		{"pytorch", "--nproc-per-node 2", kubeflow("pytorchjobs"), 3, trained},
		{"mpi", "", kubeflow("mpijobs"), 4, trained},
		{"job", "--framework tensorflow", schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, 3, "batch.kubernetes.io/job-name="},
	}
}

// TestSubmitKinds runs every kind of job on the operator's own controllers, those of Kubernetes, and gangctl's scheduler.
func TestSubmitKinds(t *testing.T) {
	t.Parallel()
	// A cluster of its own: its pods end by themselves.
	c := newCluster(t, "--nodes=2", "--cpu=16", "--gpus=8", "--run-for=2s", "--native-gangs", "--serve=volcano,kube-batch")
	t.Run("a cluster without Volcano", c.withoutVolcano)
	applier := &sandboxmanifest.Applier{Client: c.dynamic}
	must(t, applier.Apply(t.Context(), crd.VolcanoPodGroups()))
	must(t, applier.WaitEstablished(t.Context(), crd.VolcanoPodGroups()))
	c.define(t, podGroups("scheduling.incubator.k8s.io", "v1alpha1"))
	for _, k := range submittedKinds() {
		t.Run(k.subcommand, func(t *testing.T) {
			c.acceptsEveryDialect(t, k)
			c.waitsWhole(t, k)
			c.runsToTheEnd(t, k)
		})
	}
	t.Run("a minimum that only the group has", c.showsMinimum)
	t.Run("volcano's scheduler is requested", c.requestsVolcano)
	t.Run("a Service that is taken", c.rollsBackService)
}

// showsMinimum: a Job of Kubernetes has no field for how many members must start together. Where it is, every dialect's own group, is read.
func (c *cluster) showsMinimum(t *testing.T) {
	k := submittedKinds()[3]
	for _, dialect := range []string{"scheduler-plugins", "native", "volcano", "labels"} { // no node has 16 GPUs, so that none of them ends
		name := "part-" + dialect
		c.submit(t, k.line(name, "16", "--min-available", "2", "--dialect", dialect)...)
		stdout, stderr, code := gangctlAt(t, c.Kubeconfig, "get", name)
		matches(t, stdout, `^Gang: +2 of 3 members start together \(`+dialect+`\)`)
		if code != 0 || stderr != "" {
			t.Errorf("%s: exit code %d, %s", name, code, stderr)
		}
	}
	stdout, _, _ := gangctlAt(t, c.Kubeconfig, "list", "-o", "wide", "--no-headers")
	for _, dialect := range []string{"scheduler-plugins", "native", "volcano", "labels"} {
		matches(t, stdout, `^part-`+dialect+` .* 2/3 `)
		c.remove(t, k, "part-"+dialect)
	}
}

// submit types a submission, and expects it to succeed.
func (c *cluster) submit(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, code := gangctlAt(t, c.Kubeconfig, append([]string{"submit"}, args...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	return stdout, stderr
}

// line is a submission of three members that train, with so many GPUs each.
func (k submitted) line(name, gpus string, more ...string) []string {
	args := append([]string{k.subcommand, name, "--image", "x", "--workers", "3", "--gpus", gpus, "--cpu", "100m"}, strings.Fields(k.flags)...)
	return append(append(args, more...), "--", "python", "train.py")
}

// withoutVolcano: what is not served is not taken, and a queue that no scheduler reads is refused.
func (c *cluster) withoutVolcano(t *testing.T) {
	for flags, want := range map[string]string{
		"--scheduler volcano": "error: nothing here would start the members together: dialect volcano: the cluster does not serve podgroups.scheduling.volcano.sh",
		"--queue research":    "error: --queue research: nothing here reads it",
		"--dialect volcano":   "error: create PodGroup default/refused: the cluster does not serve podgroups.scheduling.volcano.sh",
	} {
		stdout, stderr, code := gangctlAt(t, c.Kubeconfig, append([]string{"submit", "tf", "refused", "--image", "x"}, strings.Fields(flags)...)...)
		if code == 0 || stdout != "" || !strings.HasPrefix(stderr, want) {
			t.Errorf("%s: exit code %d\n%s", flags, code, stderr)
		}
	}
}

// acceptsEveryDialect: the API server takes every object as it was meant, under strict validation.
func (c *cluster) acceptsEveryDialect(t *testing.T, k submitted) {
	for _, w := range dialect.Writers() {
		stdout, _ := c.submit(t, k.line("dry", "1", "--dry-run=server", "-o", "json", "--dialect", string(w.Dialect),
			"--env", `Q=a"b: c # d`, "--label", "team=vision")...)
		list := &unstructured.Unstructured{}
		must(t, list.UnmarshalJSON([]byte(stdout)))
		if want := map[bool]string{true: "schedulingGroup", false: "dry"}[w.Dialect == "native"]; !strings.Contains(stdout, want) {
			t.Errorf("%s %s: no %s in %s", k.subcommand, w.Dialect, want, stdout)
		}
	}
}

// waitsWhole: two of three members that train would find a place. None holds any, and neither does a launcher.
func (c *cluster) waitsWhole(t *testing.T, k submitted) {
	c.submit(t, k.line("large", "8")...)
	eventually(t, "all members are refused", func(context.Context) bool {
		pods := c.membersOf(t, k, "large")
		if len(pods) != k.members {
			return false
		}
		for _, pod := range pods {
			if !refusedToSchedule(&pod) {
				return false
			}
		}
		return true
	})
	for _, pod := range c.membersOf(t, k, "large") {
		if pod.Spec.NodeName != "" {
			t.Errorf("%s has a place on %s", pod.Name, pod.Spec.NodeName)
		}
	}
	c.remove(t, k, "large")
}

func refusedToSchedule(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return true
		}
	}
	return false
}

// runsToTheEnd: all members are one gang, run, and the job succeeds; what belongs to it goes with it.
func (c *cluster) runsToTheEnd(t *testing.T, k submitted) {
	_, stderr := c.submit(t, k.line("fits", "1")...)
	if !strings.HasPrefix(stderr, "note: dialect scheduler-plugins: ") {
		t.Errorf("nothing is said of the dialect: %s", stderr)
	}
	group, err := c.dynamic.Resource(schedulerplugins.GVR()).Namespace(space).Get(t.Context(), "fits", metav1.GetOptions{})
	must(t, err)
	if n, _, _ := unstructured.NestedInt64(group.Object, "spec", "minMember"); n != int64(k.members) {
		t.Errorf("the gang needs %d of %d members", n, k.members)
	}
	c.succeeds(t, k.resource, space, "fits")
	for _, pod := range c.membersOf(t, k, "fits") {
		if name, _ := schedulerplugins.NameOf(&pod); name != "fits" || pod.Spec.SchedulerName != "gang-scheduler" {
			t.Errorf("%s is in gang %q of %s", pod.Name, name, pod.Spec.SchedulerName)
		}
	}
	c.remove(t, k, "fits")
}

// succeeds waits until a job has.
func (c *cluster) succeeds(t *testing.T, resource schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	eventually(t, namespace+"/"+name+" succeeds", func(ctx context.Context) bool {
		job, err := c.dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
		for _, item := range conditions {
			condition, _ := item.(map[string]any)
			if kind := condition["type"]; condition["status"] == "True" && (kind == "Succeeded" || kind == "Complete") {
				return true
			}
		}
		return false
	})
}

func (c *cluster) membersOf(t *testing.T, k submitted, job string) []corev1.Pod {
	t.Helper()
	pods, err := c.client.CoreV1().Pods(space).List(t.Context(), metav1.ListOptions{LabelSelector: k.selector + job})
	must(t, err)
	return pods.Items
}

// remove deletes a job, and waits until its pods, its group and its Service are gone.
func (c *cluster) remove(t *testing.T, k submitted, name string) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	must(t, c.dynamic.Resource(k.resource).Namespace(space).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}))
	c.nothingOwned(t, k, name)
}

func (c *cluster) nothingOwned(t *testing.T, k submitted, name string) {
	t.Helper()
	eventually(t, "nothing is left of "+name, func(ctx context.Context) bool {
		_, noGroup := c.dynamic.Resource(schedulerplugins.GVR()).Namespace(space).Get(ctx, name, metav1.GetOptions{})
		service, noService := c.client.CoreV1().Services(space).Get(ctx, name, metav1.GetOptions{})
		ours := noService == nil && len(service.OwnerReferences) > 0
		return apierrors.IsNotFound(noGroup) && !ours && len(c.membersOf(t, k, name)) == 0
	})
}

// requestsVolcano: the dialect follows the scheduler, and the queue is in the group.
func (c *cluster) requestsVolcano(t *testing.T) {
	k := submittedKinds()[0]
	stdout, stderr := c.submit(t, k.line("burst", "1", "--scheduler", "volcano", "--queue", "research")...)
	if !strings.HasPrefix(stderr, "note: dialect volcano: ") || !strings.Contains(stdout, "podgroup.scheduling.volcano.sh/burst created\n") {
		t.Errorf("got %s%s", stdout, stderr)
	}
	group, err := c.dynamic.Resource(podGroups("scheduling.volcano.sh", "v1beta1")).Namespace(space).Get(t.Context(), "burst", metav1.GetOptions{})
	must(t, err)
	if queue, _, _ := unstructured.NestedString(group.Object, "spec", "queue"); queue != "research" {
		t.Errorf("queue %q", queue)
	}
	eventually(t, "its members run or have run", func(context.Context) bool {
		pods := c.membersOf(t, k, "burst")
		for _, pod := range pods {
			if pod.Spec.NodeName == "" {
				return false
			}
		}
		return len(pods) == k.members
	})
	c.remove(t, k, "burst")
}

// rollsBackService: the third object cannot be created, and neither of the others stays.
func (c *cluster) rollsBackService(t *testing.T) {
	k := submittedKinds()[3]
	_, err := c.client.CoreV1().Services(space).Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "taken"},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}, metav1.CreateOptions{})
	must(t, err)
	stdout, stderr, code := gangctlAt(t, c.Kubeconfig, append([]string{"submit"}, k.line("taken", "1")...)...)
	if code != 1 || stdout != "" || !strings.Contains(stderr, "Job default/taken was deleted again") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	_, err = c.dynamic.Resource(k.resource).Namespace(space).Get(t.Context(), "taken", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the job is there: %v", err)
	}
	c.nothingOwned(t, k, "taken")
}

// takesAdvice: of a gang that is too large for the cluster, why-pending offers another size, and makes it by --apply: it starts, whole, and its PodGroup
// needs no more than there are.
func (c *cluster) takesAdvice(t *testing.T, ref, advice string, pods podLister, want int) {
	t.Helper()
	name := ref[strings.Index(ref, "/")+1:]
	eventually(t, ref+" waits, and the advice is there", func(context.Context) bool {
		stdout, _, code := gangctlAt(t, c.Kubeconfig, "why-pending", ref)
		return code >= 3 && strings.Contains(stdout, advice)
	})
	stdout, stderr, code := gangctlAt(t, c.Kubeconfig, "why-pending", ref, "--apply", advice, "--yes")
	if code != 0 {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	pods.are(t, "all run", want, runs)
	c.run(t, "wait", ref, "--for", "running", "--timeout", "1m")
	group, err := c.dynamic.Resource(schedulerplugins.GVR()).Namespace(space).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	if n, _, _ := unstructured.NestedInt64(group.Object, "spec", "minMember"); n != int64(want) {
		t.Errorf("the gang needs %d of %d members", n, want)
	}
	if stdout, _, _ := gangctlAt(t, c.Kubeconfig, "get", ref, "-o", "yaml"); strings.Contains(stdout, "gangctl.dev/resize:") {
		t.Errorf("it keeps the change:\n%s", stdout)
	}
	c.run(t, "delete", ref)
}

// losesMember: a member with all GPUs of its node dies, and another pod waits for as many: the place is kept for the member that replaces it.
func (c *cluster) losesMember(t *testing.T, pods podLister, n int) {
	t.Helper()
	filler := plain("filler", "gang-scheduler", "1m")
	filler.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}
	c.create(t, filler)
	eventually(t, "another pod waits for the place", func(ctx context.Context) bool {
		pod, err := c.client.CoreV1().Pods(space).Get(ctx, filler.Name, metav1.GetOptions{})
		return err == nil && refusedToSchedule(pod)
	})
	all := pods(t.Context())
	lost := all[slices.IndexFunc(all, func(p corev1.Pod) bool { return gpusOf(&p) > 0 })]
	must(t, c.client.CoreV1().Pods(space).Delete(t.Context(), lost.Name, now()))
	pods.are(t, "another member takes its place", n, func(p *corev1.Pod) bool { return runs(p) && p.UID != lost.UID })
	if !slices.ContainsFunc(pods(t.Context()), func(p corev1.Pod) bool { return p.Spec.NodeName == lost.Spec.NodeName && gpusOf(&p) > 0 }) {
		t.Errorf("no member is on %s again", lost.Spec.NodeName)
	}
	pod, err := c.client.CoreV1().Pods(space).Get(t.Context(), filler.Name, metav1.GetOptions{})
	must(t, err)
	if pod.Spec.NodeName != "" {
		t.Errorf("another pod has taken the place on %s", pod.Spec.NodeName)
	}
	must(t, c.client.CoreV1().Pods(space).Delete(t.Context(), filler.Name, now()))
}

// gpusOf is how many GPUs a pod requests.
func gpusOf(pod *corev1.Pod) int64 {
	n := pod.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
	return n.Value()
}

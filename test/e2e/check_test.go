package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/gangctl/gangctl/internal/sandboxtest"
	"github.com/gangctl/gangctl/sandbox/demo"
)

// checked is what tests read of the JSON of `gangctl check`.
type checked struct {
	APIVersion, Kind, Status, Grant string
	Summary                         struct{ OK, Warn, Fail, Unknown int }
	Checks                          []struct {
		ID, Category, Title, Status string
		Findings                    []struct{ Status, Message, Hint, Fix string }
	}
	Smoke *struct{ BoundSeconds, RunningSeconds, DeletedSeconds float64 }
}

// outcome is that of one check; the test fails if it was not made.
func (c checked) outcome(t *testing.T, id string) (status, text, fix string) {
	t.Helper()
	for _, o := range c.Checks {
		if o.ID != id {
			continue
		}
		for _, f := range o.Findings {
			text += f.Message + "\n" + f.Hint + "\n"
			if fix != "" && f.Fix != "" {
				fix += "---\n"
			}
			fix += f.Fix
		}
		return o.Status, text, fix
	}
	t.Fatalf("there is no outcome of %s", id)
	return "", "", ""
}

// check runs the command and holds its exit code to its answer.
func check(t *testing.T, types func(...string) (string, string, int), args ...string) checked {
	t.Helper()
	out, stderr, code := types(append([]string{"check", "-o", "json"}, args...)...)
	var c checked
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr)
	}
	want := 0
	if c.Status == "fail" || c.Status == "unknown" {
		want = 5
	}
	if code != want || c.APIVersion != "gangctl.check/v1" || c.Kind != "CheckReport" {
		t.Errorf("%s %s %s, exit code %d", c.APIVersion, c.Kind, c.Status, code)
	}
	return c
}

func TestCheck(t *testing.T) {
	t.Parallel()
	stage := newStage(t, gangScheduler("scheduler-plugins"))
	must(t, stage.AddNodes(t.Context(), 2, 8))
	admin := func(args ...string) (string, string, int) { return gangctl(t, stage, args...) }
	t.Run("nothing has been scheduled yet", func(t *testing.T) {
		if status, text, _ := check(t, admin).outcome(t, "scheduler-alive"); status != "ok" || !strings.Contains(text, "lease gangctl-system/gang-scheduler renewed ") {
			t.Errorf("%s: %s", status, text)
		}
	})
	t.Run("smoke", func(t *testing.T) { smokes(t, stage, admin) })
	t.Run("healthy", func(t *testing.T) {
		c := check(t, admin)
		for _, o := range c.Checks {
			if o.Status != "ok" {
				t.Errorf("%s: %s %v", o.ID, o.Status, o.Findings)
			}
		}
		text, stderr, code := admin("check")
		if code != 0 || stderr != "" || !strings.Contains(text, "SCHEDULERS\nok       a gang scheduler is alive: gang-scheduler: lease gangctl-system/gang-scheduler renewed ") || strings.Contains(text, "apply -f -") {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("without rights", func(t *testing.T) { checksBlind(t, stage) })
	t.Run("before an installation, without rights", func(t *testing.T) { checksBefore(t, stage) })
	t.Run("definitions of others", func(t *testing.T) { namesOwners(t, stage, admin) })
}

// smokes: the gang is placed, measured, and gone.
func smokes(t *testing.T, stage *demo.Stage, admin func(...string) (string, string, int)) {
	c := check(t, admin, "--smoke")
	if status, text, _ := c.outcome(t, "smoke"); status != "ok" || c.Smoke == nil || c.Smoke.BoundSeconds <= 0 || c.Smoke.RunningSeconds < c.Smoke.BoundSeconds {
		t.Errorf("%s: %s %+v", status, text, c.Smoke)
	}
	if status, _, _ := c.outcome(t, "scheduler-alive"); status != "ok" {
		t.Error("the gang that was placed is no sign of life")
	}
	dyn, err := dynamic.NewForConfig(stage.Config())
	must(t, err)
	for _, resource := range []schema.GroupVersionResource{corev1.SchemeGroupVersion.WithResource("pods"), {Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}} {
		left, err := dyn.Resource(resource).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		if len(left.Items) > 0 {
			t.Errorf("%s are left: %s", resource.Resource, left.Items[0].GetName())
		}
	}
	// No scheduler serves the name: the check reports that, and leaves nothing.
	if status, text, _ := check(t, admin, "--smoke", "--scheduler", "nobody", "--timeout", "2s").outcome(t, "smoke"); status != "fail" || !strings.Contains(text, "scheduler nobody bound no pod in 2s") {
		t.Errorf("%s: %s", status, text)
	}
	if pods, err := stage.Client().CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) > 0 {
		t.Errorf("%v, %d pods are left", err, len(pods.Items))
	}
}

// checksBlind: a user who may see nothing gets that reported, with the rights that are missing.
func checksBlind(t *testing.T, stage *demo.Stage) {
	a := newAccount(t, stage, "blind")
	types := func(args ...string) (string, string, int) { return a.types(t, args...) }
	c := check(t, types)
	for _, id := range []string{"scheduler-alive", "pods-unserved", "operator-alive", "rbac-scheduler", "rbac-operator", "crd-podgroups", "devices", "clock-nodes"} {
		if status, text, _ := c.outcome(t, id); status != "unknown" || !strings.Contains(text, "could not check: you may not list ") {
			t.Errorf("%s: %s %s", id, status, text)
		}
	}
	if status, _, fix := c.outcome(t, "rights-submit"); status != "fail" || !strings.Contains(fix, "kind: Role\n") {
		t.Errorf("rights: %s\n%s", status, fix)
	}
	text, _, code := types("check", "--smoke")
	if code != 5 || !strings.Contains(text, "unknown  a gang of 2 pods is placed and runs: create PodGroup default/gangctl-smoke-") {
		t.Errorf("smoke: exit code %d", code)
	}
	_, _, fix := c.outcome(t, "rights-submit")
	grant(t, stage, fix)
	grant(t, stage, c.Grant)
	eventually(t, "with the grants everything is looked at", func(context.Context) bool {
		c := check(t, types)
		return c.Summary.Unknown == 0 && c.Summary.Fail == 0
	})
}

// checksBefore: all rights that are missing are reported at once; with what is printed, the installation succeeds.
func checksBefore(t *testing.T, stage *demo.Stage) {
	a := newAccount(t, stage, "installer")
	types := func(args ...string) (string, string, int) { return a.types(t, args...) }
	c := check(t, types, "--pre")
	status, text, fix := c.outcome(t, "rights-install")
	if status != "fail" {
		t.Fatalf("%s: %s", status, text)
	}
	for _, want := range []string{
		"patch deployments.apps named gang-scheduler in namespace gangctl-system", "create customresourcedefinitions.apiextensions.k8s.io", "escalate clusterroles.rbac.authorization.k8s.io named gangctl:gang-scheduler",
		"bind clusterroles.rbac.authorization.k8s.io named system:kube-scheduler", "patch priorityclasses.scheduling.k8s.io", "patch networkpolicies.networking.k8s.io",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it is not told that one may not %s", want)
		}
	}
	if strings.Contains(fix, "*") || strings.Contains(fix, "cluster-admin") {
		t.Errorf("the grant is too large:\n%s", fix)
	}
	_, stderr, code := types("install", "scheduler", "--wait=false", "--image", "mirror.example/gangctl:v1")
	if code != 1 || !strings.Contains(stderr, "the gang scheduler is not installed: ") || !strings.Contains(stderr, fix) {
		t.Fatalf("installed without rights: exit code %d\n%s", code, stderr)
	}
	grant(t, stage, fix)
	grant(t, stage, c.Grant)
	eventually(t, "with the grants nothing is missing", func(context.Context) bool {
		c := check(t, types, "--pre")
		return c.Summary.Fail == 0 && c.Summary.Unknown == 0
	})
	if _, stderr, code = types("install", "scheduler", "--wait=false", "--image", "mirror.example/gangctl:v1"); code != 0 {
		t.Errorf("with exactly the rights that were named it cannot be installed: %s", stderr)
	}
}

// namesOwners: formats of others are named with whom they belong to.
func namesOwners(t *testing.T, stage *demo.Stage, admin func(...string) (string, string, int)) {
	define(t, stage, "scheduling.volcano.sh", "v1beta1", map[string]any{"meta.helm.sh/release-name": "volcano", "meta.helm.sh/release-namespace": "volcano-system"})
	define(t, stage, "scheduling.incubator.k8s.io", "v1alpha1", map[string]any{"api-approved.kubernetes.io": "unapproved, for a test"})
	for _, args := range [][]string{nil, {"--pre"}} {
		eventually(t, "their formats are named", func(context.Context) bool {
			status, text, _ := check(t, admin, args...).outcome(t, "crd-foreign")
			return status == "ok" && strings.Contains(text, "podgroups.scheduling.volcano.sh: the format of Volcano, put there by Helm release volcano-system/volcano\n") &&
				strings.Contains(text, "podgroups.scheduling.incubator.k8s.io: the format of kube-batch, put there by e2e")
		})
	}
}

// define makes PodGroups of an API group served.
func define(t *testing.T, stage *demo.Stage, group, version string, annotations map[string]any) {
	t.Helper()
	dyn, err := dynamic.NewForConfig(stage.Config())
	must(t, err)
	open := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	_, err = dyn.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "podgroups." + group, "annotations": annotations},
		"spec": map[string]any{"group": group, "scope": "Namespaced", "names": map[string]any{"plural": "podgroups", "kind": "PodGroup"},
			"versions": []any{map[string]any{"name": version, "served": true, "storage": true, "schema": open}}},
	}}, metav1.CreateOptions{FieldManager: "e2e"})
	must(t, err)
}

// TestCheckOperatorRights: the Training Operator makes gangs and lacks the rule for it, as every published guide had it. The job
// stays without pods; check prints the rule; with it, to the letter, the job runs (F5).
func TestCheckOperatorRights(t *testing.T) {
	t.Parallel()
	// A cluster of its own: its operator makes gangs, and loses a right.
	cluster := sandboxtest.Start(t, sandboxtest.Options{Args: []string{"--nodes=2", "--gpus=8", "--run-for=0", "--operator-gang-scheduler=gang-scheduler"}})
	client, err := kubernetes.NewForConfig(cluster.Config)
	must(t, err)
	roles := client.RbacV1().ClusterRoles()
	role, err := roles.Get(t.Context(), "training-operator", metav1.GetOptions{})
	must(t, err)
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "podgroups") })
	_, err = roles.Update(t.Context(), role, metav1.UpdateOptions{})
	must(t, err)
	deployOperator(t, client)
	dyn, err := dynamic.NewForConfig(cluster.Config)
	must(t, err)
	jobs := dyn.Resource(schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}).Namespace("default")
	types := func(args ...string) (string, string, int) { return gangctlAt(t, cluster.Kubeconfig, args...) }
	if _, stderr, code := types("submit", "tf", "llama", "--image", "x", "--workers", "2", "--dialect", "none", "--scheduler", "gang-scheduler"); code != 0 {
		t.Fatal(stderr)
	}
	var fix string
	eventually(t, "the missing rule is named", func(context.Context) bool {
		c := check(t, types)
		status, text, rule := c.outcome(t, "rbac-operator")
		mode, _, _ := c.outcome(t, "operator-gang")
		fix = rule
		return status == "fail" && mode != "fail" && strings.Contains(text, "may not create, delete, get, list, update, watch podgroups.scheduling.x-k8s.io: it cannot create gangs")
	})
	if strings.Contains(fix, "*") || strings.Count(fix, "resources:") != 1 {
		t.Errorf("the fix is more than the missing rule:\n%s", fix)
	}
	members := func(context.Context) int {
		pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "training.kubeflow.org/job-name=llama", FieldSelector: "status.phase=Running"})
		must(t, err)
		return len(pods.Items)
	}
	if n := members(t.Context()); n > 0 {
		t.Fatalf("%d members run: the rule was not missing", n)
	}
	text, _, _ := types("check")
	if pasted(t, text) != fix {
		t.Errorf("text and JSON print different fixes:\n%s", pasted(t, text))
	}
	grantTo(t, client, fix)
	// The operator does not try again what it was refused: elsewhere it is restarted, by the hint; here it gets an event.
	eventually(t, "the operator has looked at the job again, with the rule", func(ctx context.Context) bool {
		if status, _, _ := check(t, types).outcome(t, "rbac-operator"); status != "ok" {
			return false
		}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"looked":%q}}}`, time.Now().String())
		_, err := jobs.Patch(ctx, "llama", apitypes.MergePatchType, patch, metav1.PatchOptions{})
		must(t, err)
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "training.kubeflow.org/job-name=llama"})
		return err == nil && len(pods.Items) == 2
	})
	eventually(t, "with the rule the check passes, and the job runs", func(ctx context.Context) bool {
		status, _, _ := check(t, types).outcome(t, "rbac-operator")
		return status == "ok" && members(ctx) == 2
	})
}

// deployOperator shows the sandbox's operator, which is a process, as what it is elsewhere: a Deployment with its flags.
func deployOperator(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	labels := map[string]string{"control-plane": "kubeflow-training-operator"}
	_, err := client.AppsV1().Deployments("kubeflow").Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "training-operator"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{ServiceAccountName: "training-operator", SchedulerName: "gang-scheduler", Containers: []corev1.Container{{Name: "training-operator",
				Image: "ghcr.io/kubeflow/training-v1/training-operator:v1-93c5489", Command: []string{"/manager"}, Args: []string{"--gang-scheduler-name=gang-scheduler"}}}}}}}, metav1.CreateOptions{})
	must(t, err)
}

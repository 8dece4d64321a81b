package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/gangctl/gangctl/internal/sandboxtest"
)

// TestInstallOperator installs the operator on a cluster that has none, and has one that another user installed make gangs.
func TestInstallOperator(t *testing.T) {
	t.Parallel()
	// A cluster of its own: it is without an operator until one is installed.
	cluster := sandboxtest.Start(t, sandboxtest.Options{Args: []string{"--nodes=2", "--run-for=0", "--operator=false"}})
	client, err := kubernetes.NewForConfig(cluster.Config)
	must(t, err)
	types := func(args ...string) (string, string, int) { return gangctlAt(t, cluster.Kubeconfig, args...) }
	t.Run("there already", func(t *testing.T) { changesOperator(t, client, types) })
	must(t, client.AppsV1().Deployments("kubeflow").Delete(t.Context(), "training-operator", metav1.DeleteOptions{}))
	t.Run("new", func(t *testing.T) { installsOperator(t, types) })
}

// installsOperator: everything is accepted, and the second time nothing changes. No kubelet runs its Deployment here; what it may do is
// held to what it uses by unit tests.
func installsOperator(t *testing.T, types func(...string) (string, string, int)) {
	args := []string{"install", "operator", "-n", "training", "--kinds", "all", "--wait=false"}
	if _, stderr, code := types(args...); code != 1 || !strings.Contains(stderr, "--force-conflicts") {
		t.Errorf("the role of the sandbox is taken over without a word: exit code %d, %s", code, stderr)
	}
	for _, action := range []string{"configured", "unchanged"} {
		out, stderr, code := types(append(args, "--force-conflicts")...)
		if code != 0 || action == "unchanged" && strings.Count(out, " unchanged\n") != 13 || !strings.Contains(out, "clusterrole.rbac.authorization.k8s.io/training-operator "+action) || !strings.Contains(out, "deployment.apps/training-operator ") {
			t.Fatalf("exit code %d, %s", code, stderr)
		}
		if !strings.Contains(stderr, "note: CustomResourceDefinition tfjobs.kubeflow.org is there already, made by gangctl-sandbox: it is used as it is") {
			t.Errorf("whose definition is used is not told: %s", stderr)
		}
	}
	if status, text, _ := check(t, types).outcome(t, "rbac-operator"); status != "ok" || !strings.Contains(text, "training/training-operator") {
		t.Errorf("%s: %s", status, text)
	}
	if _, stderr, code := types("install", "operator"); code != 1 || !strings.Contains(stderr, "name that one: -n training") {
		t.Errorf("a second one can be installed: %s", stderr)
	}
}

// changesOperator: it is left alone unless requested; what is shown is what is done, and it is done on consent only.
func changesOperator(t *testing.T, client kubernetes.Interface, types func(...string) (string, string, int)) {
	ctx := t.Context()
	deployOperator(t, client)
	deployments, roles := client.AppsV1().Deployments("kubeflow"), client.RbacV1().ClusterRoles()
	must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error { // its controller writes, too
		d, err := deployments.Get(ctx, "training-operator", metav1.GetOptions{})
		if err != nil {
			return err
		}
		d.Spec.Template.Spec.Containers[0].Args = []string{"--zap-log-level=2"}
		_, err = deployments.Update(ctx, d, metav1.UpdateOptions{})
		return err
	}))
	role, err := roles.Get(ctx, "training-operator", metav1.GetOptions{})
	must(t, err)
	all := len(role.Rules)
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "podgroups") })
	if len(role.Rules) != all-1 {
		t.Fatalf("%d of %d rules are of groups, want 1", all-len(role.Rules), all)
	}
	_, err = roles.Update(ctx, role, metav1.UpdateOptions{})
	must(t, err)

	if out, stderr, code := types("install", "operator"); code != 0 || out != "" || !strings.Contains(stderr, "v1.9.4, and leaves gangs to others\nit is left alone: gangctl submit makes the gang") {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	if _, stderr, code := types("install", "operator", "-n", "ml", "--kinds", "all"); code != 2 || !strings.Contains(stderr, "--namespace, --kinds has no effect: Deployment kubeflow/training-operator") {
		t.Errorf("flags of a new operator: exit code %d, %s", code, stderr)
	}
	diff, _, code := types("install", "operator", "--gang-scheduler", "gang-scheduler", "--diff")
	for _, want := range []string{"+        - --gang-scheduler-name=gang-scheduler\n", "         - --zap-log-level=2\n", "+  - podgroups\n", "+  name: gangctl:training-operator:gangs\n"} {
		if code != 0 || !strings.Contains(diff, want) {
			t.Errorf("exit code %d, the diff lacks %q", code, want)
		}
	}
	if _, stderr, code := types("install", "operator", "--gang-scheduler", "gang-scheduler"); code != 1 || !strings.Contains(stderr, "cannot prompt: stdin and stderr must be terminals") || !strings.Contains(stderr, "--yes") {
		t.Errorf("without consent: exit code %d, %s", code, stderr)
	}
	if d, err := deployments.Get(ctx, "training-operator", metav1.GetOptions{}); err != nil || len(d.Spec.Template.Spec.Containers[0].Args) != 1 {
		t.Fatalf("%v, it was changed without consent", err)
	}
	last := ""
	eventually(t, "its controllers have nothing more to write", func(ctx context.Context) bool { // what is written between look and change refuses it
		before := last
		d, err := deployments.Get(ctx, "training-operator", metav1.GetOptions{})
		if err != nil {
			return false
		}
		last = d.ResourceVersion
		time.Sleep(time.Second)
		return last == before
	})
	if _, stderr, code := types("install", "operator", "--gang-scheduler", "gang-scheduler", "--yes", "--timeout", "60s"); code != 0 {
		t.Fatal(stderr)
	}
	eventually(t, "the operator makes gangs, and may", func(context.Context) bool {
		c := check(t, types)
		rights, _, _ := c.outcome(t, "rbac-operator")
		mode, text, _ := c.outcome(t, "operator-gang")
		return rights == "ok" && mode == "ok" && strings.Contains(text, "for scheduler gang-scheduler")
	})
	if role, err = roles.Get(ctx, "training-operator", metav1.GetOptions{}); err != nil || len(role.Rules) != all-1 {
		t.Errorf("%v: its own role was changed, which its upgrades overwrite", err)
	}
	if _, stderr, code := types("install", "operator", "--gang-scheduler", "gang-scheduler", "--yes"); code != 0 || !strings.Contains(stderr, "nothing has to be changed") {
		t.Errorf("again: exit code %d, %s", code, stderr)
	}
	if _, stderr, code := types("install", "operator", "--gang-scheduler", "volcano", "--yes"); code != 1 || !strings.Contains(stderr, "scheduling.volcano.sh, which the cluster does not serve") {
		t.Errorf("groups that are not served: exit code %d, %s", code, stderr)
	}
}

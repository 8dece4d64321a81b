package e2e

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/sandbox/demo"
	"github.com/gangctl/gangctl/sandbox/members"
)

var tfjobs = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}

// gangctl runs a command and returns its streams and exit code.
func gangctl(t *testing.T, stage *demo.Stage, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return gangctlAt(t, stage.Kubeconfig(), args...)
}

// gangctlAt runs the program against the cluster of a kubeconfig.
func gangctlAt(t *testing.T, kubeconfig string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), programs.gangctl, append([]string{"--kubeconfig", kubeconfig}, args...)...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatal(err)
		}
		code = exit.ExitCode()
	}
	t.Logf("gangctl %s\n%s%s", strings.Join(args, " "), out.String(), errOut.String())
	return out.String(), errOut.String(), code
}

func TestSubmit(t *testing.T) {
	t.Parallel()
	stage := newStage(t, gangScheduler("scheduler-plugins"))
	must(t, stage.AddNodes(t.Context(), 1, 8))
	client, err := dynamic.NewForConfig(stage.Config())
	must(t, err)
	t.Run("the command arrives byte for byte", func(t *testing.T) { commandArrives(t, stage) })
	t.Run("the gang belongs to the job", func(t *testing.T) { gangBelongsToJob(t, stage, client) })
	t.Run("a gang that cannot be created leaves no job", func(t *testing.T) { rollsBack(t, stage, client) })
}

func commandArrives(t *testing.T, stage *demo.Stage) {
	args := []string{"python", "train.py", "--q", `a"b: c # d`, "", "$HOME `x` \\ 'y'", "zeile\n2", "ü"}
	_, _, code := gangctl(t, stage, append([]string{"submit", "tf", "argv", "--workers", "4", "--gpus", "2", "--image", "x", "--"}, args...)...)
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	_, err := stage.WaitFor(t.Context(), func(s members.List) bool { return s.Job("argv").Count(members.Running) == 4 })
	must(t, err)
	pods, err := stage.Client().CoreV1().Pods(demo.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "training.kubeflow.org/job-name=argv"})
	must(t, err)
	for _, pod := range pods.Items {
		if got := pod.Spec.Containers[0].Command; !slices.Equal(got, args) {
			t.Errorf("%s runs %q, want %q", pod.Name, got, args)
		}
		gpus := pod.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
		if gpus.Value() != 2 || pod.Spec.SchedulerName != "gang-scheduler" {
			t.Errorf("%s asks %s for %s GPUs, want gang-scheduler and 2", pod.Name, pod.Spec.SchedulerName, gpus.String())
		}
	}
	must(t, stage.Delete(t.Context(), "argv"))
}

func gangBelongsToJob(t *testing.T, stage *demo.Stage, client dynamic.Interface) {
	ctx := t.Context()
	must(t, stage.Submit(ctx, "owned", "--workers", "3", "--gpus", "1", "--wait"))
	job, err := client.Resource(tfjobs).Namespace(demo.Namespace).Get(ctx, "owned", metav1.GetOptions{})
	must(t, err)
	groups := client.Resource(schedulerplugins.GVR()).Namespace(demo.Namespace)
	group := waitForPhase(t, groups, "owned", "Running")
	if owners := group.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != job.GetUID() {
		t.Errorf("owners of the PodGroup: %v, want the job", owners)
	}
	for path, want := range map[string]int64{"spec.minMember": 3, "status.running": 3, "status.failed": 0} {
		if got, _, _ := unstructured.NestedInt64(group.Object, strings.Split(path, ".")...); got != want {
			t.Errorf("%s = %d, want %d", path, got, want)
		}
	}
	if got, _, _ := unstructured.NestedInt64(job.Object, "spec", "runPolicy", "schedulingPolicy", "minAvailable"); got != 3 {
		t.Errorf("the job's minAvailable = %d, want 3, as the group's", got)
	}
	must(t, stage.Delete(ctx, "owned"))
	eventually(t, "the PodGroup goes with its job", func(ctx context.Context) bool {
		_, err := groups.Get(ctx, "owned", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// rollsBack submits as a user who may create jobs but no PodGroups.
func rollsBack(t *testing.T, stage *demo.Stage, client dynamic.Interface) {
	ctx := t.Context()
	rbac := stage.Client().RbacV1()
	_, err := rbac.Roles(demo.Namespace).Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "jobs-only"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"kubeflow.org"}, Resources: []string{"tfjobs"}, Verbs: []string{"create", "delete", "get"}}},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = rbac.RoleBindings(demo.Namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "jobs-only"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "jobs-only"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "bob"}},
	}, metav1.CreateOptions{})
	must(t, err)
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "bob",
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: demo.Namespace, Verb: "create", Group: "kubeflow.org", Resource: "tfjobs"}}}
	eventually(t, "bob may create jobs", func(ctx context.Context) bool {
		answer, err := stage.Client().AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed
	})

	stdout, stderr, code := gangctl(t, stage, "submit", "tf", "refused", "--as", "bob", "--image", "x", "--workers", "2", "--", "true")
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	for _, want := range []string{"error: ", "PodGroup " + demo.Namespace + "/refused", `User "bob" cannot create resource "podgroups"`, "hint: "} {
		if !strings.Contains(stderr, want) {
			t.Errorf("stderr lacks %q", want)
		}
	}
	if strings.Contains(stdout, "created") {
		t.Errorf("stdout says that something was created: %q", stdout)
	}
	eventually(t, "neither job nor group is left", func(ctx context.Context) bool {
		for _, resource := range []schema.GroupVersionResource{tfjobs, schedulerplugins.GVR()} {
			if _, err := client.Resource(resource).Namespace(demo.Namespace).Get(ctx, "refused", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return false
			}
		}
		pods, err := stage.Client().CoreV1().Pods(demo.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "training.kubeflow.org/job-name=refused"})
		return err == nil && len(pods.Items) == 0
	})
}

func waitForPhase(t *testing.T, groups dynamic.ResourceInterface, name, phase string) *unstructured.Unstructured {
	t.Helper()
	var group *unstructured.Unstructured
	eventually(t, "PodGroup "+name+" is "+phase, func(ctx context.Context) bool {
		var err error
		group, err = groups.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		got, _, _ := unstructured.NestedString(group.Object, "status", "phase")
		return got == phase
	})
	return group
}

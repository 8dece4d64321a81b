package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/internal/prerequisite"
	"github.com/gangctl/gangctl/internal/sandboxtest"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/sandbox/crd"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
)

// installTimeout is how long an install may wait for the scheduler.
const installTimeout = "--timeout=80s"

var (
	groupObjects      = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	definitionObjects = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// site is a cluster on which nothing of gangctl is installed, and whose pods with
// the image of gangctl run for real.
type site struct {
	*sandboxtest.Cluster
	client  kubernetes.Interface
	dynamic dynamic.Interface
	// kubeconfig is what commands are given.
	kubeconfig string
}

func newSite(t *testing.T) *site {
	t.Helper()
	// A cluster of its own: the scheduler is what is installed, and runs as a pod.
	s := &site{Cluster: sandboxtest.Start(t, sandboxtest.Options{Args: []string{
		"--scheduler=default", "--nodes=2", "--gpus=2", "--run-for=0", "--run-image=gangctl=" + programs.gangctl,
	}})}
	s.kubeconfig = s.Kubeconfig
	var err error
	s.client, err = kubernetes.NewForConfig(s.Config)
	must(t, err)
	s.dynamic, err = dynamic.NewForConfig(s.Config)
	must(t, err)
	return s
}

// types types a gangctl command against the site.
func (s *site) types(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return typed(t, append(os.Environ(), "KUBECONFIG="+s.kubeconfig), programs.gangctl, args...)
}

// typed runs a program and shows its output.
func typed(t *testing.T, env []string, program string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("$ %s %s\n%s%s", filepath.Base(program), strings.Join(args, " "), out.String(), errOut.String())
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// labelled are the objects that an installation of the scheduler has left.
func (s *site) labelled(t *testing.T) []string {
	t.Helper()
	found, err := apply.Find(t.Context(), s.dynamic, install.Selector(install.SchedulerInstance), append(apply.ShippedKinds(), apply.DerivedKinds()...))
	must(t, err)
	var names []string
	for _, o := range found {
		names = append(names, apply.Describe(o))
	}
	return names
}

// TestInstall is the life of an installation: its Deployment runs as a process
// with nothing but its own service account.
func TestInstall(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	exportIsAccepted(t, s)

	out, stderr, code := s.types(t, "install", "scheduler", "--image", "gangctl:test", installTimeout)
	if code != 0 || strings.Count(out, " created\n") != strings.Count(out, "\n") || !strings.Contains(stderr, "is ready in namespace gangctl-system") {
		t.Fatalf("exit code %d", code)
	}
	if out, _, code := s.types(t, "check", "--smoke"); code != 0 || !strings.Contains(out, "a gang of 2 pods is placed and runs") {
		t.Errorf("exit code %d: what was installed does not check", code)
	}
	placeGang(t, s, "first")
	usersMayWork(t, s)

	out, stderr, code = s.types(t, "install", "scheduler", "--image", "gangctl:test", installTimeout)
	if code != 0 || strings.Count(out, " unchanged\n") != strings.Count(out, "\n") || !strings.Contains(stderr, "0 created, 0 configured,") {
		t.Errorf("exit code %d: the second install changes something", code)
	}
	upgradePrunes(t, s)
	uninstallRefuses(t, s)
	noRightIsMissing(t, s)
	_, _, code = s.types(t, "delete", "first", "second")
	if code != 0 {
		t.Fatalf("delete: exit code %d", code)
	}
	uninstalls(t, s)
	othersAreNamed(t, s)
}

// exportIsAccepted: the printed manifests need no cluster, and a server takes them.
func exportIsAccepted(t *testing.T, s *site) {
	out, stderr, code := typed(t, []string{"HOME=" + t.TempDir(), "KUBECONFIG=/nowhere"}, programs.gangctl,
		"install", "scheduler", "--export", "--image", "gangctl:test", "--ha", "--namespace", "elsewhere")
	if code != 0 || stderr != "" {
		t.Fatalf("export: exit code %d", code)
	}
	file := filepath.Join(t.TempDir(), "export.yaml")
	must(t, os.WriteFile(file, []byte(out), 0o600))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}
	_, err := s.client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	must(t, err)
	t.Run("kubectl applies it", func(t *testing.T) {
		kubectl := prerequisite.Program(t, "kubectl")
		_, _, code := typed(t, append(os.Environ(), "KUBECONFIG="+s.kubeconfig), kubectl, "apply", "--server-side", "--dry-run=server", "-f", file)
		if code != 0 {
			t.Errorf("kubectl apply: exit code %d", code)
		}
	})
}

// placeGang runs two members as a gang, which the installed scheduler has to place.
func placeGang(t *testing.T, s *site, name string) {
	t.Helper()
	_, _, code := s.types(t, "submit", "tf", name, "--image", "x", "--workers", "2", "--cpu", "100m", "--wait=scheduled", "--timeout=60s", "--", "train")
	if code != 0 {
		t.Fatalf("gang %s is not placed: exit code %d", name, code)
	}
}

// upgradePrunes applies the manifests of an earlier version, with objects that
// are no longer shipped, and upgrades from there.
func upgradePrunes(t *testing.T, s *site) {
	exported, _, _ := s.types(t, "install", "scheduler", "--export", "--image", "gangctl:test")
	objects, err := install.Decode([]byte(exported))
	must(t, err)
	current := objects[0].GetLabels()[install.LabelVersion]
	earlier := install.LabelVersion + ": v0.0.1"
	before := strings.NewReplacer(install.LabelVersion+": "+current, earlier, install.LabelVersion+`: "`+current+`"`, earlier) // a commit of digits alone is quoted
	objects, err = install.Decode([]byte(before.Replace(exported)))
	must(t, err)
	for _, gone := range []string{`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gang-scheduler-old", "namespace": "gangctl-system"}}`,
		`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "gang-scheduler-old"}}`} {
		old, err := install.Decode([]byte(gone))
		must(t, err)
		install.Label(old[0], install.SchedulerInstance, "v0.0.1")
		objects = append(objects, old[0])
	}
	must(t, (&apply.Applier{Client: s.dynamic}).Apply(t.Context(), objects))

	out, _, code := s.types(t, "upgrade", "--diff", "--image", "gangctl:test")
	if code != 0 || !strings.Contains(out, "-        app.kubernetes.io/version: v0.0.1\n") || !strings.Contains(out, "-  name: gang-scheduler-old\n") || strings.Contains(out, "serviceaccount/") {
		t.Errorf("exit code %d: what changes does not show, or what does not, does", code)
	}
	if _, stderr, code := s.types(t, "upgrade"); code != 1 || !strings.Contains(stderr, "hint: name it: gangctl upgrade --image IMAGE") {
		t.Errorf("exit code %d: an image of another version is kept", code)
	}
	out, stderr, code := s.types(t, "upgrade", "--image", "gangctl:test", installTimeout)
	if code != 0 || !strings.Contains(stderr, "2 pruned") || !strings.Contains(out, "configmap/gang-scheduler-old pruned\n") ||
		!strings.Contains(out, "clusterrole.rbac.authorization.k8s.io/gang-scheduler-old pruned\n") || !strings.Contains(out, "deployment.apps/gang-scheduler configured\n") {
		t.Errorf("exit code %d", code)
	}
	placeGang(t, s, "second")
}

func uninstallRefuses(t *testing.T, s *site) {
	_, stderr, code := s.types(t, "uninstall")
	if code != 1 || !strings.Contains(stderr, "error: 4 pods use the scheduler: default/first-worker-0 (Running, schedulerName gang-scheduler), ") {
		t.Errorf("exit code %d: what runs is not named", code)
	}
	if len(s.labelled(t)) < 10 {
		t.Errorf("a refused uninstall took things away: %q is left", s.labelled(t))
	}
}

// noRightIsMissing reads what the process logged: whatever it was refused shows there.
func noRightIsMissing(t *testing.T, s *site) {
	pods, err := s.client.CoreV1().Pods(install.DefaultNamespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for i := range pods.Items {
		log, err := s.client.CoreV1().Pods(install.DefaultNamespace).GetLogs(pods.Items[i].Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		must(t, err)
		if len(log) == 0 {
			t.Errorf("pod %s has logged nothing", pods.Items[i].Name)
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, "forbidden") {
				t.Errorf("pod %s: %s", pods.Items[i].Name, line)
			}
		}
	}
}

func uninstalls(t *testing.T, s *site) {
	group := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"name": "precious"}, "spec": map[string]any{"minMember": int64(1)},
	}}
	_, err := s.dynamic.Resource(groupObjects).Namespace("default").Create(t.Context(), group, metav1.CreateOptions{})
	must(t, err)

	_, _, code := s.types(t, "uninstall")
	if left := s.labelled(t); code != 0 || len(left) != 1 || left[0] != "CustomResourceDefinition podgroups.scheduling.x-k8s.io" {
		t.Fatalf("exit code %d; left: %q", code, left)
	}
	_, err = s.dynamic.Resource(groupObjects).Namespace("default").Get(t.Context(), "precious", metav1.GetOptions{})
	must(t, err)

	_, stderr, code := s.types(t, "uninstall", "--delete-crds")
	// Those of the jobs before may be there still, or be gone.
	asked := regexp.MustCompile(`deletes \d+ PodGroups? in all namespaces; cannot prompt: stdin and stderr must be terminals`)
	if code != 1 || !asked.MatchString(stderr) || !strings.Contains(stderr, "--confirm podgroups.scheduling.x-k8s.io") {
		t.Errorf("exit code %d: PodGroups are deleted without asking", code)
	}
	_, _, code = s.types(t, "uninstall", "--delete-crds", "--confirm", "podgroups.scheduling.x-k8s.io")
	if left := s.labelled(t); code != 0 || len(left) != 0 {
		t.Errorf("exit code %d; left: %q", code, left)
	}
	_, err = s.dynamic.Resource(definitionObjects).Get(t.Context(), "podgroups.scheduling.x-k8s.io", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the definition stays: %v", err)
	}
}

// usersMayWork: the roles that Kubernetes gives out in namespaces reach gangs and jobs.
func usersMayWork(t *testing.T, s *site) {
	for _, tt := range []struct {
		role, verb string
		allowed    bool
	}{{"view", "list", true}, {"view", "create", false}, {"edit", "create", true}, {"admin", "delete", true}, {"admin", "escalate", false}} {
		user := "user-" + tt.role + "-" + tt.verb
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: tt.role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
		_, err := s.client.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{})
		must(t, err)
		may := func(ctx context.Context, group, resource string) bool {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "default", Verb: tt.verb, Group: group, Resource: resource}}}
			answer, err := s.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			must(t, err)
			return answer.Status.Allowed
		}
		eventually(t, user+" is known", func(ctx context.Context) bool { return may(ctx, "", "configmaps") || !tt.allowed })
		for _, kind := range [][2]string{{"scheduling.x-k8s.io", "podgroups"}, {"kubeflow.org", "tfjobs"}} {
			eventually(t, fmt.Sprintf("%s of %s: %v", tt.verb, kind[1], tt.allowed), func(ctx context.Context) bool { return may(ctx, kind[0], kind[1]) == tt.allowed })
		}
	}
}

// othersAreNamed: what others made is used as it is, and its owner is named.
func othersAreNamed(t *testing.T, s *site) {
	theirs, err := install.Decode(install.PodGroupCRD())
	must(t, err)
	theirs[0].SetLabels(nil)
	theirs[0].SetAnnotations(map[string]string{"meta.helm.sh/release-name": "coscheduling", "meta.helm.sh/release-namespace": "kube-system",
		"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"})
	_, err = s.dynamic.Resource(definitionObjects).Create(t.Context(), theirs[0], metav1.CreateOptions{})
	must(t, err)
	applier := &sandboxmanifest.Applier{Client: s.dynamic}
	must(t, applier.Apply(t.Context(), crd.VolcanoPodGroups()))
	must(t, applier.WaitEstablished(t.Context(), crd.VolcanoPodGroups()))
	out, stderr, code := s.types(t, "install", "scheduler", "--dry-run=server", "--image", "gangctl:test", "--namespace", "elsewhere")
	for _, want := range []string{
		"note: Namespace elsewhere is there already, made by ", "made by Helm release kube-system/coscheduling: it is used as it is\n",
		"note: the cluster has the PodGroups of Volcano (scheduling.volcano.sh): ",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("not said: %s", want)
		}
	}
	if code != 0 || !strings.Contains(out, "deployment.apps/gang-scheduler created (server dry run)\n") || strings.Contains(out, "customresourcedefinition") || len(s.labelled(t)) != 0 {
		t.Errorf("exit code %d; left: %q", code, s.labelled(t))
	}
}

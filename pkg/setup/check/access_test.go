package check

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

func plural(gvk schema.GroupVersionKind) string { return strings.ToLower(gvk.Kind) + "s" }

func TestSubmitRights(t *testing.T) {
	test(t, Cluster(), "rights-submit", []expected{
		{name: "all", status: OK, wantText: []string{"8 rights in namespace team"}},
		{name: "two are missing: both are reported, and granted at once", change: func(s *fixture) {
			s.f.Reviews[0].Allowed, s.f.Reviews[1].Allowed = false, false
			s.f.Reviews[1].Reason = "by policy"
		}, status: Fail, wantText: []string{
			"you may not create tfjobs.kubeflow.org in namespace team: you cannot submit jobs", "you may not create podgroups.scheduling.x-k8s.io in namespace team: you cannot declare gangs (by policy)",
			"kind: Role\n", "name: ann\n", "- podgroups\n", "- tfjobs\n"}, never: []string{"ClusterRole", "*", "- pods"}},
		{name: "another kind: whoever does not use it needs no right", change: func(s *fixture) {
			s.serves("pytorchjobs.kubeflow.org", "v1", nil, nil)
			accesses := KindAccess("team", s.S)
			s.f.Reviews = append(s.f.Reviews, Review{Access: accesses[0]})
		}, status: Warn, wantText: []string{"8 rights in namespace team", "you may not create pytorchjobs.kubeflow.org in namespace team: you cannot submit PyTorchJobs", "- pytorchjobs\n"}, never: []string{"mpijobs", "- tfjobs", "create jobs.batch"}},
		{name: "no right to Jobs, which every cluster serves", change: func(s *fixture) {
			for i := range s.f.Reviews {
				s.f.Reviews[i].Allowed = s.f.Reviews[i].Resource != "jobs" && s.f.Reviews[i].Resource != "services"
			}
		}, status: Warn, wantText: []string{"you may not create jobs.batch in namespace team: you cannot submit Jobs", "you may not create services in namespace team"}},
		{name: "another kind could not be reviewed", change: func(s *fixture) { s.serves("mpijobs.kubeflow.org", "v2beta1", nil, nil) }, status: Unknown},
		{name: "it could not be reviewed", change: func(s *fixture) { s.f.Reviews[0] = Review{Access: s.f.Reviews[0].Access, Failed: "no answer"} }, status: Unknown, wantText: []string{"could not query your rights: no answer"}},
		{name: "there is no such namespace", change: func(s *fixture) { s.Cluster.Namespace("other") }, status: Fail, wantText: []string{"there is no namespace team", "kubectl create namespace team"}},
		{name: "it was not queried", change: func(s *fixture) { s.f.Reviews = nil }, status: Unknown},
	})
}

// Whatever is written must be requested, and the two rights that RBAC wants of those who grant rights.
func TestInstallAccess(t *testing.T) {
	s := healthy(t)
	accesses := InstallAccess(s.f.Shipped, plural)
	has := func(verb, resource, namespace, name string) bool {
		for _, a := range accesses {
			if a.Verb == verb && a.Resource == resource && a.Namespace == namespace && a.Name == name {
				return true
			}
		}
		return false
	}
	for _, o := range s.f.Shipped {
		resource := plural(o.GroupVersionKind())
		for _, verb := range []string{"get", "patch"} {
			if !has(verb, resource, o.GetNamespace(), o.GetName()) {
				t.Errorf("no review of whether you may %s %s %s", verb, resource, o.GetName())
			}
		}
		if !has("create", resource, o.GetNamespace(), "") {
			t.Errorf("no review of whether you may create %s", resource)
		}
	}
	for _, want := range [][4]string{
		{"escalate", "clusterroles", "", "gangctl:gang-scheduler"}, {"bind", "clusterroles", "", "system:kube-scheduler"}, {"bind", "clusterroles", "", "gangctl:gang-scheduler"},
		{"escalate", "roles", install.DefaultNamespace, "gangctl:gang-scheduler:lease"}, {"bind", "roles", install.DefaultNamespace, "gangctl:gang-scheduler:lease"},
		{"bind", "roles", "kube-system", "extension-apiserver-authentication-reader"},
	} {
		if !has(want[0], want[1], want[2], want[3]) {
			t.Errorf("no review of whether you may %v", want)
		}
	}
	seen := map[Access]bool{}
	for _, a := range accesses {
		if seen[a] {
			t.Errorf("reviewed twice: %+v", a)
		}
		seen[a] = true
	}
}

func TestInstallRights(t *testing.T) {
	review := func(allowed bool) func(*fixture) {
		return func(s *fixture) {
			s.f.Reviews = nil
			for _, a := range InstallAccess(s.f.Shipped, plural) {
				s.f.Reviews = append(s.f.Reviews, Review{Access: a, Allowed: allowed})
			}
		}
	}
	test(t, Before(), "rights-install", []expected{
		{name: "an administrator", change: review(true), status: OK},
		{name: "no user: all is reported at once", change: review(false), status: Fail, wantText: []string{
			"you may not patch deployments.apps named gang-scheduler in namespace gangctl-system", "you may not create customresourcedefinitions.apiextensions.k8s.io",
			"you may not escalate clusterroles.rbac.authorization.k8s.io named gangctl:gang-scheduler: the API server lets no user grant rights that they do not hold",
			"kind: ClusterRole\n", "kind: Role\n", "namespace: kube-system\n", "namespace: gangctl-system\n", "- escalate\n", "- bind\n", "name: ann\n"}, never: []string{"'*'"}},
	})
	const namespace = "kind: Namespace\nmetadata:\n"
	test(t, Before(), "rights-install", []expected{
		{name: "the namespace is not there", change: review(false), status: Fail, wantText: []string{namespace + "  labels:\n", "pod-security.kubernetes.io/enforce: restricted\n"}},
		{name: "it is", change: func(s *fixture) {
			review(false)(s)
			s.S.Namespaces = append(s.S.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: install.DefaultNamespace}})
		}, status: Fail, never: []string{"kind: Namespace"}},
		{name: "it may be there, and another's", change: func(s *fixture) {
			review(false)(s)
			s.f.Unlisted["namespaces"] = "forbidden"
		}, status: Fail, wantText: []string{namespace + "  name: gangctl-system\n---\n"}, never: []string{"pod-security"}},
	})
}

func TestBefore(t *testing.T) {
	fresh := func(s *fixture) { s.remove("gang-scheduler") }
	test(t, Before(), "install-name", []expected{
		{name: "nobody", change: fresh, status: OK, wantText: []string{"no scheduler answers to gang-scheduler"}},
		{name: "installed before", status: OK},
		{name: "installed elsewhere", change: func(s *fixture) {
			fresh(s)
			s.Deployment("elsewhere", "gang-scheduler", "x/gangctl:v1")
			for _, b := range s.f.Policy.ClusterRoleBindings {
				for i := range b.Subjects {
					b.Subjects[i].Namespace = "elsewhere"
				}
			}
		}, status: Fail, wantText: []string{"runs in namespace elsewhere already"}},
		{name: "one that a tenant made", change: func(s *fixture) {
			fresh(s)
			s.Deployment("team-a", "gang-scheduler", "x/gangctl:v1")
		}, status: Warn, wantText: []string{"Deployment team-a/gang-scheduler looks like the gang scheduler"}},
		{name: "a tenant's that only has the labels of one", change: func(s *fixture) {
			fresh(s)
			s.Deployment("team-a", "my-scheduler", "x/kube-scheduler:v1", "--scheduler-name=gang-scheduler")
		}, status: Warn, wantText: []string{"Deployment team-a/my-scheduler answers to schedulerName gang-scheduler, and no account of its namespace may bind the pods"}},
		{name: "one that sees all pods", change: func(s *fixture) {
			fresh(s)
			s.Deployment("other", "my-scheduler", "x/kube-scheduler:v1", "--scheduler-name=gang-scheduler")
			s.binds("system:kube-scheduler", "other", "default")
		}, status: Fail, wantText: []string{"two would bind the same pods"}},
		{name: "whose rights are not known", change: func(s *fixture) {
			fresh(s)
			s.Deployment("team-a", "my-scheduler", "x/kube-scheduler:v1", "--scheduler-name=gang-scheduler")
			s.f.Unlisted[clusterBinding] = "forbidden"
		}, status: Fail, wantText: []string{"two would bind the same pods"}},
		{name: "one that is scaled to 0, as the guides of migration have it", change: func(s *fixture) {
			fresh(s)
			s.Deployment("other", "my-scheduler", "x/kube-scheduler:v1", "--scheduler-name=gang-scheduler")
			s.binds("system:kube-scheduler", "other", "default")
			s.stop("my-scheduler")
		}, status: OK, wantText: []string{"no scheduler answers to gang-scheduler"}},
		{name: "somebody else", change: func(s *fixture) {
			fresh(s)
			s.Deployment("kube-system", "my-scheduler", "x/kube-scheduler:v1", "--scheduler-name=gang-scheduler")
		}, status: Fail, wantText: []string{"Deployment kube-system/my-scheduler answers to schedulerName gang-scheduler"}},
	})
	namespace := func(change func(*corev1.Namespace)) func(*fixture) {
		return func(s *fixture) { change(s.Namespace(install.DefaultNamespace)) }
	}
	test(t, Before(), "install-namespace", []expected{
		{name: "not there", status: OK, wantText: []string{"is made"}},
		{name: "there", change: namespace(func(*corev1.Namespace) {}), status: OK, wantText: []string{"exists"}},
		{name: "restricted", change: namespace(func(n *corev1.Namespace) {
			n.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
		}), status: OK, wantText: []string{"level is restricted"}},
		{name: "going", change: namespace(func(n *corev1.Namespace) { n.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time} }), status: Fail, wantText: []string{"is being deleted"}},
	})
	test(t, Before(), "install-objects", []expected{
		{name: "none", change: func(s *fixture) { fresh(s); s.f.Tried = true }, status: OK, wantText: []string{"is in conflict with one that is there"}},
		{name: "another user's", change: func(s *fixture) {
			s.f.Tried = true
			s.f.Obstacles = append(s.f.Obstacles, failure.Errorf("ConfigMap gangctl-system/gang-scheduler is there already, made by kubectl-create").WithHint("kubectl delete it"))
		}, status: Fail, wantText: []string{"is there already, made by kubectl-create", "kubectl delete it"}},
	})
	test(t, Before(), "operator-alive", []expected{
		{name: "there", status: OK},
		{name: "a tenant's blocks no user", change: func(s *fixture) { s.Deployment("team-a", "training-operator", v194) }, status: Warn, wantText: []string{"Deployment team-a/training-operator looks like"}},
		{name: "down", change: func(s *fixture) { s.deployment("training-operator").Status.ReadyReplicas = 0 }, status: Fail},
		{name: "outside", change: func(s *fixture) { s.remove("training-operator") }, status: OK, wantText: []string{"does not run as a Deployment"}},
		{name: "none: other pods need none", change: func(s *fixture) {
			s.remove("training-operator")
			s.S.Server.Resources = []string{}
		}, status: Warn, wantText: []string{"gangctl install operator"}},
	})
}

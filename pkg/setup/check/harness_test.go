package check

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
)

const v194 = "ghcr.io/kubeflow/training-v1/training-operator:v1-93c5489"

// fixture is a cluster under construction, and who looks at it. It begins healthy: every check is ok.
type fixture struct {
	*clustertest.Cluster
	f *Facts
}

func healthy(t *testing.T) *fixture {
	t.Helper()
	shipped, err := install.Scheduler{Version: "v1.2.3", Namespace: install.DefaultNamespace, Image: "x/gangctl:v1.2.3", Replicas: 1, TakeBack: true}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	s := &fixture{Cluster: &clustertest.Cluster{S: &snapshot.Snapshot{At: clustertest.Now}}, f: &Facts{
		Version: version.Info{Version: "v1.2.3", Kubernetes: "v0.37.1"}, Namespace: "team", User: "ann", Shipped: shipped,
		QueriedAt: clustertest.Now, AnsweredAt: clustertest.Now, ServerTime: clustertest.Now, Unlisted: map[string]string{}, Denied: map[string]bool{},
	}}
	s.S.Server = snapshot.Server{Version: "v1.37.1", Resources: []string{"podgroups.scheduling.x-k8s.io/v1alpha1", "tfjobs.kubeflow.org/v1"}}
	d := s.Deployment(install.DefaultNamespace, install.SchedulerInstance, "x/gangctl:v1.2.3")
	install.Label(d, install.SchedulerInstance, "v1.2.3")
	d.Spec.Template.Spec.ServiceAccountName = install.SchedulerInstance
	s.Lease(install.SchedulerInstance, 2*time.Second)
	op := s.Deployment("kubeflow", "training-operator", v194)
	op.Spec.Template.Spec.ServiceAccountName = "training-operator"
	s.Nodes(2, 8)
	for _, n := range s.S.Nodes {
		n.Status.NodeInfo.KubeletVersion = "v1.36.2"
	}
	s.defines("podgroups.scheduling.x-k8s.io", map[string]string{install.LabelPartOf: install.PartOf}, nil)
	s.defines("tfjobs.kubeflow.org", nil, nil)
	for _, access := range append(SubmitAccess("team"), KindAccess("team", s.S)...) {
		s.f.Reviews = append(s.f.Reviews, Review{Access: access, Allowed: true})
	}
	s.book()
	return s
}

// book gives out what the manifests, and Kubernetes and the operator's own, give out.
func (s *fixture) book() {
	b := &s.f.Policy
	for _, o := range s.f.Shipped {
		switch o.GetKind() {
		case "ClusterRole":
			b.ClusterRoles = append(b.ClusterRoles, typed[rbacv1.ClusterRole](o))
		case "ClusterRoleBinding":
			b.ClusterRoleBindings = append(b.ClusterRoleBindings, typed[rbacv1.ClusterRoleBinding](o))
		case "Role":
			b.Roles = append(b.Roles, typed[rbacv1.Role](o))
		case "RoleBinding":
			b.RoleBindings = append(b.RoleBindings, typed[rbacv1.RoleBinding](o))
		case "ValidatingAdmissionPolicy":
			s.f.AdmissionPolicies = append(s.f.AdmissionPolicies, typed[admissionv1.ValidatingAdmissionPolicy](o))
		case "ValidatingAdmissionPolicyBinding":
			s.f.AdmissionBindings = append(s.f.AdmissionBindings, typed[admissionv1.ValidatingAdmissionPolicyBinding](o))
		}
	}
	role := func(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	}
	b.ClusterRoles = append(b.ClusterRoles,
		role("system:kube-scheduler", rule("", "pods", "list", "watch"), rule("", "pods/binding", "create")),
		role("system:volume-scheduler", rule("", "persistentvolumeclaims", "update")),
		role("training-operator", rule("", "pods", "create", "delete", "list", "patch", "watch"), rule("", "services", "create", "delete", "list", "watch"),
			rule("", "events", "create", "patch"), rule("kubeflow.org", "tfjobs", "delete", "list", "watch"), rule("kubeflow.org", "tfjobs/status", "update"),
			rule("scheduling.x-k8s.io", "podgroups", "create", "delete", "get", "list", "update", "watch")))
	b.ClusterRoleBindings = append(b.ClusterRoleBindings, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "training-operator"},
		RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: "training-operator"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "kubeflow", Name: "training-operator"}}})
	b.Roles = append(b.Roles, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication-reader"},
		Rules: []rbacv1.PolicyRule{rule("", "configmaps", "get")}})
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// defines adds a CustomResourceDefinition.
func (s *fixture) defines(name string, labels, annotations map[string]string) *metav1.PartialObjectMetadata {
	d := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations}}
	s.f.Definitions = append(s.f.Definitions, d)
	return d
}

// serves adds a definition that is served.
func (s *fixture) serves(name, version string, labels, annotations map[string]string) {
	s.defines(name, labels, annotations)
	s.S.Server.Resources = append(s.S.Server.Resources, name+"/"+version)
}

func (s *fixture) deployment(name string) *appsv1.Deployment {
	for _, d := range s.S.Deployments {
		if d.Name == name {
			return d
		}
	}
	panic("no Deployment " + name)
}

// stop scales a Deployment to 0.
func (s *fixture) stop(name string) {
	d := s.deployment(name)
	d.Spec.Replicas, d.Status.ReadyReplicas = new(int32), 0
}

func (s *fixture) operatorArgs(args ...string) {
	s.deployment("training-operator").Spec.Template.Spec.Containers[0].Args = args
}

// pod adds a pod.
func (s *fixture) pod(namespace, name, scheduler, node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{SchedulerName: scheduler, NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	if node != "" {
		p.Status.Phase = corev1.PodRunning
	}
	s.Put(p)
	return p
}

// remove takes what a Deployment and its lease show away.
func (s *fixture) remove(name string) {
	var kept []*appsv1.Deployment
	for _, d := range s.S.Deployments {
		if d.Name != name {
			kept = append(kept, d)
		}
	}
	s.S.Deployments = kept
	var leases []*coordinationv1.Lease
	for _, l := range s.S.Leases {
		if l.Name != name {
			leases = append(leases, l)
		}
	}
	s.S.Leases = leases
}

func (s *fixture) facts() *Facts {
	if !s.f.policyUnknown() {
		s.S.ClusterRoles, s.S.ClusterRoleBindings = s.f.Policy.ClusterRoles, s.f.Policy.ClusterRoleBindings
	}
	s.f.View = view.New(s.Done())
	return s.f
}

// desired is what one check has to find.
type expected struct {
	name   string
	change func(*fixture)
	status Status
	// wantText are parts of messages, hints and fixes; never must not occur.
	wantText []string
	never    []string
}

// outcomeOf runs one check of a list.
func outcomeOf(t *testing.T, checks []Check, id string, f *Facts) (Outcome, bool) {
	t.Helper()
	known := false
	for _, c := range checks {
		if c.ID == id {
			known = true
			for _, o := range run([]Check{c}, f) {
				return o, true
			}
		}
	}
	if !known {
		t.Fatalf("there is no check %s", id)
	}
	return Outcome{}, false
}

func test(t *testing.T, checks []Check, id string, tests []expected) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := healthy(t)
			if tt.change != nil {
				tt.change(s)
			}
			o, judged := outcomeOf(t, checks, id, s.facts())
			if judged != (tt.status != "") {
				t.Fatalf("judged: %v, %+v", judged, o)
			}
			if o.Status != tt.status {
				t.Errorf("status %s, want %s", o.Status, tt.status)
			}
			var text strings.Builder
			for _, f := range o.Findings {
				text.WriteString(f.Message + "\n" + f.Hint + "\n" + f.Fix + "\n")
				if strings.HasSuffix(f.Message, ".") || f.Message == "" {
					t.Errorf("message %q", f.Message)
				}
			}
			for _, want := range tt.wantText {
				if !strings.Contains(text.String(), want) {
					t.Errorf("%q is not reported:\n%s", want, text.String())
				}
			}
			for _, never := range tt.never {
				if strings.Contains(text.String(), never) {
					t.Errorf("%q is reported:\n%s", never, text.String())
				}
			}
		})
	}
}

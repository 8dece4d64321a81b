package install

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	psapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

func scheduler() Scheduler {
	return Scheduler{Version: "v1.2.3", Namespace: DefaultNamespace, Image: "example.com/gangctl:v1.2.3", Replicas: 1, TakeBack: true}
}

func objectsOf(t *testing.T, s Scheduler) []*unstructured.Unstructured {
	t.Helper()
	objects, err := s.Objects()
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// typed decodes the object of a kind and name, and fails if it has a field that its type does not.
func typed[T any](t *testing.T, objects []*unstructured.Unstructured, kind, name string) *T {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			out := new(T)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, out, true); err != nil {
				t.Fatal(err)
			}
			return out
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

// Users may read the group objects and jobs of all that is read, and write those of all that is written. Kubernetes' own roles have its own APIs.
func TestUserRoles(t *testing.T) {
	objects := objectsOf(t, scheduler())
	allows := func(role, group, resource string, verbs ...string) {
		t.Helper()
		if slices.Contains([]string{"", "batch", "policy", "scheduling.k8s.io", kueue.Group}, group) {
			return // Kueue ships such roles itself
		}
		for _, rule := range typed[rbacv1.ClusterRole](t, objects, "ClusterRole", role).Rules {
			if slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) {
				verbs = slices.DeleteFunc(verbs, func(verb string) bool { return slices.Contains(rule.Verbs, verb) })
			}
		}
		if len(verbs) > 0 {
			t.Errorf("%s does not let users %s %s.%s", role, strings.Join(verbs, ", "), resource, group)
		}
	}
	for _, r := range dialect.Readers() {
		for _, k := range r.Kinds {
			allows("gangctl:view", k.Group, k.Resource, "get", "list", "watch")
		}
	}
	for _, w := range dialect.Writers() {
		for _, v := range w.Versions {
			allows("gangctl:edit", v.Group, "podgroups", "create", "delete", "patch", "update")
		}
	}
	for _, r := range kind.Readers() {
		allows("gangctl:view", r.Group, r.Resource, "get", "list", "watch")
		allows("gangctl:edit", r.Group, r.Resource, "create", "delete", "patch", "update")
	}
}

// By its labels every object is found again, whatever version made it.
func TestLabels(t *testing.T) {
	s := scheduler()
	s.Version, s.Replicas = "v1.2.3+"+strings.Repeat("x", 80), 2
	objects := objectsOf(t, s)
	kinds := map[string]int{}
	for _, o := range objects {
		kinds[o.GetKind()]++
		labels := o.GetLabels()
		want := map[string]string{
			"app.kubernetes.io/part-of": "gangctl", "app.kubernetes.io/name": "gang-scheduler", "app.kubernetes.io/instance": "gang-scheduler",
			"app.kubernetes.io/managed-by": "gangctl", "app.kubernetes.io/version": "v1.2.3_" + strings.Repeat("x", 56),
		}
		for key, value := range want {
			if labels[key] != value {
				t.Errorf("%s %s: label %s is %q, want %q", o.GetKind(), o.GetName(), key, labels[key], value)
			}
		}
	}
	for _, kind := range []string{"Namespace", "CustomResourceDefinition", "PriorityClass", "ServiceAccount", "ClusterRole", "ClusterRoleBinding",
		"Role", "RoleBinding", "ConfigMap", "Service", "NetworkPolicy", "PodDisruptionBudget", "Deployment"} {
		if kinds[kind] == 0 {
			t.Errorf("there is no %s", kind)
		}
	}
}

// Every right is granted by its name.
func TestNoWildcards(t *testing.T) {
	roles := 0
	for _, o := range objectsOf(t, scheduler()) {
		if kind := o.GetKind(); kind != "Role" && kind != "ClusterRole" {
			continue
		}
		roles++
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
			t.Fatal(err)
		}
		if len(role.Rules) == 0 {
			t.Errorf("%s grants nothing", role.Name)
		}
		for _, rule := range role.Rules {
			for _, value := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs) {
				if strings.Contains(value, "*") {
					t.Errorf("%s: %v", role.Name, rule)
				}
			}
		}
	}
	if roles < 5 {
		t.Errorf("only %d roles were looked at", roles)
	}
}

// The pod passes the strictest level, which its namespace demands.
func TestPodSecurity(t *testing.T) {
	objects := objectsOf(t, scheduler())
	d := typed[appsv1.Deployment](t, objects, "Deployment", "gang-scheduler")
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	strictest := psapi.LevelVersion{Level: psapi.LevelRestricted, Version: psapi.LatestVersion()}
	for _, result := range evaluator.EvaluatePod(strictest, &d.Spec.Template.ObjectMeta, &d.Spec.Template.Spec) {
		if !result.Allowed {
			t.Errorf("%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
	for _, o := range objects {
		if o.GetKind() == "Namespace" && o.GetLabels()["pod-security.kubernetes.io/enforce"] != "restricted" {
			t.Errorf("labels of the namespace: %v", o.GetLabels())
		}
	}
}

// What selects the pods selects them all, and keeps on doing so: a selector cannot change.
func TestSelectors(t *testing.T) {
	s := scheduler()
	s.Replicas = 2
	objects := objectsOf(t, s)
	d := typed[appsv1.Deployment](t, objects, "Deployment", "gang-scheduler")
	want := map[string]string{"app.kubernetes.io/name": "gang-scheduler", "app.kubernetes.io/instance": "gang-scheduler"}
	for key, value := range want {
		if d.Spec.Selector.MatchLabels[key] != value || d.Spec.Template.Labels[key] != value {
			t.Errorf("label %s: selector %v, pods %v", key, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)
		}
	}
	if len(d.Spec.Selector.MatchLabels) != len(want) {
		t.Errorf("the selector holds what may change: %v", d.Spec.Selector.MatchLabels)
	}
	paths := map[string][]string{
		"Service": {"spec", "selector"}, "NetworkPolicy": {"spec", "podSelector", "matchLabels"}, "PodDisruptionBudget": {"spec", "selector", "matchLabels"},
	}
	for _, o := range objects {
		path, ok := paths[o.GetKind()]
		if !ok {
			continue
		}
		delete(paths, o.GetKind())
		if got, _, err := unstructured.NestedStringMap(o.Object, path...); err != nil || got["app.kubernetes.io/name"] != "gang-scheduler" || len(got) != 2 {
			t.Errorf("%s selects %v, %v", o.GetKind(), got, err)
		}
	}
	if len(paths) > 0 {
		t.Errorf("not there: %v", paths)
	}
}

func TestOverrides(t *testing.T) {
	plain := typed[appsv1.Deployment](t, objectsOf(t, scheduler()), "Deployment", "gang-scheduler")
	s := scheduler()
	s.Namespace, s.Replicas, s.Serve, s.PullSecrets = "ml", 3, []string{"volcano", "kube-batch"}, []string{"pull"}
	s.CPU, s.Memory = new(resource.MustParse("2")), new(resource.MustParse("1Gi"))
	s.Annotations, s.Tolerations = map[string]string{"a": "b"}, []corev1.Toleration{{Key: "infra", Operator: corev1.TolerationOpExists}}
	objects := objectsOf(t, s)
	d := typed[appsv1.Deployment](t, objects, "Deployment", "gang-scheduler")
	pod := d.Spec.Template.Spec
	c := pod.Containers[0]
	if *d.Spec.Replicas != 3 || c.Image != s.Image || d.Annotations["a"] != "b" || len(pod.ImagePullSecrets) != 1 || pod.ImagePullSecrets[0].Name != "pull" {
		t.Errorf("got %+v", d)
	}
	if c.Args[len(c.Args)-1] != "--serve=volcano,kube-batch" || len(c.Args) != len(plain.Spec.Template.Spec.Containers[0].Args)+1 {
		t.Errorf("arguments: %q", c.Args)
	}
	if len(pod.Tolerations) != len(plain.Spec.Template.Spec.Tolerations)+1 || pod.Tolerations[len(pod.Tolerations)-1].Key != "infra" {
		t.Errorf("tolerations: %v", pod.Tolerations)
	}
	if c.Resources.Requests.Cpu().String() != "2" || c.Resources.Requests.Memory().String() != "1Gi" {
		t.Errorf("requests: %v", c.Resources.Requests)
	}
	limit := typed[admissionv1.ValidatingAdmissionPolicy](t, objects, "ValidatingAdmissionPolicy", SchedulerLimit)
	if c := limit.Spec.MatchConditions; len(c) != 1 || c[0].Expression != "request.userInfo.username == 'system:serviceaccount:ml:gang-scheduler'" {
		t.Errorf("the policy is about %v", c)
	}
	for _, o := range objects {
		if o.GetNamespace() == DefaultNamespace || o.GetName() == DefaultNamespace {
			t.Errorf("%s %s is left in the other namespace", o.GetKind(), o.GetName())
		}
		if o.GetKind() == "ClusterRoleBinding" || o.GetKind() == "RoleBinding" {
			b := typed[rbacv1.ClusterRoleBinding](t, objects, o.GetKind(), o.GetName())
			if b.Subjects[0].Kind == rbacv1.ServiceAccountKind && (b.Subjects[0].Namespace != "ml" || b.Subjects[0].Name != "gang-scheduler") {
				t.Errorf("%s %s is for %v", o.GetKind(), o.GetName(), b.Subjects)
			}
		}
		if _, ok := o.Object["status"]; ok {
			t.Errorf("%s %s has a status", o.GetKind(), o.GetName())
		}
	}
}

// What is optional is there only where it is requested.
func TestOptional(t *testing.T) {
	names := func(s Scheduler) (names []string) {
		for _, o := range objectsOf(t, s) {
			names = append(names, o.GetKind()+" "+o.GetName())
		}
		return names
	}
	s := scheduler()
	if all := names(s); slices.Contains(all, "PodDisruptionBudget gang-scheduler") || !slices.Contains(all, "ClusterRole gangctl:gang-scheduler:policy") || !slices.Contains(all, "ValidatingAdmissionPolicy "+SchedulerLimit) {
		t.Errorf("got %q", all)
	}
	s.Replicas, s.TakeBack = 2, false
	if all := names(s); !slices.Contains(all, "PodDisruptionBudget gang-scheduler") || slices.Contains(all, "ClusterRole gangctl:gang-scheduler:policy") || slices.Contains(all, "ValidatingAdmissionPolicy "+SchedulerLimit) {
		t.Errorf("got %q", all)
	}
}

// Its memory has a limit that follows what is requested, and the collector knows of it.
func TestMemoryLimit(t *testing.T) {
	for request, want := range map[string][2]string{"": {"4Gi", "3865470480"}, "1Gi": {"4Gi", "3865470480"}, "3Gi": {"12Gi", "11596411620"}} {
		s := scheduler()
		if s.Memory = nil; request != "" {
			q := resource.MustParse(request)
			s.Memory = &q
		}
		c := typed[appsv1.Deployment](t, objectsOf(t, s), "Deployment", "gang-scheduler").Spec.Template.Spec.Containers[0]
		i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
		if got := c.Resources.Limits.Memory().String(); got != want[0] || i < 0 || c.Env[i].Value != want[1] {
			t.Errorf("%s: limit %s, environment %v", request, got, c.Env)
		}
	}
}

// A change of the configuration starts new pods; nothing else does.
func TestConfigDigest(t *testing.T) {
	object := func(text string) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{{Object: map[string]any{"kind": "ConfigMap", "data": map[string]any{"scheduler.yaml": text}}}}
	}
	if a, again, b := digest(object("a")), digest(object("a")), digest(object("b")); a != again || a == b {
		t.Error("the digest does not follow the configuration")
	}
	d := typed[appsv1.Deployment](t, objectsOf(t, scheduler()), "Deployment", "gang-scheduler")
	if len(d.Spec.Template.Annotations[ConfigAnnotation]) != 16 {
		t.Errorf("annotations of the pods: %v", d.Spec.Template.Annotations)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, text := range []string{"a: b: c", "a: 1\na: 2"} {
		if _, err := Decode([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// Metrics readers reach the secure port, and no other client.
func TestIngress(t *testing.T) {
	s := scheduler()
	s.MetricsFrom = []string{"monitoring", "grafana"}
	policy := typed[networkingv1.NetworkPolicy](t, objectsOf(t, s), "NetworkPolicy", "gang-scheduler").Spec
	if len(policy.Ingress) != 1 || len(policy.Ingress[0].From) != 1 || len(policy.Ingress[0].Ports) != 1 || policy.Ingress[0].Ports[0].Port.StrVal != "https" {
		t.Fatalf("ingress: %v", policy.Ingress)
	}
	from, err := metav1.LabelSelectorAsSelector(policy.Ingress[0].From[0].NamespaceSelector)
	if err != nil || policy.Ingress[0].From[0].PodSelector != nil || policy.Ingress[0].From[0].IPBlock != nil {
		t.Fatalf("from %v, %v", policy.Ingress[0].From, err)
	}
	for namespace, want := range map[string]bool{"monitoring": true, "grafana": true, "research": false, "gangctl-system": false} {
		if from.Matches(labels.Set{corev1.LabelMetadataName: namespace}) != want {
			t.Errorf("namespace %s gets in: %v", namespace, !want)
		}
	}
	s.MetricsFrom = nil
	policy = typed[networkingv1.NetworkPolicy](t, objectsOf(t, s), "NetworkPolicy", "gang-scheduler").Spec
	if len(policy.Ingress) != 0 || !slices.Contains(policy.PolicyTypes, networkingv1.PolicyTypeIngress) {
		t.Errorf("not everybody is kept out: %v", policy)
	}
}

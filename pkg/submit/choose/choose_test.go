package choose

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
)

var now = time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)

// deployed is a Deployment whose container has this argv.
func deployed(name, image string, ready int32, args ...string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: name},
		Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: image, Args: args}}}}},
		Status:     appsv1.DeploymentStatus{ReadyReplicas: ready, Replicas: 1},
	}
}

func leased(name string, ago time.Duration) *coordinationv1.Lease {
	at := metav1.NewMicroTime(now.Add(-ago))
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &at}}
}

const (
	sp      = "podgroups.scheduling.x-k8s.io/v1alpha1"
	native  = "podgroups.scheduling.k8s.io/v1beta1"
	native6 = "podgroups.scheduling.k8s.io/v1alpha2"
	vol     = "podgroups.scheduling.volcano.sh/v1beta1"
	kb      = "podgroups.scheduling.sigs.dev/v1alpha2"
)

func TestCandidates(t *testing.T) {
	dns := deployed("coredns", "coredns", 1)
	own := deployed("gang-scheduler", "gangctl", 1)
	vc := deployed("volcano-scheduler", "volcanosh/vc-scheduler:v1.9.0", 1)
	tests := map[string]struct {
		served, blind, typed string
		deployments          []*appsv1.Deployment
		leases               []*coordinationv1.Lease
		want                 string // DIALECT VERSION SCHEDULER, with commas between candidates
		why                  string // of the first, or of the refusal
	}{
		"gangctl's own": {served: sp, deployments: []*appsv1.Deployment{dns, own}, want: "scheduler-plugins v1alpha1 gang-scheduler", why: "scheduler gang-scheduler runs here and reads it"},
		"its own before Kubernetes'": {served: sp + " " + native, deployments: []*appsv1.Deployment{dns, own}, leases: []*coordinationv1.Lease{leased("kube-scheduler", time.Second)},
			want: "scheduler-plugins v1alpha1 gang-scheduler, native v1beta1 "},
		"Kubernetes' own, of 1.36": {served: native6, deployments: []*appsv1.Deployment{dns}, leases: []*coordinationv1.Lease{leased("kube-scheduler", time.Second)},
			want: "native v1alpha2 ", why: "scheduler default-scheduler runs here and reads it"},
		"a managed control plane":   {served: native, deployments: []*appsv1.Deployment{dns}, want: "native v1beta1 ", why: "its PodGroups are served here; whether scheduler default-scheduler runs and reads it cannot be seen"},
		"Volcano":                   {served: vol, deployments: []*appsv1.Deployment{dns, vc}, want: "volcano v1beta1 volcano", why: "scheduler volcano runs here"},
		"Volcano alongside our CRD": {served: sp + " " + vol, deployments: []*appsv1.Deployment{dns, vc}, want: "volcano v1beta1 volcano"},
		"kube-batch, of late":       {served: kb, deployments: []*appsv1.Deployment{dns, deployed("kube-batch", "kubesigs/kube-batch:v0.5", 1)}, want: "kube-batch v1alpha2 kube-batch"},
		"another name, from the operator": {served: sp, deployments: []*appsv1.Deployment{dns, deployed("gang", "gangctl", 1), deployed("training-operator", "kubeflow/training-operator", 1, "--gang-scheduler-name=gang")},
			want: "scheduler-plugins v1alpha1 gang"},
		"the original": {served: sp, deployments: []*appsv1.Deployment{dns, deployed("scheduler-plugins-scheduler", "registry.k8s.io/scheduler-plugins/kube-scheduler", 1)},
			want: "scheduler-plugins v1alpha1 scheduler-plugins-scheduler"},
		"no CRD, but gangctl's own": {deployments: []*appsv1.Deployment{dns, own}, want: "labels  gang-scheduler", why: "scheduler gang-scheduler runs here and reads it"},
		"by its lease alone":        {served: sp, deployments: []*appsv1.Deployment{dns}, leases: []*coordinationv1.Lease{leased("gang-scheduler", time.Second)}, want: "scheduler-plugins v1alpha1 gang-scheduler"},
		"nothing may be seen":       {served: sp + " " + vol, blind: "deployments may not be listed", want: "scheduler-plugins v1alpha1 gang-scheduler, volcano v1beta1 volcano", why: "its PodGroups are served here; whether scheduler gang-scheduler runs and reads it cannot be seen (deployments may not be listed)"},
		"nothing shows":             {served: sp, want: "scheduler-plugins v1alpha1 gang-scheduler"},
		"a scheduler is requested":  {served: sp + " " + vol, typed: "volcano", deployments: []*appsv1.Deployment{dns, vc, own}, want: "volcano v1beta1 volcano"},
		"one that is unknown":       {served: sp + " " + native, typed: "mine", deployments: []*appsv1.Deployment{dns}, want: "scheduler-plugins v1alpha1 mine, native v1beta1 mine"},
		"the default one is requested": {served: sp + " " + native, typed: "default-scheduler", deployments: []*appsv1.Deployment{dns}, leases: []*coordinationv1.Lease{leased("kube-scheduler", time.Second)},
			want: "native v1beta1 default-scheduler"},

		"nothing at all":       {deployments: []*appsv1.Deployment{dns}, why: "dialect scheduler-plugins: the cluster does not serve podgroups.scheduling.x-k8s.io; dialect native: the cluster does not serve podgroups.scheduling.k8s.io; dialect volcano: the cluster does"},
		"a CRD without reader": {served: sp, deployments: []*appsv1.Deployment{dns}, why: "dialect scheduler-plugins: no scheduler that reads it runs"},
		"down":                 {served: sp, deployments: []*appsv1.Deployment{dns, deployed("gang-scheduler", "gangctl", 0)}, why: "dialect scheduler-plugins: scheduler gang-scheduler, which reads it, is down"},
		"its lease has run out": {served: sp, deployments: []*appsv1.Deployment{dns}, leases: []*coordinationv1.Lease{leased("gang-scheduler", time.Hour)},
			why: "dialect scheduler-plugins: scheduler gang-scheduler, which reads it, is down"},
		"requested, and not served": {served: sp, typed: "volcano", deployments: []*appsv1.Deployment{dns, vc}, why: "dialect volcano: the cluster does not serve podgroups.scheduling.volcano.sh"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &snapshot.Snapshot{At: now, Deployments: tt.deployments, Leases: tt.leases}
			got, err := candidates(Facts{Mapper: Recorded(strings.Fields(tt.served)), Cluster: view.New(s), Blind: tt.blind}, tt.typed)
			var nothing *NothingError
			if tt.want == "" {
				if !errors.As(err, &nothing) || !strings.Contains(err.Error(), tt.why) {
					t.Fatalf("got %v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var candidates []string
			for _, c := range got {
				candidates = append(candidates, string(c.Dialect)+" "+c.Version.Version+" "+c.Scheduler)
			}
			if strings.Join(candidates, ", ") != tt.want || !strings.Contains(got[0].Why, tt.why) {
				t.Errorf("got %q: %s", candidates, got[0].Why)
			}
		})
	}
}

// What is chosen can be written, and the one who is to read it is not known to read something else.
func TestCandidatesAreWritten(t *testing.T) {
	for _, typed := range []string{"", "gang-scheduler", "volcano", "kube-batch", "mine"} {
		got, err := candidates(Facts{Mapper: Recorded([]string{sp, native, vol, kb}), Blind: "x"}, typed)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range got {
			if c.Dialect == gang.None || c.Dialect == gang.Kueue {
				t.Errorf("%q: %v", typed, c)
			}
		}
	}
}

// A tenant's Deployments and leases decide nothing for others: neither that a dialect is enforced, nor by which scheduler.
func TestCandidatesOfTenants(t *testing.T) {
	bound := func(namespace string, rules ...rbacv1.PolicyRule) (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding) {
		meta := metav1.ObjectMeta{Name: namespace}
		return &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: namespace},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "default"}}}
	}
	in := func(namespace string, d *appsv1.Deployment) *appsv1.Deployment {
		d.Namespace = namespace
		return d
	}
	binds := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/binding"}, Verbs: []string{"create"}}
	admin, of := bound("ml", binds)
	reader, ofReader := bound("evil", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}})
	alive := leased("volcano", time.Second)
	alive.Namespace = "evil"
	s := &snapshot.Snapshot{At: now, ClusterRoles: []*rbacv1.ClusterRole{admin, reader}, ClusterRoleBindings: []*rbacv1.ClusterRoleBinding{of, ofReader}, Leases: []*coordinationv1.Lease{alive},
		Deployments: []*appsv1.Deployment{
			in("evil", deployed("training-operator", "kubeflow/training-operator", 1, "--gang-scheduler-name=mine")), in("evil", deployed("mine", "x", 1)),
			in("evil", deployed("volcano", "volcanosh/vc-scheduler", 1)), in("ml", deployed("gang", "gang-scheduler", 1, "--scheduler-name=gang")),
		}}
	got, err := candidates(Facts{Mapper: Recorded([]string{sp, vol}), Cluster: view.New(s)}, "")
	if err != nil || len(got) != 1 || got[0].Dialect != gang.SchedulerPlugins || got[0].Scheduler != "gang" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// What is declared all the same is what can be declared.
func TestDeclarable(t *testing.T) {
	for served, want := range map[string]gang.Dialect{"": gang.Labels, sp: gang.SchedulerPlugins, vol + " " + native: gang.Native, kb: gang.KubeBatch} {
		if got := (Facts{Mapper: Recorded(strings.Fields(served))}).Declarable(); got != want {
			t.Errorf("%q: got %s", served, got)
		}
	}
}

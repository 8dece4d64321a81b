package submit

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/kubetest"
)

// old is a job that names kube-batch.
func old() string {
	return strings.Replace(jobFile, "        spec:\n", "        spec:\n          schedulerName: kube-batch\n", 1)
}

// A job that names a scheduler is accepted if a scheduler of the name runs, and refused if it is certain that none does.
func TestSchedulerOfAFile(t *testing.T) {
	deployment := func(name string, args ...string) appsv1.Deployment {
		d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "gangctl-system", Name: name}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "scheduler", Args: args}}
		return d
	}
	tests := map[string]struct {
		deployments []appsv1.Deployment
		leases      []string
		denied      bool
		groups      []string
		kind        string // of the PodGroup that is made; empty if the job is refused
		note        string // or the end of the refusal
	}{
		"nobody":                  {deployments: []appsv1.Deployment{deployment("coredns")}},
		"nothing to be seen":      {kind: "scheduling.x-k8s.io/v1alpha1"},
		"another":                 {deployments: []appsv1.Deployment{deployment("gang-scheduler", "scheduler")}, leases: []string{"gang-scheduler"}, note: "; there are: gang-scheduler"},
		"kube-batch itself":       {deployments: []appsv1.Deployment{deployment("kube-batch")}, groups: []string{"scheduling.incubator.k8s.io"}, kind: "scheduling.incubator.k8s.io/v1alpha1"},
		"gangctl's":               {deployments: []appsv1.Deployment{deployment("gang-scheduler", "scheduler", "--serve=volcano,kube-batch")}, kind: "scheduling.x-k8s.io/v1alpha1", note: "note: its PodGroup is one of scheduling.x-k8s.io"},
		"a lease":                 {leases: []string{"kube-batch"}, kind: "scheduling.x-k8s.io/v1alpha1"},
		"gangctl's, out of sight": {leases: []string{"gang-scheduler"}, kind: "scheduling.x-k8s.io/v1alpha1"},
		"no right to look":        {denied: true, kind: "scheduling.x-k8s.io/v1alpha1", note: "note: whether a scheduler answers to kube-batch could not be seen: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serving(t, nil)
			s.HandleFunc("POST /apis/scheduling.incubator.k8s.io/v1alpha1/namespaces/research/podgroups", echo("uid"))
			groups := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
			for _, g := range append(tt.groups, "apps") {
				version := metav1.GroupVersionForDiscovery{GroupVersion: g + "/v1", Version: "v1"}
				groups.Groups = append(groups.Groups, metav1.APIGroup{Name: g, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
				s.Answer("GET /apis/"+g+"/v1", 200, &metav1.APIResourceList{GroupVersion: g + "/v1", APIResources: []metav1.APIResource{{Name: "podgroups", Kind: "PodGroup"}}})
			}
			s.Answer("GET /apis", 200, groups)
			s.HandleFunc("GET /apis/apps/v1/deployments", func(w http.ResponseWriter, _ *http.Request) {
				if tt.denied {
					kubetest.Write(w, 403, kubetest.Status(403, metav1.StatusReasonForbidden, "not for you", nil))
					return
				}
				kubetest.Write(w, 200, &appsv1.DeploymentList{TypeMeta: metav1.TypeMeta{Kind: "DeploymentList", APIVersion: "apps/v1"}, Items: tt.deployments})
			})
			s.HandleFunc("GET /apis/coordination.k8s.io/v1/leases", func(w http.ResponseWriter, r *http.Request) {
				list := &coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{Kind: "LeaseList", APIVersion: "coordination.k8s.io/v1"}}
				now := metav1.NowMicro()
				if name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name="); slices.Contains(tt.leases, name) {
					list.Items = append(list.Items, coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &now}})
				}
				kubetest.Write(w, 200, list)
			})
			path := file(t, old())
			out, errOut, failed := typeLine(t.Context(), s.Client, "", "submit", "-f", path, "-o", "yaml")
			if tt.kind == "" {
				if failed == nil || failed.Message != path+": its members request scheduler kube-batch, and no scheduler answers to that name"+tt.note || !strings.Contains(failed.Hint, "gangctl install scheduler --serve kube-batch") {
					t.Errorf("got %+v", failed)
				}
				if got := creates(s); len(got) > 0 {
					t.Errorf("created: %q", got)
				}
				return
			}
			if failed != nil {
				t.Fatal(failed)
			}
			job, group := rendered(t, out)
			if group["apiVersion"] != tt.kind || !strings.Contains(errOut, tt.note) || at(t, job, "spec", "tfReplicaSpecs", "Worker", "template", "spec", "schedulerName") != "kube-batch" {
				t.Errorf("got %v\n%s", group, errOut)
			}
		})
	}
}

package collect

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/kind/volcanojob"
)

// What can be seen on a real API server is tested there; here are refusals and failures.

// core is a server of nothing but the API group without a name.
func core(t *testing.T) *kubetest.Server {
	s := kubetest.New(t)
	s.Answer("GET /version", 200, version.Info{GitVersion: "v1.37.1"})
	s.Answer("GET /api", 200, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	s.Answer("GET /api/v1", 200, metav1.APIResourceList{GroupVersion: "v1"})
	return s
}

func server(t *testing.T) *kubetest.Server {
	s := core(t)
	v1 := metav1.GroupVersionForDiscovery{GroupVersion: "kubeflow.org/v1", Version: "v1"}
	s.Answer("GET /apis", 200, metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "kubeflow.org", Versions: []metav1.GroupVersionForDiscovery{v1}, PreferredVersion: v1}}})
	s.Answer("GET /apis/kubeflow.org/v1", 200, metav1.APIResourceList{GroupVersion: "kubeflow.org/v1", APIResources: []metav1.APIResource{
		{Name: "tfjobs", Kind: "TFJob", Namespaced: true, Verbs: []string{"list"}}, {Name: "tfjobs/status", Kind: "TFJob", Namespaced: true, Verbs: []string{"get"}}}})
	return s
}

func refused(s *kubetest.Server, path, resource string) {
	s.Refuse("GET "+path, http.StatusForbidden, metav1.StatusReasonForbidden, `User "eve" cannot list resource "`+resource+`"`, &metav1.StatusDetails{Kind: resource})
}

func collect(t *testing.T, s *kubetest.Server, o Options) (*snapshot.Snapshot, error) {
	t.Helper()
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	o.Now = func() time.Time { return time.Unix(1000, 0) }
	return Collect(t.Context(), client, o)
}

func pods(items ...corev1.Pod) corev1.PodList {
	return corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: items}
}

// Kubernetes' own PodGroups are built in and served only where they are switched on: that they are is recorded, and no other built-in resource.
func TestNativePodGroupsAreRecorded(t *testing.T) {
	s := core(t)
	version := func(name string) metav1.GroupVersionForDiscovery {
		return metav1.GroupVersionForDiscovery{GroupVersion: "scheduling.k8s.io/" + name, Version: name}
	}
	s.Answer("GET /apis", 200, metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "scheduling.k8s.io", PreferredVersion: version("v1beta1"),
		Versions: []metav1.GroupVersionForDiscovery{version("v1beta1"), version("v1alpha3")}}}})
	s.Answer("GET /apis/scheduling.k8s.io/v1beta1", 200, metav1.APIResourceList{GroupVersion: version("v1beta1").GroupVersion, APIResources: []metav1.APIResource{
		{Name: "podgroups", Kind: "PodGroup", Namespaced: true}, {Name: "priorityclasses", Kind: "PriorityClass"}}})
	s.Answer("GET /apis/scheduling.k8s.io/v1alpha3", 200, metav1.APIResourceList{GroupVersion: version("v1alpha3").GroupVersion, APIResources: []metav1.APIResource{
		{Name: "compositepodgroups", Kind: "CompositePodGroup", Namespaced: true, Verbs: []string{"list"}}}})
	s.Answer("GET /apis/scheduling.k8s.io/v1alpha3/compositepodgroups", 200, map[string]any{"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroupList",
		"items": []any{map[string]any{"metadata": map[string]any{"namespace": "team", "name": "llama"}}}})
	got, err := collect(t, s, Options{})
	if err != nil || !slices.Equal(got.Server.Resources, []string{"compositepodgroups.scheduling.k8s.io/v1alpha3", "podgroups.scheduling.k8s.io/v1beta1"}) {
		t.Errorf("got %v, %v", got.Server.Resources, err)
	}
	if all := got.Custom[native.CompositeKind()]; len(all) != 1 || all[0].GetName() != "llama" {
		t.Errorf("composite PodGroups: %v", all)
	}
}

// What Karpenter makes nodes of, and what it has ordered, is read.
func TestKarpenterIsRead(t *testing.T) {
	s := core(t)
	v1 := metav1.GroupVersionForDiscovery{GroupVersion: "karpenter.sh/v1", Version: "v1"}
	s.Answer("GET /apis", 200, metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "karpenter.sh", Versions: []metav1.GroupVersionForDiscovery{v1}, PreferredVersion: v1}}})
	s.Answer("GET /apis/karpenter.sh/v1", 200, metav1.APIResourceList{GroupVersion: v1.GroupVersion, APIResources: []metav1.APIResource{
		{Name: "nodeclaims", Kind: "NodeClaim", Verbs: []string{"list"}}, {Name: "nodepools", Kind: "NodePool", Verbs: []string{"list"}}}})
	for resource, kind := range map[string]string{"nodeclaims": "NodeClaim", "nodepools": "NodePool"} {
		s.Answer("GET /apis/karpenter.sh/v1/"+resource, 200, map[string]any{"apiVersion": v1.GroupVersion, "kind": kind + "List", "items": []any{map[string]any{"metadata": map[string]any{"name": "gpu"}}}})
	}
	got, err := collect(t, s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range view.KarpenterKinds() {
		if all := got.Custom[kind]; len(all) != 1 || all[0].GetName() != "gpu" {
			t.Errorf("%s: %v", kind.Kind, all)
		}
	}
}

// Jobs of Volcano and ElasticQuotas are read where they are served, and a refusal of theirs is written down like any other; where they are not, nothing is requested of them.
func TestOptionalKindsAreRead(t *testing.T) {
	s := core(t)
	var groups []metav1.APIGroup
	serve := func(group, version, resource, kind string) string {
		v := metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + version, Version: version}
		groups = append(groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
		s.Answer("GET /apis/"+v.GroupVersion, 200, metav1.APIResourceList{GroupVersion: v.GroupVersion, APIResources: []metav1.APIResource{{Name: resource, Kind: kind, Namespaced: true, Verbs: []string{"list"}}}})
		return "/apis/" + v.GroupVersion + "/" + resource
	}
	for _, path := range []string{serve("batch.volcano.sh", "v1alpha1", "jobs", "Job"), serve("scheduling.x-k8s.io", "v1alpha1", "elasticquotas", "ElasticQuota"), serve("kubeflow.org", "v1", "jaxjobs", "JAXJob"),
		serve("autoscaling.x-k8s.io", "v1", "provisioningrequests", "ProvisioningRequest"), serve("kueue.x-k8s.io", "v1beta1", "multikueueclusters", "MultiKueueCluster")} {
		s.Answer("GET "+path, 200, map[string]any{"kind": "List", "apiVersion": "v1", "items": []any{map[string]any{"metadata": map[string]any{"namespace": "team", "name": "llama"}}}})
	}
	refused(s, serve("scheduling.sigs.k8s.io", "v1alpha1", "elasticquotas", "ElasticQuota"), "elasticquotas")
	s.Answer("GET /apis", 200, metav1.APIGroupList{Groups: groups})
	got, err := collect(t, s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []schema.GroupKind{volcanojob.GroupKind(), schedulerplugins.QuotaKinds()[0], {Group: "kubeflow.org", Kind: "JAXJob"},
		{Group: "autoscaling.x-k8s.io", Kind: "ProvisioningRequest"}, {Group: "kueue.x-k8s.io", Kind: "MultiKueueCluster"}} {
		if all := got.Custom[kind]; len(all) != 1 || all[0].GetName() != "llama" || all[0].GetKind() != kind.Kind {
			t.Errorf("%s: %v", kind, all)
		}
	}
	if len(got.Denied) != 1 || got.Denied[0].Resource != "elasticquotas.scheduling.sigs.k8s.io" {
		t.Errorf("denied: %+v", got.Denied)
	}
	bare := server(t)
	if _, err := collect(t, bare, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, request := range bare.Requests() {
		if strings.Contains(request, "volcano") || strings.Contains(request, "elasticquotas") || strings.Contains(request, "jaxjobs") {
			t.Errorf("requested of what is not served: %s", request)
		}
	}
}

// Of several versions of a kind the one is read that the server prefers, in whichever order discovery returns them.
func TestPreferredVersionIsRead(t *testing.T) {
	of := func(version string) *metav1.APIResourceList {
		return &metav1.APIResourceList{GroupVersion: "kueue.x-k8s.io/" + version}
	}
	version := func(v string) metav1.GroupVersionForDiscovery {
		return metav1.GroupVersionForDiscovery{GroupVersion: "kueue.x-k8s.io/" + v, Version: v}
	}
	groups := []*metav1.APIGroup{{Name: "kueue.x-k8s.io", PreferredVersion: version("v1beta2"), Versions: []metav1.GroupVersionForDiscovery{version("v1beta1"), version("v1beta2"), version("v1alpha1")}}}
	for _, lists := range [][]*metav1.APIResourceList{{of("v1alpha1"), of("v1beta1"), of("v1beta2")}, {of("v1beta2"), of("v1beta1"), of("v1alpha1")}} {
		sortByPreference(groups, lists)
		if got := []string{lists[0].GroupVersion, lists[1].GroupVersion, lists[2].GroupVersion}; !slices.Equal(got, []string{"kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1alpha1"}) {
			t.Errorf("got %v", got)
		}
	}
}

func TestRefusedListsAreWrittenDown(t *testing.T) {
	s := server(t)
	refused(s, "/api/v1/nodes", "nodes")
	refused(s, "/api/v1/pods", "pods")
	s.Answer("GET /api/v1/namespaces/team/pods", 200, pods(corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p"}}))
	got, err := collect(t, s, Options{Namespace: "team"})
	if err != nil {
		t.Fatal(err)
	}
	if got.CanList("nodes", "") || got.CanList("pods", "") || !got.CanList("pods", "team") || !got.CanList("secrets", "") {
		t.Errorf("denied: %+v", got.Denied)
	}
	if len(got.Pods) != 1 || got.Server.Version != "v1.37.1" || !slices.Equal(got.Server.Resources, []string{"tfjobs.kubeflow.org/v1"}) {
		t.Errorf("got %d pods, %+v", len(got.Pods), got.Server)
	}
}

func TestOneListAKindFromCacheInPages(t *testing.T) {
	s := server(t)
	s.Answer("GET /api/v1/pods", 200, pods())
	s.Answer("GET /apis/kubeflow.org/v1/tfjobs", 200, map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJobList", "items": []any{}})
	if _, err := collect(t, s, Options{Namespace: "team"}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, r := range s.Requests() {
		path, query, _ := strings.Cut(r, "?")
		seen[path]++
		if strings.HasSuffix(path, "/pods") && (!strings.Contains(query, "resourceVersion=0") || !strings.Contains(query, "limit=5000")) {
			t.Errorf("not from cache or not in pages: %s", r)
		}
		if strings.HasPrefix(r, "GET /api/v1/events") {
			t.Errorf("the events of every namespace are read: %s", r)
		}
	}
	for path, n := range seen {
		if n > 1 {
			t.Errorf("%d requests for %s", n, path)
		}
	}
	if seen["GET /apis/kubeflow.org/v1/tfjobs"] != 1 || seen["GET /api/v1/namespaces/team/events"] != 1 {
		t.Errorf("requests: %v", seen)
	}
}

func TestFailuresAreErrors(t *testing.T) {
	s := server(t)
	s.Refuse("GET /api/v1/nodes", http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcd is gone", nil)
	if _, err := collect(t, s, Options{Namespace: "team"}); err == nil || !strings.Contains(err.Error(), "list Node") || !strings.Contains(err.Error(), "etcd is gone") {
		t.Errorf("got %v", err)
	}
	down := kubetest.New(t)
	if _, err := collect(t, down, Options{}); err == nil || !strings.Contains(err.Error(), "version of the API server") {
		t.Errorf("got %v", err)
	}
}

func TestProbe(t *testing.T) {
	job := map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": map[string]any{"namespace": "team", "name": "j", "uid": "u"},
		"spec": map[string]any{"tfReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": 2, "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "tensorflow"}}}}}}}}
	for message, want := range map[string]int{`pods "j-worker-0" is forbidden: exceeded quota: q`: 1, `User "eve" cannot create resource "pods"`: 0} {
		s := server(t)
		s.Answer("GET /apis/kubeflow.org/v1/tfjobs", 200, map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJobList", "items": []any{job}})
		s.Refuse("POST /api/v1/namespaces/team/pods", http.StatusForbidden, metav1.StatusReasonForbidden, message, nil)
		got, err := collect(t, s, Options{Namespace: "team", Name: "j", Probe: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Probes) != want || want == 1 && (got.Probes[0].Name != "j-worker-0" || got.Probes[0].Code != 403) {
			t.Errorf("%s: got %+v", message, got.Probes)
		}
		posted := slices.DeleteFunc(s.Requests(), func(r string) bool { return !strings.HasPrefix(r, "POST") || strings.HasPrefix(r, "POST "+whoAmI) })
		if len(posted) != 1 || !strings.Contains(posted[0], "dryRun=All") {
			t.Errorf("writes: %v", posted)
		}
	}
}

// A probe is for the job of the query: of its kind, where another has the name, and of its pod.
func TestProbeOfTheQuery(t *testing.T) {
	yes := true
	job := map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": map[string]any{"namespace": "team", "name": "j", "uid": "u"},
		"spec": map[string]any{"tfReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": 2, "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "tensorflow"}}}}}}}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "j-worker-1", UID: "p", Labels: map[string]string{"training.kubeflow.org/job-name": "j", "training.kubeflow.org/replica-type": "worker",
		"training.kubeflow.org/replica-index": "1"}, OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Name: "j", UID: "u", Controller: &yes}}}}
	for _, o := range []Options{{Kind: "tfjob", Name: "j"}, {Kind: "pod", Name: "j-worker-1"}} {
		s := server(t)
		s.Answer("GET /apis/kubeflow.org/v1/tfjobs", 200, map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJobList", "items": []any{job}})
		s.Answer("GET /apis/batch/v1/jobs", 200, batchv1.JobList{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "JobList"}, Items: []batchv1.Job{{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "j", UID: "other"}}}})
		s.Answer("GET /api/v1/pods", 200, pods(pod))
		s.Refuse("POST /api/v1/namespaces/team/pods", http.StatusForbidden, metav1.StatusReasonForbidden, `pods "j-worker-0" is forbidden: exceeded quota: q`, nil)
		o.Namespace, o.Probe = "team", true
		got, err := collect(t, s, o)
		if err != nil || len(got.Probes) != 1 || got.Probes[0].Name != "j-worker-0" {
			t.Errorf("%s/%s: got %v, %v", o.Kind, o.Name, got.Probes, err)
		}
	}
}

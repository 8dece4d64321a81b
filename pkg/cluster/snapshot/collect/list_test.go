package collect

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
)

// writeProtobuf answers as API servers do to who requests it.
func writeProtobuf(t *testing.T, w http.ResponseWriter, r *http.Request, obj runtime.Object) {
	if !strings.Contains(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
		t.Errorf("%s does not request protobuf: %q", r.URL, r.Header.Get("Accept"))
	}
	var out bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &out); err != nil {
		t.Error(err)
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	_, _ = w.Write(out.Bytes())
}

func someWorkers(from, to int) *corev1.PodList {
	l := &corev1.PodList{}
	for i := from; i < to; i++ {
		p := worker()
		p.Name = fmt.Sprintf("job-worker-%03d", i)
		l.Items = append(l.Items, *p)
	}
	return l
}

// An API server that respects the limit: each page names the next, which is requested without a version.
func TestPages(t *testing.T) {
	s := server(t)
	s.HandleFunc("GET /api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
		l := someWorkers(0, 5)
		if q := r.URL.Query(); q.Get("continue") == "next" && q.Get("resourceVersion") == "" {
			l = someWorkers(5, 7)
		} else {
			l.Continue = "next"
		}
		writeProtobuf(t, w, r, l)
	})
	got, err := collect(t, s, Options{Namespace: "team", Name: "llama"})
	if err != nil || len(got.Pods) != 7 || got.Pods[6].Name != "job-worker-006" {
		t.Errorf("got %d pods, %v", len(got.Pods), err)
	}
}

// A list that took longer than the server remembers starts afresh, as a whole, and no pod is there twice.
func TestPagesExpire(t *testing.T) {
	s := server(t)
	s.HandleFunc("GET /api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Get("continue") != "":
			kubetest.Write(w, http.StatusGone, kubetest.Status(http.StatusGone, metav1.StatusReasonExpired, "The provided continue parameter is too old", nil))
		case q.Get("limit") == "":
			writeProtobuf(t, w, r, someWorkers(0, 7))
		default:
			l := someWorkers(0, 5)
			l.Continue = "next"
			writeProtobuf(t, w, r, l)
		}
	})
	got, err := collect(t, s, Options{Namespace: "team", Name: "llama"})
	if err != nil || len(got.Pods) != 7 {
		t.Errorf("got %d pods, %v", len(got.Pods), err)
	}
}

func TestBrokenListIsAnError(t *testing.T) {
	s := server(t)
	s.HandleFunc("GET /api/v1/pods", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("k8s\x00\x0a\x00\x12\x7f\x12\x20")) // it reports that more follows
	})
	if _, err := collect(t, s, Options{Namespace: "team"}); err == nil || !strings.Contains(err.Error(), "list Pod") || !strings.Contains(err.Error(), "unexpected EOF") {
		t.Errorf("got %v", err)
	}
}

// What 2,000 pods cost in a cluster of one shape: one request, and next to nothing beyond the pods themselves.
func TestAlikePodsShare(t *testing.T) {
	s := server(t)
	s.HandleFunc("GET /api/v1/pods", func(w http.ResponseWriter, r *http.Request) { writeProtobuf(t, w, r, someWorkers(0, 2000)) })
	got, err := collect(t, s, Options{Namespace: "team", Name: "llama"})
	if err != nil || len(got.Pods) != 2000 {
		t.Fatalf("got %d pods, %v", len(got.Pods), err)
	}
	containers, statuses, owners := map[*corev1.Container]bool{}, map[*corev1.ContainerStatus]bool{}, map[*metav1.Time]bool{}
	for _, p := range got.Pods {
		containers[&p.Spec.Containers[0]], statuses[&p.Status.ContainerStatuses[0]], owners[p.Status.StartTime] = true, true, true
	}
	if len(containers)+len(statuses)+len(owners) != 3 {
		t.Errorf("2000 pods that are alike have %d lists of containers, %d of their states and %d times", len(containers), len(statuses), len(owners))
	}
	lists := slices.DeleteFunc(s.Requests(), func(r string) bool { return !strings.HasPrefix(r, "GET /api/v1/pods?") })
	if len(lists) != 1 {
		t.Errorf("requests: %v", lists)
	}
}

// The kinds without a type come in JSON; of those elsewhere what their pods do is left out.
func TestCustomKinds(t *testing.T) {
	s := server(t)
	job := func(namespace string) map[string]any {
		return map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": map[string]any{"namespace": namespace, "name": "j", "uid": namespace,
			"managedFields": []any{map[string]any{"manager": "x"}}, "annotations": map[string]any{lastApplied: "{}", "a": "b"}},
			"spec": map[string]any{"tfReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": 2, "template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "tensorflow", "image": "i", "env": []any{map[string]any{"name": "A", "value": "secret"}}, "args": []any{"--x"}}}}}}}}}
	}
	s.Answer("GET /apis/kubeflow.org/v1/tfjobs", 200, map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJobList", "metadata": map[string]any{"resourceVersion": "1"},
		"items": []any{job("other"), job("team")}})
	got, err := collect(t, s, Options{Namespace: "team"})
	if err != nil {
		t.Fatal(err)
	}
	for kind, list := range got.Custom {
		for _, u := range list {
			text, err := u.MarshalJSON()
			if err != nil || u.GetManagedFields() != nil || len(u.GetAnnotations()) != 1 || !strings.Contains(string(text), `"image":"i"`) {
				t.Errorf("%s: %s, %v", kind, text, err)
			}
			if whole := strings.Contains(string(text), "secret") && strings.Contains(string(text), "--x"); whole != (u.GetNamespace() == "team") {
				t.Errorf("%s: whole is %t: %s", u.GetNamespace(), whole, text)
			}
		}
		if len(list) != 2 {
			t.Errorf("got %d of %s", len(list), kind)
		}
	}
	if len(got.Custom) != 1 {
		t.Errorf("kinds: %v", got.Custom)
	}
}

// Of the runtimes of TrainJobs it is read which there are, and nothing else.
func TestTrainingRuntimes(t *testing.T) {
	s := core(t)
	v1 := metav1.GroupVersionForDiscovery{GroupVersion: "trainer.kubeflow.org/v1alpha1", Version: "v1alpha1"}
	s.Answer("GET /apis", 200, metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "trainer.kubeflow.org", Versions: []metav1.GroupVersionForDiscovery{v1}, PreferredVersion: v1}}})
	s.Answer("GET /apis/"+v1.GroupVersion, 200, metav1.APIResourceList{GroupVersion: v1.GroupVersion, APIResources: []metav1.APIResource{
		{Name: "clustertrainingruntimes", Kind: "ClusterTrainingRuntime", Verbs: []string{"list"}}, {Name: "trainingruntimes", Kind: "TrainingRuntime", Namespaced: true, Verbs: []string{"list"}}}})
	s.Answer("GET /apis/"+v1.GroupVersion+"/clustertrainingruntimes", 200, map[string]any{"apiVersion": v1.GroupVersion, "kind": "ClusterTrainingRuntimeList", "metadata": map[string]any{"resourceVersion": "1"},
		"items": []any{map[string]any{"metadata": map[string]any{"name": "torch"}, "spec": map[string]any{"mlPolicy": map[string]any{}}}}})
	refused(s, "/apis/"+v1.GroupVersion+"/trainingruntimes", "trainingruntimes")
	refused(s, "/apis/"+v1.GroupVersion+"/namespaces/team/trainingruntimes", "trainingruntimes")
	got, err := collect(t, s, Options{Namespace: "team"})
	if err != nil {
		t.Fatal(err)
	}
	list := got.Custom[trainjob.RuntimeKinds()[0]]
	if len(list) != 1 || list[0].GetName() != "torch" || list[0].Object["spec"] != nil || got.CanList("trainingruntimes.trainer.kubeflow.org", "team") {
		t.Errorf("got %v, denied %v", list, got.Denied)
	}
}

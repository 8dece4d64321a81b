package hostile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
)

// server is an API server without a network: what commands request is answered by the objects of one input.
type server struct{ objects []*unstructured.Unstructured }

// resources are the plural names of the kinds that are served beyond those that every API server has.
func resources() map[schema.GroupVersionKind]string {
	all := map[schema.GroupVersionKind]string{}
	for apiVersion, kinds := range map[string]map[string]string{
		"kubeflow.org/v1":                      {"TFJob": "tfjobs", "PyTorchJob": "pytorchjobs", "MPIJob": "mpijobs", "XGBoostJob": "xgboostjobs", "PaddleJob": "paddlejobs", "JAXJob": "jaxjobs"},
		"jobset.x-k8s.io/v1alpha2":             {"JobSet": "jobsets"},
		"ray.io/v1":                            {"RayJob": "rayjobs", "RayCluster": "rayclusters"},
		"trainer.kubeflow.org/v1alpha1":        {"TrainJob": "trainjobs"},
		"leaderworkerset.x-k8s.io/v1":          {"LeaderWorkerSet": "leaderworkersets"},
		"batch.volcano.sh/v1alpha1":            {"Job": "jobs"},
		"scheduling.x-k8s.io/v1alpha1":         {"PodGroup": "podgroups", "ElasticQuota": "elasticquotas"},
		"scheduling.volcano.sh/v1beta1":        {"PodGroup": "podgroups", "Queue": "queues"},
		"scheduling.incubator.k8s.io/v1alpha1": {"PodGroup": "podgroups"},
		"scheduling.sigs.k8s.io/v1alpha1":      {"PodGroup": "podgroups"},
		"scheduling.run.ai/v2alpha2":           {"PodGroup": "podgroups"},
		"scheduling.k8s.io/v1beta1":            {"PodGroup": "podgroups"},
	} {
		for kind, resource := range kinds {
			all[schema.FromAPIVersionAndKind(apiVersion, kind)] = resource
		}
	}
	return all
}

// resourceOf is the plural name of a kind.
func resourceOf(gvk schema.GroupVersionKind) string {
	if name := resources()[gvk]; name != "" {
		return name
	}
	return strings.ToLower(gvk.Kind) + "s"
}

// client returns clients of the server.
func (s server) client() (*kube.Client, error) {
	return kube.NewClient(&rest.Config{Host: "http://cluster", QPS: -1, Transport: s})
}

// RoundTrip implements http.RoundTripper.
func (s server) RoundTrip(r *http.Request) (*http.Response, error) {
	code, answer := s.answer(r)
	body, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

func (s server) answer(r *http.Request) (int, any) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/version":
		return 200, map[string]any{"gitVersion": "v1.37.1"}
	case r.URL.Path == "/api":
		return 200, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case r.URL.Path == "/apis":
		return 200, groups()
	case r.Method != http.MethodGet || r.URL.Query().Get("watch") != "":
		return refusal(403, metav1.StatusReasonForbidden, "")
	case parts[0] == "api" && len(parts) > 1:
		return s.resource(r, schema.GroupVersion{Version: parts[1]}, parts[2:])
	case parts[0] == "apis" && len(parts) > 2:
		return s.resource(r, schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:])
	}
	return refusal(404, metav1.StatusReasonNotFound, "")
}

// groups is the discovery of the kinds that are served.
func groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for gvk := range resources() {
		version := metav1.GroupVersionForDiscovery{GroupVersion: gvk.GroupVersion().String(), Version: gvk.Version}
		if !slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == gvk.Group }) {
			list.Groups = append(list.Groups, metav1.APIGroup{Name: gvk.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
		}
	}
	slices.SortFunc(list.Groups, func(a, b metav1.APIGroup) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// resource answers what is below a version of a group: its kinds, a list, or an object.
func (s server) resource(r *http.Request, gv schema.GroupVersion, parts []string) (int, any) {
	if len(parts) == 0 {
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
		for gvk, resource := range resources() {
			if gvk.GroupVersion() == gv {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource, Kind: gvk.Kind, Namespaced: true, Verbs: []string{"get", "list", "watch"}})
			}
		}
		slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
		return 200, list
	}
	namespace := ""
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	found := s.find(gv, parts[0], namespace, r.URL.Query().Get("labelSelector"))
	if len(parts) > 1 {
		for _, u := range found {
			if u["metadata"].(map[string]any)["name"] == parts[1] {
				return 200, u
			}
		}
		return refusal(404, metav1.StatusReasonNotFound, parts[1])
	}
	if strings.Contains(gv.Group, ".") && !s.serves(gv, parts[0]) {
		return refusal(404, metav1.StatusReasonNotFound, "")
	}
	list := "List" // a typed client takes no objects from a list of another kind
	if len(found) > 0 {
		list = found[0]["kind"].(string) + list
	}
	return 200, map[string]any{"apiVersion": gv.String(), "kind": list, "metadata": map[string]any{"resourceVersion": "7"}, "items": found}
}

func (s server) serves(gv schema.GroupVersion, resource string) bool {
	for gvk, name := range resources() {
		if gvk.GroupVersion() == gv && name == resource {
			return true
		}
	}
	return strings.HasSuffix(gv.Group, ".k8s.io") && gv.Group != "scheduling.x-k8s.io"
}

func (s server) find(gv schema.GroupVersion, resource, namespace, selector string) []map[string]any {
	found := []map[string]any{}
	byLabel, err := labels.Parse(selector)
	if err != nil {
		return found
	}
	for _, u := range s.objects {
		if gvk := u.GroupVersionKind(); gvk.GroupVersion() == gv && resourceOf(gvk) == resource && (namespace == "" || u.GetNamespace() == namespace) && byLabel.Matches(labels.Set(u.GetLabels())) {
			found = append(found, u.Object)
		}
	}
	return found
}

// refusal is a failure with the message of an API server, of an object if it has a name.
func refusal(code int, reason metav1.StatusReason, name string) (int, any) {
	status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: fmt.Sprintf("refused: %s", reason)}
	if name != "" {
		status.Details = &metav1.StatusDetails{Name: name}
	}
	return code, status
}

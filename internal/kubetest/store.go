package kubetest

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// storePage is how many objects a list of a Store holds at most, so that readers have to go on.
const storePage = 2

// Store is a server that keeps whatever is applied, by its path, and lists and deletes it. It knows nothing of merging or
// admission: those are seen on a real API server. What tests need it for is to fail where that one does not.
type Store struct {
	*Server

	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	version int
	hook    func(http.ResponseWriter, *http.Request) bool
}

// NewStore starts an empty store that ends with the test.
func NewStore(t *testing.T) *Store {
	t.Helper()
	s := &Store{Server: New(t), objects: map[string]*unstructured.Unstructured{}}
	s.HandleFunc("/", s.serve)
	return s
}

// Hook sees each request first, and reports whether it has answered it; nil for none.
func (s *Store) Hook(answer func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = answer
}

// Put stores an object at a path, as if another client had created it.
func (s *Store) Put(at string, object *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(at, object)
}

// Remove takes the objects away whose path begins so.
func (s *Store) Remove(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.objects, func(at string, _ *unstructured.Unstructured) bool { return strings.HasPrefix(at, prefix) })
}

// Paths are where objects are kept, sorted.
func (s *Store) Paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

func (s *Store) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hook != nil && s.hook(w, r) {
		return
	}
	there, name := s.objects[r.URL.Path], path.Base(r.URL.Path)
	switch {
	case r.Method == http.MethodPatch:
		s.apply(w, r, there)
	case r.Method == http.MethodDelete && there != nil:
		if !strings.Contains(string(readAll(r)), `"dryRun":["All"]`) && !r.URL.Query().Has("dryRun") {
			delete(s.objects, r.URL.Path)
		}
		Write(w, 200, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
	case there != nil:
		Write(w, 200, there)
	case r.URL.Path == "/apis":
		Write(w, 200, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}})
	case r.Method == http.MethodGet && r.URL.Query().Has("limit"):
		s.list(w, r)
	default:
		Write(w, 404, Status(404, metav1.StatusReasonNotFound, name+" not found", &metav1.StatusDetails{Name: name}))
	}
}

func (s *Store) apply(w http.ResponseWriter, r *http.Request, there *unstructured.Unstructured) {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(readAll(r), &object.Object); err != nil {
		panic(err)
	}
	if there != nil && equality.Semantic.DeepEqual(written(there), written(object)) {
		Write(w, 200, there)
		return
	}
	if r.URL.Query().Has("dryRun") {
		Write(w, 200, object)
		return
	}
	s.put(r.URL.Path, object)
	Write(w, 200, object)
}

func (s *Store) put(at string, object *unstructured.Unstructured) {
	s.version++
	object.SetResourceVersion(strconv.Itoa(s.version))
	object.SetUID(types.UID("uid-" + object.GetName()))
	if object.GetKind() == "CustomResourceDefinition" {
		_ = unstructured.SetNestedSlice(object.Object, []any{map[string]any{"type": "Established", "status": "True"}}, "status", "conditions")
	}
	s.objects[at] = object
}

// written is what was applied of an object.
func written(object *unstructured.Unstructured) map[string]any {
	o := object.DeepCopy()
	o.SetResourceVersion("")
	o.SetUID("")
	delete(o.Object, "status")
	return o.Object
}

// list lists the objects of a resource, in any namespace unless the path names one, that the selectors pick.
func (s *Store) list(w http.ResponseWriter, r *http.Request) {
	root, resource := path.Split(r.URL.Path)
	byLabel, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		panic(err)
	}
	byField, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		panic(err)
	}
	var found []any
	version, kind := "v1", "List" // of a resource without objects nothing is known
	for _, at := range slices.Sorted(maps.Keys(s.objects)) {
		o := s.objects[at]
		if strings.HasPrefix(at, root) && path.Base(path.Dir(at)) == resource && byLabel.Matches(labels.Set(o.GetLabels())) && byField.Matches(podFields(o)) {
			found = append(found, o.Object)
			version, kind = o.GetAPIVersion(), o.GetKind()+"List"
		}
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	page, next := found[min(from, len(found)):], ""
	if len(page) > storePage {
		page, next = page[:storePage], strconv.Itoa(from+storePage)
	}
	Write(w, 200, map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"continue": next}, "items": append([]any{}, page...)})
}

// podFields are the fields by which pods can be selected here.
func podFields(o *unstructured.Unstructured) fields.Set {
	scheduler, _, _ := unstructured.NestedString(o.Object, "spec", "schedulerName")
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	return fields.Set{"metadata.name": o.GetName(), "spec.schedulerName": scheduler, "status.phase": phase}
}

func readAll(r *http.Request) []byte {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	return body
}

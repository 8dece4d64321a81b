package suspend

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// liveAPI is an API server that has one TFJob, and lists of several. Paths and limits are those that were requested, as they were.
type liveAPI struct {
	mu     sync.Mutex
	job    *unstructured.Unstructured
	listed int // how many TFJobs a list has
	paths  []string
	limits []int
}

const (
	tfjobsPath = "/apis/kubeflow.org/v1/tfjobs"
	llamaPath  = "/apis/kubeflow.org/v1/namespaces/ns/tfjobs/llama"
)

func (a *liveAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paths = append(a.paths, r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case llamaPath:
		if r.Method == http.MethodPatch {
			_ = unstructured.SetNestedField(a.job.Object, true, "spec", "runPolicy", "suspend")
		}
		_ = json.NewEncoder(w).Encode(a.job.Object)
	case tfjobsPath:
		_ = json.NewEncoder(w).Encode(a.page(r))
	default:
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(apierrors.NewNotFound(schema.GroupResource{}, "").Status())
	}
}

// page is the part of the list that was requested: all of it without a limit.
func (a *liveAPI) page(r *http.Request) map[string]any {
	query := r.URL.Query()
	from, _ := strconv.Atoi(query.Get("continue"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	a.limits = append(a.limits, limit)
	to, next := a.listed, ""
	if limit > 0 && from+limit < a.listed {
		to, next = from+limit, strconv.Itoa(from+limit)
	}
	items := []any{}
	for i := from; i < to; i++ {
		items = append(items, tfjob(fmt.Sprint("job", i), map[string]string{Label: Value}).Object)
	}
	return map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJobList", "metadata": map[string]any{"continue": next}, "items": items}
}

// live is a suspender with a client that goes through what a client does on its own: it refuses names, and builds paths.
func live(t *testing.T, api *liveAPI) *Suspender {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	config := newBench().Config
	config.Dynamic = client
	return New(config)
}

// Anyone may give jobs our label: they are read a few at a time.
func TestRecallReadsPages(t *testing.T) {
	api := &liveAPI{listed: 3*recallPage - 1}
	s := live(t, api)
	if err := s.Recall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(s.entries()); n != api.listed {
		t.Errorf("recalled %d of %d jobs", n, api.listed)
	}
	for _, limit := range api.limits {
		if limit <= 0 || limit > recallPage {
			t.Errorf("requested pages of %v jobs", api.limits)
			break
		}
	}
}

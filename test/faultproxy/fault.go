package faultproxy

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Match selects requests.
type Match func(*http.Request) bool

// Binding selects the request that binds a pod to a node.
func Binding(namespace, pod string) Match {
	path := "/api/v1/namespaces/" + namespace + "/pods/" + pod + "/binding"
	return func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Path == path }
}

// Bindings selects every request that binds a pod of a namespace.
func Bindings(namespace string) Match {
	return func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/binding") &&
			strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/"+namespace+"/pods/")
	}
}

// Watches selects the requests that watch a resource in all namespaces, or one
// that has none: /api/v1/pods.
func Watches(path string) Match {
	return func(r *http.Request) bool {
		watch := r.URL.Query().Get("watch")
		return r.Method == http.MethodGet && r.URL.Path == path && (watch == "true" || watch == "1")
	}
}

// Writes selects every request that changes something.
func Writes(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
}

// Fault is what happens to a request.
type Fault func(w http.ResponseWriter, r *http.Request, forward http.Handler)

// Answer refuses a request as an API server does. Reason is one of Kubernetes',
// such as Conflict.
func Answer(code int, reason metav1.StatusReason, message string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { refuse(w, code, reason, message) }
}

// Gone refuses a watch because its resourceVersion is too old.
func Gone() Fault {
	return Answer(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
}

// Expire begins a watch and ends it at once, as an API server does that finds
// out later that its resourceVersion is too old.
func Expire() Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"type": "ERROR", "object": status(http.StatusGone, metav1.StatusReasonExpired, "too old resource version"),
		})
	}
}

// Lose does the request, and drops the response: the client cannot
// know whether it was done.
func Lose() Fault {
	return func(_ http.ResponseWriter, r *http.Request, forward http.Handler) {
		forward.ServeHTTP(&discard{header: http.Header{}}, r)
		panic(http.ErrAbortHandler) // how a handler closes its connection
	}
}

// Delay holds a request up before it is done.
func Delay(d time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			forward.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status(code, reason, message))
}

func status(code int, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
}

type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

// Package kubetest serves the answers of an API server that are hard to get from a real one: refusals, failures in the
// middle of a write, lost connections. Tests only; what can be seen on a real API server is tested there.
package kubetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
)

// Server serves the answers that a test configures. A path without one is a 404, as for a missing CRD.
type Server struct {
	*http.ServeMux

	url      string
	mu       sync.Mutex
	requests []string
	bodies   []string
}

// New starts a server that ends with the test.
func New(t *testing.T) *Server {
	t.Helper()
	s := &Server{ServeMux: http.NewServeMux()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
		s.bodies = append(s.bodies, string(body))
		s.mu.Unlock()
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// Client returns a client of the server.
func (s *Server) Client() (*kube.Client, error) {
	return kube.NewClient(&rest.Config{Host: s.url, QPS: -1})
}

// Requests are the requests so far: METHOD URI.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// otherKinds are the paths of jobs that are no TFJobs.
var otherKinds = regexp.MustCompile(`/(pytorchjobs|mpijobs|xgboostjobs|paddlejobs|jaxjobs|trainjobs|jobsets|leaderworkersets|rayjobs|rayclusters|jobs)(/|\?|$)`)

// AboutTFJobs are the requests so far without those that look for jobs of other kinds, which are made at the same time.
func (s *Server) AboutTFJobs() []string {
	return slices.DeleteFunc(s.Requests(), otherKinds.MatchString)
}

// Body is the body of the n-th request.
func (s *Server) Body(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[n]
}

// Answer makes the server answer a pattern of http.ServeMux with an object in JSON.
func (s *Server) Answer(pattern string, code int, object any) {
	s.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { Write(w, code, object) })
}

// Refuse makes the server answer a pattern with a Status.
func (s *Server) Refuse(pattern string, code int, reason metav1.StatusReason, message string, details *metav1.StatusDetails) {
	s.Answer(pattern, code, Status(code, reason, message, details))
}

// NoJobs has the server serve Jobs, as every cluster does, and have none.
func (s *Server) NoJobs() *Server {
	const path = "GET /apis/batch/v1/namespaces/{namespace}/jobs"
	s.Answer(path, 200, map[string]any{"apiVersion": "batch/v1", "kind": "JobList", "metadata": map[string]any{}, "items": []any{}})
	s.HandleFunc(path+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		Write(w, 404, Status(404, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Name: r.PathValue("name"), Kind: "jobs"}))
	})
	return s
}

// Status is a failure as an API server reports it.
func Status(code int, reason metav1.StatusReason, message string, details *metav1.StatusDetails) *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message, Details: details}
}

// Write writes an object in JSON.
func Write(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(object); err != nil {
		panic(fmt.Sprintf("kubetest: %v", err)) // the object of a test cannot be encoded
	}
}

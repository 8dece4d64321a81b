package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/gang"
)

// source has two gangs.
type source struct {
	err   error
	empty bool
}

func (s source) Leading() bool { return true }

func (s source) Gangs(namespace string) ([]Gang, error) {
	if s.err != nil || s.empty {
		return nil, s.err
	}
	var list []Gang
	for _, g := range []Gang{{Namespace: "research", Name: "llama", State: gang.Pending}, {Namespace: "vision", Name: "resnet", State: gang.Running}} {
		if namespace == "" || namespace == g.Namespace {
			list = append(list, g)
		}
	}
	return list, nil
}

func get(t *testing.T, s Source, method, target string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(s).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, nil))
	if kind := w.Header().Get("Content-Type"); kind != "application/json" {
		t.Errorf("%s %s: content type %q", method, target, kind)
	}
	return w.Code, w.Body.String()
}

func TestServe(t *testing.T) {
	for _, c := range []struct {
		target string
		names  string
	}{{Path, "llama resnet"}, {Path + "?namespace=vision", "resnet"}, {Path + "?namespace=nobody", ""}} {
		code, body := get(t, source{}, http.MethodGet, c.target)
		var list List
		if err := json.Unmarshal([]byte(body), &list); err != nil || code != http.StatusOK {
			t.Fatalf("%s: %d, %v: %s", c.target, code, err, body)
		}
		var names []string
		for _, g := range list.Items {
			names = append(names, g.Name)
		}
		if got := strings.Join(names, " "); got != c.names || list.APIVersion != APIVersion || list.Kind != Kind || !list.Leading || list.At.IsZero() {
			t.Errorf("%s: %q, %+v", c.target, got, list)
		}
	}
	if _, body := get(t, source{empty: true}, http.MethodGet, Path); !strings.Contains(body, `"items":[]`) {
		t.Errorf("no gangs: %s", body)
	}
}

func TestServeRefuses(t *testing.T) {
	for _, c := range []struct {
		source         source
		method, target string
		code           int
		want           string
	}{
		{source{}, http.MethodPost, Path, http.StatusMethodNotAllowed, "POST is not supported"},
		{source{}, http.MethodGet, Path + "?namspace=x", http.StatusBadRequest, `query parameter \"namspace\"`},
		{source{}, http.MethodGet, Path + "?namespace=a&namespace=b", http.StatusBadRequest, "once"},
		{source{}, http.MethodGet, Path + "?namespace=A_b", http.StatusBadRequest, `namespace \"A_b\"`},
		{source{}, http.MethodGet, Path + "?namespace=", http.StatusBadRequest, "namespace"},
		{source{err: ErrNotReady}, http.MethodGet, Path, http.StatusServiceUnavailable, "does not know all"},
		{source{err: errors.New("on fire")}, http.MethodGet, Path, http.StatusInternalServerError, "on fire"},
	} {
		code, body := get(t, c.source, c.method, c.target)
		if code != c.code || !strings.Contains(body, c.want) || !strings.Contains(body, `"kind":"Status"`) {
			t.Errorf("%s %s: %d %s", c.method, c.target, code, body)
		}
	}
}

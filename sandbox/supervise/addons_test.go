package supervise

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A server that listens may not have all webhooks yet, such as Trainer's, which registers them later.
func TestServes(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/first", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	condition := serves(strings.TrimPrefix(server.URL, "https://"), []string{"/first", "/second"})
	if err := condition(t.Context()); err == nil || err.Error() != "there is no /second" {
		t.Errorf("got %v", err)
	}
	mux.HandleFunc("/second", func(http.ResponseWriter, *http.Request) {})
	if err := condition(t.Context()); err != nil {
		t.Error(err)
	}
	server.Close()
	if condition(t.Context()) == nil {
		t.Error("no server serves")
	}
}

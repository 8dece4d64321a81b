package faultproxy

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gangctl/gangctl/internal/poll"
)

// server answers like an API server that binds every pod.
func server(t *testing.T) (config *rest.Config, bound *atomic.Int32) {
	bound = &atomic.Int32{}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "who is it?")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/binding") {
			bound.Add(1)
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Status","status":"Success"}`))
	}))
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, bound
}

func start(t *testing.T) (*Proxy, kubernetes.Interface, *atomic.Int32) {
	config, bound := server(t)
	p, err := Start(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	own := p.Config()
	own.BearerToken = "secret"
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		t.Fatal(err)
	}
	return p, client, bound
}

func bind(ctx context.Context, client kubernetes.Interface, name string) error {
	return client.CoreV1().Pods("ns").Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
}

func TestFaults(t *testing.T) {
	p, client, bound := start(t)
	ctx := t.Context()
	p.Inject(1, Binding("ns", "a"), Answer(http.StatusConflict, metav1.StatusReasonConflict, "no"))
	if err := bind(ctx, client, "b"); err != nil {
		t.Errorf("a pod without a fault: %v", err)
	}
	if err := bind(ctx, client, "a"); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	if err := bind(ctx, client, "a"); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if got := bound.Load(); got != 2 {
		t.Errorf("%d pods were bound, want 2", got)
	}

	remove := p.Inject(-1, Bindings("ns"), Lose())
	for range 2 {
		if err := bind(ctx, client, "c"); err == nil {
			t.Error("the answer was not lost")
		}
	}
	if got := bound.Load(); got < 4 {
		t.Errorf("%d pods were bound, want 4 at least: what was asked is done", got)
	}
	remove()
	if err := bind(ctx, client, "d"); err != nil {
		t.Errorf("after the fault: %v", err)
	}
	if got := p.Count(Binding("ns", "a")); got != 2 {
		t.Errorf("%d requests for a were counted, want 2", got)
	}
	if got := p.Count(Writes); got != len(p.Requests()) {
		t.Errorf("%d writes of %d requests", got, len(p.Requests()))
	}
}

func TestDelay(t *testing.T) {
	p, client, bound := start(t)
	remove := p.Inject(1, Bindings("ns"), Delay(time.Hour))
	defer remove()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- bind(ctx, client, "a") }()
	poll.Until(t, "the request has come", func() bool { return p.Count(Bindings("ns")) == 1 })
	cancel()
	if err := <-answered; err == nil {
		t.Error("a request that hangs was answered")
	}
	remove()
	if got := bound.Load(); got != 0 {
		t.Errorf("%d pods were bound, want none", got)
	}
	p.Inject(1, Bindings("ns"), Delay(time.Millisecond))
	if err := bind(t.Context(), client, "a"); err != nil {
		t.Error(err)
	}
}

func TestAway(t *testing.T) {
	p, client, _ := start(t)
	ctx := t.Context()
	if err := bind(ctx, client, "a"); err != nil {
		t.Fatal(err)
	}
	p.Down()
	err := bind(ctx, client, "a") // this may be how the client learns that its connection has ended
	if err == nil {
		t.Error("a server that is away answered")
	}
	for deadline := time.Now().Add(10 * time.Second); !utilnet.IsConnectionRefused(err); err = bind(ctx, client, "a") {
		if time.Now().After(deadline) {
			t.Fatalf("of a server that is away: %v, want that connections are refused", err)
		}
	}
	url := p.URL()
	if err := p.Up(); err != nil {
		t.Fatal(err)
	}
	if err := bind(ctx, client, "a"); err != nil || p.URL() != url {
		t.Errorf("after it came back, at %s: %v", p.URL(), err)
	}
	if err := p.Cut(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		if err := bind(ctx, client, "a"); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("after the connections ended: %v", err)
		}
	}
}

func TestWatchesExpire(t *testing.T) {
	p, client, _ := start(t)
	p.Inject(1, Watches("/api/v1/pods"), Gone())
	p.Inject(1, Watches("/api/v1/pods"), Expire())
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	if _, err := pods.Watch(t.Context(), metav1.ListOptions{}); !apierrors.IsResourceExpired(err) {
		t.Errorf("got %v, want that it expired", err)
	}
	w, err := pods.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	select {
	case event := <-w.ResultChan():
		if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) {
			t.Errorf("got %s %v, want that it expired", event.Type, err)
		}
	case <-time.After(10 * time.Second):
		t.Error("nothing came")
	}
	if got := p.Count(Watches("/api/v1/pods")); got != 2 {
		t.Errorf("%d watches were counted, want 2", got)
	}
}

func TestKubeconfig(t *testing.T) {
	p, _, bound := start(t)
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\n" +
		"clusters: [{name: c, cluster: {server: https://elsewhere, certificate-authority-data: Zm9v}}]\n" +
		"users: [{name: u, user: {token: secret}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
	if err := os.WriteFile(from, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteKubeconfig(from, to); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", to)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := bind(t.Context(), client, "a"); err != nil || bound.Load() != 1 {
		t.Errorf("bound %d: %v", bound.Load(), err)
	}
}

package podlog

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// Server answers for the kubelets of all nodes.
type Server struct {
	// Client reads pods.
	Client kubernetes.Interface
	// Clock determines what has been logged so far.
	Clock clock.Clock
	// EndsAtAnnotation of a pod is when its run is over.
	EndsAtAnnotation string
	// EndedAtAnnotation is when the run before was over.
	EndedAtAnnotation string
	// LogFile is the file with what the container of a pod has written, if a
	// program really runs in it; nil if none does in any.
	LogFile func(pod *corev1.Pod, previous bool) (path string, ok bool)
}

// Address is where and as whom to serve on 127.0.0.1.
type Address struct {
	Port      int
	Cert, Key string
	// ClientCA signs the only client that gets answers: the API server.
	ClientCA string
}

// Serve answers until ctx ends.
func (s Server) Serve(ctx context.Context, a Address) error {
	ca, err := os.ReadFile(a.ClientCA)
	if err != nil {
		return fmt.Errorf("read client certificate authority: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca)
	server := &http.Server{
		Handler: s.handler(),
		// Health is served to any client, logs only to the API server.
		TLSConfig:         &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(a.Port)))
	if err != nil {
		return fmt.Errorf("serve kubelet API: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(listener, a.Cert, a.Key); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve kubelet API: %w", err)
	}
	return nil
}

func (s Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.logs)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "the sandbox simulates containers: there is no program in them that could answer "+r.URL.Path, http.StatusNotImplemented)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
			http.Error(w, "only the API server may read logs", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

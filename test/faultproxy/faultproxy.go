// Package faultproxy stands between a client and an API server and lets tests
// break what happens between the two: requests that are refused, that hang,
// whose answer is lost, and a server that is away.
package faultproxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// Proxy passes on every request to an API server, except those for which a
// fault was injected. Clients keep their own credentials. Its methods may be
// called from several goroutines.
type Proxy struct {
	forward     *httputil.ReverseProxy
	server      *http.Server
	address     string
	certificate []byte

	mu       sync.Mutex
	rules    []*rule
	listener net.Listener // nil while the server is away
	conns    map[net.Conn]bool
	seen     []Request
}

// Request is one that a client made.
type Request struct{ Method, Path, Query string }

type rule struct {
	match Match
	fault Fault
	left  int // how often it applies; negative for no end
}

// Start starts a proxy before the server of a configuration, on a port of its
// own. Close ends it.
func Start(config *rest.Config) (*Proxy, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", config.Host, err)
	}
	// Only the server's certificate is taken from the configuration: the caller is
	// for the client to decide.
	transport, err := rest.TransportFor(&rest.Config{
		Host:            config.Host,
		TLSClientConfig: rest.TLSClientConfig{CAFile: config.CAFile, CAData: config.CAData, ServerName: config.ServerName},
	})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	p := &Proxy{conns: map[net.Conn]bool{}}
	p.forward = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	// Clients send no token to a server without a certificate.
	var key []byte
	if p.certificate, key, err = cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil); err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(p.certificate, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	p.server = &http.Server{Handler: p, ConnState: p.track, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}}
	p.address = "127.0.0.1:0"
	return p, p.Up()
}

// Close ends the proxy and every connection.
func (p *Proxy) Close() error {
	if err := p.server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close proxy: %w", err)
	}
	return nil
}

// URL is where the proxy listens.
func (p *Proxy) URL() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return "https://" + p.address
}

// Config returns a client configuration without credentials for the proxy.
func (p *Proxy) Config() *rest.Config {
	return &rest.Config{Host: p.URL(), QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: p.certificate}}
}

// WriteKubeconfig writes a copy of a kubeconfig, with the same credentials and
// this proxy for its server.
func (p *Proxy) WriteKubeconfig(from, to string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	for name := range config.Clusters {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: p.URL(), CertificateAuthorityData: p.certificate}
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig: %w", err)
	}
	return os.WriteFile(to, data, 0o600)
}

// Inject breaks the next requests that match, as many as times; all of
// them if it is negative. Of several faults the first that was injected counts.
// The function that it returns takes the fault away.
func (p *Proxy) Inject(times int, match Match, fault Fault) (remove func()) {
	r := &rule{match: match, fault: fault, left: times}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		r.left = 0
	}
}

// Down lets the server be away: connections end, watches among them, and new
// ones are refused. Up brings it back.
func (p *Proxy) Down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// Up ends Down. The proxy listens where it did before.
func (p *Proxy) Up() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		return nil
	}
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	p.listener, p.address = listener, listener.Addr().String()
	go func() { _ = p.server.ServeTLS(listener, "", "") }()
	return nil
}

// Cut ends every connection once, watches among them. Clients connect again.
func (p *Proxy) Cut() error {
	p.Down()
	return p.Up()
}

// Count returns how many requests that match came since the start, broken ones
// included.
func (p *Proxy) Count(match Match) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.seen {
		if match(&http.Request{Method: s.Method, URL: &url.URL{Path: s.Path, RawQuery: s.Query}}) {
			n++
		}
	}
	return n
}

// Requests returns the requests since the start, in order.
func (p *Proxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Request(nil), p.seen...)
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := p.take(r)
	if fault == nil {
		p.forward.ServeHTTP(w, r)
		return
	}
	fault(w, r, p.forward)
}

// take records a request and returns what is to happen to it; nil for nothing.
func (p *Proxy) take(r *http.Request) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery})
	for _, rule := range p.rules {
		if rule.left == 0 || !rule.match(r) {
			continue
		}
		if rule.left > 0 {
			rule.left--
		}
		return rule.fault
	}
	return nil
}

// track knows the connections. One that was accepted while the server went away
// ends, too.
func (p *Proxy) track(conn net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateNew:
		p.conns[conn] = true
		if p.listener == nil {
			_ = conn.Close()
		}
	case http.StateClosed, http.StateHijacked:
		delete(p.conns, conn)
	default:
	}
}

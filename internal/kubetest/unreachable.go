package kubetest

import (
	"net"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
)

// Away are clients of unreachable servers: one whose address refuses connections, and one that does not answer in time. The keys are parts
// of the error messages that users get.
func Away(t *testing.T) map[string]func() (*kube.Client, error) {
	t.Helper()
	slow, released := New(t), make(chan struct{})
	slow.HandleFunc("/", func(http.ResponseWriter, *http.Request) { <-released })
	t.Cleanup(func() { close(released) })
	client := func(config *rest.Config) func() (*kube.Client, error) {
		return func() (*kube.Client, error) { return kube.NewClient(config) }
	}
	return map[string]func() (*kube.Client, error){
		"cannot reach the API server":   client(&rest.Config{Host: "http://" + Refusing(t)}),
		"no answer from the API server": client(&rest.Config{Host: slow.url, Timeout: 50 * time.Millisecond}),
	}
}

// Refusing returns an address, HOST:PORT, that refuses connections until the test ends. A port that was listened at and closed would be
// free for others: here it belongs to the client's side of a connection, where nothing listens.
func Refusing(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	// With an address of its own the port is bound, and no other connection gets it, either.
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.LocalAddr().String()
}

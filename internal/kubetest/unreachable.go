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
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	slow, released := New(t), make(chan struct{})
	slow.HandleFunc("/", func(http.ResponseWriter, *http.Request) { <-released })
	t.Cleanup(func() { close(released) })
	client := func(config *rest.Config) func() (*kube.Client, error) {
		return func() (*kube.Client, error) { return kube.NewClient(config) }
	}
	return map[string]func() (*kube.Client, error){
		"cannot reach the API server":   client(&rest.Config{Host: "http://" + closed.Addr().String()}),
		"no answer from the API server": client(&rest.Config{Host: slow.url, Timeout: 50 * time.Millisecond}),
	}
}

package supervise

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/gangctl/gangctl/pkg/cli/failure"

	"github.com/gangctl/gangctl/sandbox/addon"
)

// The ports of a sandbox, all on 127.0.0.1.
const (
	portAPIServer     = "apiserver"
	portScheduler     = "scheduler"
	portKubelet       = "kubelet"
	portOperatorProbe = "operator-probe"
	portWebhook       = "operator-webhook"
)

// RequireFree refuses a port that another process listens on.
func RequireFree(port int) error {
	l, err := listen(port)
	if err != nil {
		return failure.Errorf("port %d on 127.0.0.1 cannot be used: %w", port, err).
			WithHint("choose another one with --port, or leave it out for any free one")
	}
	return l.Close()
}

// probePort and webhookPort name the ports of a controller of another project.
func probePort(c addon.Controller) string   { return c.Name + "-probe" }
func webhookPort(c addon.Controller) string { return c.Name + "-webhook" }

// choosePorts picks a port for everybody. Those of the last run are kept while
// they are free, so that addresses which users wrote down stay valid.
func choosePorts(last map[string]int, apiserver int, addons ...addon.Controller) (ports map[string]int, err error) {
	names := []string{portAPIServer, portScheduler, portKubelet, portOperatorProbe, portWebhook}
	for _, c := range addons {
		names = append(names, probePort(c), webhookPort(c))
	}
	ports = map[string]int{}
	var open []net.Listener
	defer func() {
		for _, l := range open {
			err = errors.Join(err, l.Close())
		}
	}()
	for _, name := range names {
		want := last[name]
		if name == portAPIServer && apiserver != 0 {
			want = apiserver
		}
		l, err := listen(want)
		if err != nil && want == apiserver {
			return nil, RequireFree(apiserver)
		}
		if err != nil {
			if l, err = listen(0); err != nil {
				return nil, fmt.Errorf("find a free port for %s: %w", name, err)
			}
		}
		open = append(open, l)
		ports[name] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

package process

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// eagerly is how often a container that is not ready yet is probed, whatever
// the period of its probes: tests should not wait for that.
const eagerly = 200 * time.Millisecond

// watch runs the container's probes until ctx ends: onReady is called on each
// change, and onDead once if it should be started again.
func (c *container) watch(ctx context.Context, onReady func(bool), onDead func()) {
	if c.spec.StartupProbe != nil && !c.await(ctx, c.spec.StartupProbe) {
		if ctx.Err() == nil {
			onDead()
		}
		return
	}
	var ready, dead tally
	known := false
	for {
		if change, now := ready.count(c.answers(ctx, c.spec.ReadinessProbe), c.spec.ReadinessProbe); ctx.Err() == nil && (change || !known) {
			known = true
			onReady(now)
		}
		if c.spec.LivenessProbe != nil {
			if dead.count(c.answers(ctx, c.spec.LivenessProbe), c.spec.LivenessProbe); dead.failures >= max(1, c.spec.LivenessProbe.FailureThreshold) && ctx.Err() == nil {
				onDead()
				return
			}
		}
		every := eagerly
		if ready.ok && c.spec.ReadinessProbe != nil {
			every = time.Duration(max(1, c.spec.ReadinessProbe.PeriodSeconds)) * time.Second
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

// await waits for a startup probe; it is false if that fails for too long.
func (c *container) await(ctx context.Context, probe *corev1.Probe) bool {
	limit := time.Duration(max(1, probe.FailureThreshold)*max(1, probe.PeriodSeconds)) * time.Second
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		if c.answers(ctx, probe) == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(eagerly):
		}
	}
	return false
}

// tally counts a probe's answers.
type tally struct {
	ok       bool
	failures int32
}

// count adds an answer, and returns the result of the probe and whether that is
// a change.
func (t *tally) count(err error, probe *corev1.Probe) (change, ok bool) {
	before := t.ok
	if err == nil {
		t.ok, t.failures = true, 0
	} else if t.failures++; probe == nil || t.failures >= max(1, probe.FailureThreshold) {
		t.ok = false
	}
	return t.ok != before, t.ok
}

// answers probes once. Without a probe all is well.
func (c *container) answers(ctx context.Context, probe *corev1.Probe) error {
	if probe == nil {
		return nil
	}
	if probe.HTTPGet == nil {
		return fmt.Errorf("the sandbox probes over HTTP only")
	}
	port, err := c.port(probe.HTTPGet.Port)
	if err != nil {
		return err
	}
	scheme := strings.ToLower(string(probe.HTTPGet.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	url := scheme + "://" + net.JoinHostPort(address, strconv.Itoa(port)) + probe.HTTPGet.Path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	// As a kubelet: it does not know who signed the certificate of a container.
	client := &http.Client{
		Timeout:   time.Duration(max(1, probe.TimeoutSeconds)) * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // see above
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode >= 400 {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}

// port is where the process listens for a port of the container.
func (c *container) port(want intstr.IntOrString) (int, error) {
	for _, port := range c.spec.Ports {
		if port.ContainerPort == want.IntVal || (want.Type == intstr.String && port.Name == want.StrVal) {
			return c.ports[port.ContainerPort], nil
		}
	}
	return 0, fmt.Errorf("the container has no port %s", want.String())
}

package collect_test

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
)

var options = collect.Options{Now: func() time.Time { return clustertest.Now }}

// crew is a cluster of two nodes and a gang of two.
func crew(nodes ...string) *clustertest.Cluster {
	return clustertest.New().Nodes(2, 8).Add(clustertest.Gang{Name: "llama", Workers: 2, GPUs: 4, Nodes: nodes})
}

func mirror(t *testing.T, c *kubetest.Cluster, o collect.Options) *collect.Mirror {
	t.Helper()
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	m, err := collect.NewMirror(t.Context(), client, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func shot(t *testing.T, m *collect.Mirror) *snapshot.Snapshot {
	t.Helper()
	s, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// apart are the fields in which a watch of this server and a list of it differ: the versions are others, and its lists come in
// JSON, of which less is left out.
var apart = regexp.MustCompile(`(?m)^.*\b(resourceVersion|image|startedAt):.*\n`)

// saved is a snapshot as a file would have it.
func saved(t *testing.T, s *snapshot.Snapshot) string {
	t.Helper()
	var out strings.Builder
	if err := s.Write(&out); err != nil {
		t.Fatal(err)
	}
	return apart.ReplaceAllString(out.String(), "")
}

// What comes of watching is what a new snapshot would be: after pods are bound, are gone, and are there again.
func TestMirrorKeepsUp(t *testing.T) {
	t.Parallel()
	states := []*clustertest.Cluster{crew(), crew("n1", "n2"), crew("n1"), clustertest.New().Nodes(1, 8), crew("n2", "n2").Serves("api", 1, "n1")}
	c := kubetest.Serve(t, states[0].Done())
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	m := mirror(t, c, options)
	for i, state := range states {
		if i > 0 {
			c.Set(state.Done())
		}
		fresh, err := collect.Collect(t.Context(), client, options)
		if err != nil {
			t.Fatal(err)
		}
		want, got := saved(t, fresh), ""
		for deadline := time.Now().Add(30 * time.Second); got != want; time.Sleep(time.Millisecond) {
			if got = saved(t, shot(t, m)); time.Now().After(deadline) {
				t.Fatalf("state %d: -want +got\n%s", i, cmp.Diff(want, got))
			}
		}
		if lost := m.Lost(); len(lost) > 0 {
			t.Errorf("state %d: got %+v", i, lost)
		}
	}
}

// Each kind is listed once, and watched once, however much changes.
func TestMirrorListsOnce(t *testing.T) {
	t.Parallel()
	c := kubetest.Serve(t, crew().Done())
	m := mirror(t, c, options)
	for i := range 20 {
		before, state := m.Changes(), crew("n1")
		if i%2 == 1 {
			state = crew()
		}
		c.Set(state.Done())
		poll.Until(t, "a change", func() bool { return m.Changes() > before })
	}
	lists, watches := map[string]int{}, map[string]int{}
	for _, r := range c.Requests() {
		path, query, _ := strings.Cut(strings.TrimPrefix(r, "GET "), "?")
		if strings.Contains(query, "watch=true") {
			watches[path]++
		} else {
			lists[path]++
		}
	}
	for _, path := range []string{"/api/v1/nodes", "/api/v1/pods", "/apis/kubeflow.org/v1/tfjobs", "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"} {
		if lists[path] != 1 || watches[path] != 1 {
			t.Errorf("%s: %d lists, %d watches", path, lists[path], watches[path])
		}
	}
}

// A watch that is lost is reported, with what was tried; when it is there again, what happened meanwhile is known.
func TestMirrorReportsWhatIsLost(t *testing.T) {
	t.Parallel()
	c := kubetest.Serve(t, crew().Done())
	m := mirror(t, c, options)
	c.Fail("/api/v1/pods", kubetest.Status(500, metav1.StatusReasonInternalError, "etcd is gone", nil))
	poll.Until(t, "pods are lost", func() bool { return len(m.Lost()) == 1 })
	l := m.Lost()[0]
	if l.Resource != "pods" || !l.Since.Equal(clustertest.Now) || !strings.Contains(l.Err.Error(), "etcd is gone") || len(shot(t, m).Pods) != 2 {
		t.Errorf("got %+v, %v", l, l.Err)
	}
	c.Set(crew("n1", "n2").Done())
	c.Fail("/api/v1/pods", nil)
	poll.Until(t, "pods are bound", func() bool { return shot(t, m).Pods[0].Spec.NodeName == "n1" && len(m.Lost()) == 0 })
}

// What may be listed and not watched is listed again.
func TestMirrorListsWhatItMayNotWatch(t *testing.T) {
	t.Parallel()
	c := kubetest.Serve(t, crew().Done())
	c.Unwatch("/api/v1/pods")
	m := mirror(t, c, options)
	c.Set(crew("n1", "n2").Done())
	poll.Until(t, "pods are bound", func() bool { return shot(t, m).Pods[0].Spec.NodeName == "n1" })
	if polled := m.Polled(); !slices.Equal(polled, []string{"pods"}) || len(m.Lost()) > 0 {
		t.Errorf("got %v, %+v", polled, m.Lost())
	}
}

// What may not be listed is written down as in any snapshot, and there once it may be.
func TestMirrorDenied(t *testing.T) {
	t.Parallel()
	c := kubetest.Serve(t, crew().Done())
	c.Deny("bob", "/api/v1/nodes", "/api/v1/pods")
	in := options
	in.Namespace = "team"
	m := mirror(t, c, in)
	s := shot(t, m)
	if s.CanList("nodes", "") || s.CanList("pods", "") || !s.CanList("pods", "team") || len(s.Pods) != 2 || s.Caller != "bob" {
		t.Errorf("got %+v, %d pods, %q", s.Denied, len(s.Pods), s.Caller)
	}
	c.Set(crew("n1").Done())
	poll.Until(t, "the pods of the namespace are watched", func() bool { return shot(t, m).Pods[0].Spec.NodeName == "n1" })
	c.Fail("/api/v1/nodes", nil)
	poll.Until(t, "nodes are there", func() bool { s := shot(t, m); return s.CanList("nodes", "") && len(s.Nodes) == 2 })
}

// A server that cannot be reached at the start is an error.
func TestMirrorNeedsTheServer(t *testing.T) {
	t.Parallel()
	for want, get := range kubetest.Away(t) {
		client, err := get()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := collect.NewMirror(t.Context(), client, options); err == nil || !strings.Contains(failure.From(err).Message, want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	c := kubetest.Serve(t, crew().Done())
	c.Fail("/api/v1/pods", kubetest.Status(500, metav1.StatusReasonInternalError, "etcd is gone", nil))
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collect.NewMirror(t.Context(), client, options); err == nil || !strings.Contains(err.Error(), "etcd is gone") {
		t.Errorf("got %v", err)
	}
}

// A server that sends nothing any more, while its connections stand, is noticed within seconds, and when it is back, too.
func TestMirrorNoticesSilence(t *testing.T) {
	t.Parallel()
	c := kubetest.Serve(t, crew().Done())
	release := c.Mute()
	defer release()
	m := mirror(t, c, options)
	poll.Until(t, "the server is away", func() bool { return len(m.Lost()) == 1 })
	if l := m.Lost()[0]; l.Resource != "the API server" || !l.Since.Equal(clustertest.Now) || !strings.Contains(failure.From(l.Err).Message, "in time") {
		t.Errorf("got %+v, %s", l, failure.From(l.Err).Message)
	}
	release()
	poll.Until(t, "it is back", func() bool { return len(m.Lost()) == 0 })
}

// Nothing is left of a mirror that is closed while the server sends something.
func TestMirrorIsGoneWhenClosed(t *testing.T) {
	states := []*snapshot.Snapshot{crew().Done(), crew("n1", "n2").Done()}
	c := kubetest.Serve(t, states[0])
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	for i := range 30 {
		m, err := collect.NewMirror(t.Context(), client, options)
		if err != nil {
			t.Fatal(err)
		}
		c.Set(states[i%2])
		m.Close()
	}
	transport, err := rest.TransportFor(client.Config) // client-go has one for all clients of a configuration
	if err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "nothing is left", func() bool {
		utilnet.CloseIdleConnectionsFor(transport)
		return runtime.NumGoroutine() <= before
	})
}

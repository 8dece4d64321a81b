package kubetest

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

// Cluster serves the lists of a snapshot, which may change meanwhile.
type Cluster struct {
	*Server

	mu sync.Mutex
	// states are all that were served so far; the last one is now, and its number, from 1 on, is the resource version.
	states []*snapshot.Snapshot
	broken map[string]*metav1.Status // by path
	// unwatched are the paths that may be listed, and not watched.
	unwatched map[string]bool
	// muted, if it is not nil, is closed when the version is to be served again; versions counts the requests for it.
	muted    chan struct{}
	versions int
	// changed is closed, and made again, when something changes.
	changed chan struct{}
}

// Serve starts a server that ends with the test. What it lists can be watched. A kind that the snapshot cannot hold, or that is not listed here, is a 404.
func Serve(t *testing.T, s *snapshot.Snapshot) *Cluster {
	t.Helper()
	l := &Cluster{Server: New(t), states: []*snapshot.Snapshot{s}, broken: map[string]*metav1.Status{}, unwatched: map[string]bool{}, changed: make(chan struct{})}
	l.endWatches(t)
	l.HandleFunc("GET /version", l.version)
	l.Answer("GET /api", 200, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	l.Answer("GET /api/v1", 200, metav1.APIResourceList{GroupVersion: "v1"})
	jobs, groups := l.group("kubeflow.org", "v1", "tfjobs", "TFJob"), l.group("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
	l.Answer("GET /apis", 200, metav1.APIGroupList{Groups: []metav1.APIGroup{jobs, groups}})
	l.list("/api/v1", "nodes", func(s *snapshot.Snapshot, _ string) map[string]any { return items("v1", "Node", s.Nodes) })
	l.list("/api/v1", "pods", func(s *snapshot.Snapshot, ns string) map[string]any { return items("v1", "Pod", of(s.Pods, ns)) })
	l.list("/apis/apps/v1", "deployments", func(s *snapshot.Snapshot, ns string) map[string]any {
		return items("apps/v1", "Deployment", of(s.Deployments, ns))
	})
	l.list("/apis/coordination.k8s.io/v1", "leases", func(s *snapshot.Snapshot, ns string) map[string]any {
		return items("coordination.k8s.io/v1", "Lease", of(s.Leases, ns))
	})
	l.list("/apis/kubeflow.org/v1", "tfjobs", func(s *snapshot.Snapshot, ns string) map[string]any {
		return items("kubeflow.org/v1", "TFJob", of(s.Custom[schema.GroupKind{Group: "kubeflow.org", Kind: "TFJob"}], ns))
	})
	l.list("/apis/scheduling.x-k8s.io/v1alpha1", "podgroups", func(s *snapshot.Snapshot, ns string) map[string]any {
		return items("scheduling.x-k8s.io/v1alpha1", "PodGroup", of(s.Custom[schema.GroupKind{Group: "scheduling.x-k8s.io", Kind: "PodGroup"}], ns))
	})
	return l
}

func (l *Cluster) group(group, v, resource, kind string) metav1.APIGroup {
	gv := metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + v, Version: v}
	l.Answer("GET /apis/"+gv.GroupVersion, 200, metav1.APIResourceList{GroupVersion: gv.GroupVersion, APIResources: []metav1.APIResource{
		{Name: resource, Kind: kind, Namespaced: true, Verbs: []string{"list"}}}})
	return metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{gv}, PreferredVersion: gv}
}

// of are the objects of a namespace, or all.
func of[T metav1.Object](all []T, namespace string) []T {
	var some []T
	for _, obj := range all {
		if namespace == "" || obj.GetNamespace() == namespace {
			some = append(some, obj)
		}
	}
	return some
}

func items[T any](apiVersion, kind string, all []T) map[string]any {
	if all == nil {
		all = []T{}
	}
	return map[string]any{"kind": kind + "List", "apiVersion": apiVersion, "items": all}
}

// list serves a kind in all namespaces and in each.
func (l *Cluster) list(root, resource string, pick picker) {
	answer := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			l.watch(w, r, pick)
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if status := l.broken[r.URL.Path]; status != nil {
			Write(w, int(status.Code), status)
			return
		}
		if len(l.states) == 0 { // the test has ended
			return
		}
		list := pick(l.states[len(l.states)-1], r.PathValue("namespace"))
		list["metadata"] = map[string]any{"resourceVersion": strconv.Itoa(len(l.states))}
		Write(w, 200, list)
	}
	l.HandleFunc("GET "+root+"/"+resource, answer)
	l.HandleFunc("GET "+root+"/namespaces/{namespace}/"+resource, answer)
}

// change makes a change and notifies the watchers.
func (l *Cluster) change(what func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what()
	close(l.changed)
	l.changed = make(chan struct{})
}

// Set changes what is served.
func (l *Cluster) Set(s *snapshot.Snapshot) { l.change(func() { l.states = append(l.states, s) }) }

// Fail makes a path fail, and ends the watches there are of it; nil heals it.
func (l *Cluster) Fail(path string, status *metav1.Status) {
	l.change(func() { l.broken[path] = status })
}

// Unwatch makes watches of a path forbidden, and ends those that there are; lists are still answered.
func (l *Cluster) Unwatch(path string) { l.change(func() { l.unwatched[path] = true }) }

// Mute makes the server answer only the first request for its version, and the others when it is released. Watches have no events anyway,
// as nothing changes.
func (l *Cluster) Mute() (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.muted = make(chan struct{})
	return sync.OnceFunc(func() { close(l.muted) })
}

func (l *Cluster) version(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	muted := l.muted
	l.versions++
	first := l.versions == 1
	l.mu.Unlock()
	if muted != nil && !first {
		select {
		case <-muted:
		case <-r.Context().Done():
			return
		}
	}
	Write(w, 200, version.Info{GitVersion: "v1.37.1"})
}

// Deny makes lists forbidden, with an authorizer's message.
func (l *Cluster) Deny(user string, paths ...string) {
	for _, path := range paths {
		parts := strings.Split(path, "/")
		l.Fail(path, Status(403, metav1.StatusReasonForbidden, `x is forbidden: User "`+user+`" cannot list resource "`+parts[len(parts)-1]+`"`, nil))
	}
}

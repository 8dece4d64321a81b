package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"
)

var claimResource = resourcev1.SchemeGroupVersion.WithResource("resourceclaims")

// claimServer is an API server that may begin and cease to serve claims.
type claimServer struct {
	t     *testing.T
	clock *testclock.FakeClock
	store cache.SharedIndexInformer

	mu      sync.Mutex
	serves  bool
	broken  error
	queries int
	objects []string
	watches []*watch.FakeWatcher
}

// List implements ListWatchClient.
func (s *claimServer) List(context.Context, metav1.ListOptions) (*resourcev1.ResourceClaimList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serves {
		return nil, apierrors.NewNotFound(claimResource.GroupResource(), "")
	}
	list := &resourcev1.ResourceClaimList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for _, name := range s.objects {
		list.Items = append(list.Items, resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}})
	}
	return list, nil
}

// Watch implements ListWatchClient.
func (s *claimServer) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serves {
		return nil, apierrors.NewNotFound(claimResource.GroupResource(), "")
	}
	w := watch.NewFake()
	s.watches = append(s.watches, w)
	return w, nil
}

func (s *claimServer) served(_ context.Context, resource schema.GroupVersionResource) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if resource != claimResource {
		return false, fmt.Errorf("queried for %s", resource)
	}
	s.queries++
	return s.serves, s.broken
}

// change does something to the server.
func (s *claimServer) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// start watches a server until the test ends.
func start(t *testing.T, s *claimServer) *claimServer {
	t.Helper()
	s.t, s.clock = t, testclock.NewFakeClock(time.Unix(1000, 0))
	lister := &OptionalLister[*resourcev1.ResourceClaimList]{
		Resource: claimResource, Client: s, Served: s.served, Clock: s.clock,
		NewList: func() *resourcev1.ResourceClaimList { return &resourcev1.ResourceClaimList{} },
	}
	s.store = cache.NewSharedIndexInformer(lister, &resourcev1.ResourceClaim{}, 0, cache.Indexers{})
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	work.Go(func() { s.store.RunWithContext(ctx) })
	t.Cleanup(func() { cancel(); work.Wait() })
	return s
}

func (s *claimServer) eventually(what string, done func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("not within 20s: %s", what)
		}
	}
}

func (s *claimServer) knows(want ...string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%q are known", want), func() bool {
		return s.store.HasSynced() && strings.Join(s.store.GetStore().ListKeys(), " ") == strings.Join(want, " ")
	})
}

// recheck lets the time pass after which discovery is queried again.
func (s *claimServer) recheck() {
	s.t.Helper()
	s.eventually("a query is due", s.clock.HasWaiters)
	s.clock.Step(recheckServed)
}

// A server that does not serve claims has none, at once; one that was made
// to serve them since is listed.
func TestNotServedThenServed(t *testing.T) {
	s := start(t, &claimServer{objects: []string{"a"}})
	s.knows()
	s.change(func() { s.broken = errors.New("away") })
	s.recheck()
	s.change(func() { s.broken = nil })
	queries := s.queries
	s.recheck()
	s.eventually("discovery is queried again", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.queries > queries })
	s.knows()
	s.change(func() { s.serves = true })
	s.recheck()
	s.knows("n/a")
	s.eventually("claims are watched", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.watches) == 1 })
	s.watches[0].Add(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b", ResourceVersion: "8"}})
	s.eventually("the new claim is known", func() bool { return len(s.store.GetStore().ListKeys()) == 2 })
}

// Claims that were served are gone when they are not any more.
func TestServedThenNot(t *testing.T) {
	s := start(t, &claimServer{serves: true, objects: []string{"a"}})
	s.knows("n/a")
	s.eventually("claims are watched", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.watches) == 1 })
	s.change(func() { s.serves = false })
	s.watches[0].Error(&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410})
	s.knows()
}

// A failed discovery does not count as an API that is not served.
func TestUnknown(t *testing.T) {
	s := start(t, &claimServer{broken: errors.New("away")})
	s.eventually("discovery is queried twice", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.queries >= 2 })
	if s.store.HasSynced() {
		t.Error("took an API for absent without knowing")
	}
	s.change(func() { s.broken = nil })
	s.knows()
}

func TestDiscovery(t *testing.T) {
	client := fake.NewClientset()
	client.Resources = []*metav1.APIResourceList{{GroupVersion: "resource.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "resourceclaims"}, {Name: "resourceclaims/status"}}}}
	served := DiscoveryServed(client.Discovery())
	for resource, want := range map[schema.GroupVersionResource]bool{
		claimResource: true,
		resourcev1.SchemeGroupVersion.WithResource("devicetaintrules"):                    false, // of a newer server
		{Group: "resource.k8s.io", Version: "v1beta1", Resource: "resourceclaims"}:        false,
		{Group: "composite.example.com", Version: "v1alpha3", Resource: "resourceclaims"}: false,
	} {
		if got, err := served(t.Context(), resource); err != nil || got != want {
			t.Errorf("%s: %t, %v, want %t", resource, got, err, want)
		}
	}
}

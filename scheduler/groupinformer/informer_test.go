package groupinformer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	testclock "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/poll"
)

var (
	crds         = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	groups       = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	nativeGroups = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1beta1", Resource: "podgroups"}
)

func definition(name, established string) *unstructured.Unstructured {
	served := func(version string, storage bool) any {
		return map[string]any{"name": version, "served": true, "storage": storage, "schema": map[string]any{"big": "schema"}}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": name, "annotations": map[string]any{"last": "applied"}},
		"spec":     map[string]any{"versions": []any{served("v1", false), served("v1alpha1", true)}, "names": "many"},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": "True"},
			map[string]any{"type": "Established", "status": established},
		}},
	}}
}

func object(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{"namespace": "research", "name": name},
		"spec":     map[string]any{"minMember": int64(2)}, "other": "field",
	}}
}

const crdName = "podgroups.scheduling.x-k8s.io"

// log records the calls of an informer.
type log struct {
	mu    sync.Mutex
	calls []string
}

func (l *log) add(call string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, call)
}

func (l *log) SetObject(r schema.GroupVersionResource, u *unstructured.Unstructured) {
	l.add("set " + r.Version + " " + u.GetName())
}
func (l *log) DeleteObject(_ schema.GroupVersionResource, _, name string) { l.add("delete " + name) }
func (l *log) Reset(r schema.GroupVersionResource)                        { l.add("reset " + r.Group) }
func (l *log) Problem(r schema.GroupVersionResource, err error) {
	if err != nil {
		l.add("problem " + r.Group)
	}
}

func (l *log) waitFor(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		l.mu.Lock()
		got = append([]string(nil), l.calls...)
		l.mu.Unlock()
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
	}
	t.Fatalf("calls %q, want %q", got, want)
}

// rig is an informer on an API server in memory.
type rig struct {
	*Informer
	t       *testing.T
	client  *dynamicfake.FakeDynamicClient
	calls   *log
	clock   *testclock.FakeClock
	version atomic.Value // of what is built in
	queries atomic.Int32 // for what is built in
	logger  klog.Logger
}

func newRig(t *testing.T, objects ...runtime.Object) *rig {
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		crds: "CustomResourceDefinitionList", groups: "PodGroupList", nativeGroups: "PodGroupList",
	}, objects...)
	r := &rig{t: t, client: client, calls: &log{}, clock: testclock.NewFakeClock(time.Unix(1e9, 0)), logger: klog.Background()}
	r.version.Store("")
	r.Informer = &Informer{
		Client: client, Custom: []schema.GroupResource{groups.GroupResource()}, Handler: r.calls, Clock: r.clock,
		BuiltIn: []BuiltIn{{GroupResource: nativeGroups.GroupResource(), Version: func(context.Context) (string, error) {
			version := r.version.Load().(string)
			defer r.queries.Add(1)
			if version == "error" {
				return "", errors.New("no answer")
			}
			return version, nil
		}}},
	}
	return r
}

// run runs the informer until the test ends.
func (r *rig) run() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(r.t.Context(), r.logger))
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("Run = %v", err)
		}
	})
}

func (r *rig) synced(why string) {
	r.t.Helper()
	poll.Until(r.t, "it has synced "+why, r.HasSynced)
}

func (r *rig) apply(_ *unstructured.Unstructured, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestFeedFollowsItsAPI(t *testing.T) {
	r := newRig(t, object("early"))
	r.run()
	ctx := t.Context()
	r.synced("though the API is known not to be served")
	r.calls.waitFor(t) // nothing

	definitions := r.client.Resource(crds)
	r.apply(definitions.Create(ctx, definition("unrelated.example.com", "True"), metav1.CreateOptions{}))
	r.apply(definitions.Create(ctx, definition(crdName, "False"), metav1.CreateOptions{}))
	r.apply(definitions.Update(ctx, definition(crdName, "True"), metav1.UpdateOptions{}))
	r.calls.waitFor(t, "set v1alpha1 early")
	r.synced("with the API served")
	if u, ok := r.Get(groups, "research", "early"); !ok || u.Object["spec"] == nil || u.Object["other"] != nil {
		t.Errorf("Get = %v, %v, want the object with spec and without what nobody reads", u, ok)
	}

	objects := r.client.Resource(groups).Namespace("research")
	r.apply(objects.Create(ctx, object("late"), metav1.CreateOptions{}))
	r.calls.waitFor(t, "set v1alpha1 early", "set v1alpha1 late")
	if err := objects.Delete(ctx, "early", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.calls.waitFor(t, "set v1alpha1 early", "set v1alpha1 late", "delete early")
	if err := definitions.Delete(ctx, crdName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.calls.waitFor(t, "set v1alpha1 early", "set v1alpha1 late", "delete early", "reset scheduling.x-k8s.io")
	if _, ok := r.Get(groups, "research", "late"); ok {
		t.Error("Get finds an object of an API that is not served")
	}
	r.apply(definitions.Create(ctx, definition(crdName, "True"), metav1.CreateOptions{}))
	r.calls.waitFor(t, "set v1alpha1 early", "set v1alpha1 late", "delete early", "reset scheduling.x-k8s.io", "set v1alpha1 late")

	watches := 0
	for _, action := range r.client.Actions() {
		if action.GetVerb() == "watch" && action.GetResource() == crds {
			watches++
		}
	}
	if watches != 1 {
		t.Errorf("%d watches of definitions, want 1 however many APIs there are", watches)
	}
}

// looker gets each object that it is called with.
type looker struct {
	*log
	informer *Informer
	missed   atomic.Bool // an object
	called   func()
}

func (l *looker) SetObject(r schema.GroupVersionResource, u *unstructured.Unstructured) {
	if _, ok := l.informer.Get(r, u.GetNamespace(), u.GetName()); !ok {
		l.missed.Store(true)
	}
	l.called()
}

// What the handler is called with can be got, however early: the informer is held up until the first object has come.
func TestGetFindsWhatIsReported(t *testing.T) {
	r := newRig(t, definition(crdName, "True"), object("early"))
	reported := make(chan struct{})
	handler := &looker{log: r.calls, informer: r.Informer, called: sync.OnceFunc(func() { close(reported) })}
	r.Handler = handler
	r.logger = funcr.New(func(_, line string) {
		if strings.Contains(line, "Gang API is served") {
			<-reported
		}
	}, funcr.Options{})
	r.run()
	r.synced("with the object")
	if handler.missed.Load() {
		t.Error("an object was reported that Get did not find")
	}
}

// pass lets time pass when the informer waits for it, and returns when it waits again.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	poll.Until(r.t, "the informer waits", r.clock.HasWaiters)
	r.clock.Step(d)
	poll.Until(r.t, "the informer waits again", r.clock.HasWaiters)
}

func TestBuiltInAPIs(t *testing.T) {
	u := object("early")
	u.SetAPIVersion("scheduling.k8s.io/v1beta1")
	r := newRig(t, u)
	r.version.Store("error")
	r.run()
	r.calls.waitFor(t, "problem scheduling.k8s.io")
	r.pass(retryPeriod) // and the definitions are long known
	if n := r.queries.Load(); n != 2 || r.HasSynced() {
		t.Errorf("%d queries, want 2; synced %v though it is not known whether there are gangs", n, r.HasSynced())
	}
	r.version.Store("v1beta1")
	r.pass(retryPeriod)
	r.synced("with an answer")
	r.calls.waitFor(t, "problem scheduling.k8s.io", "problem scheduling.k8s.io", "set v1beta1 early")
	r.version.Store("error")
	r.pass(recheckPeriod)
	r.pass(recheckPeriod)
	r.version.Store("")
	r.pass(recheckPeriod)
	r.calls.waitFor(t, "problem scheduling.k8s.io", "problem scheduling.k8s.io", "set v1beta1 early", "reset scheduling.k8s.io")
	if n := r.queries.Load(); n != 6 {
		t.Errorf("%d queries, want 6: once a minute", n)
	}
}

// Of one API it is never known whether it is served. The others must not wait for
// that as long as the API server runs.
func TestABuiltInAPIThatIsUnknown(t *testing.T) {
	u := object("early")
	u.SetAPIVersion("scheduling.k8s.io/v1beta1")
	r := newRig(t, u)
	r.version.Store("error")
	r.run()
	poll.Until(t, "the definitions are read", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.defined != nil && r.defined()
	})
	r.pass(retryPeriod) // now it is noticed, if it was not before the first query
	r.pass(patience - 2*retryPeriod)
	if r.HasSynced() {
		t.Error("it was given up too soon")
	}
	r.pass(2 * retryPeriod)
	r.synced("though the others are known for long")
	r.version.Store("v1beta1")
	r.pass(retryPeriod)
	r.synced("when it is known after all")
	if _, ok := r.Get(nativeGroups, "research", "early"); !ok {
		t.Error("it is not read when it is known after all")
	}
}

func TestAnAPIThatCannotBeReadBlocksNoGang(t *testing.T) {
	r := newRig(t, definition(crdName, "True"), object("early"))
	var refuse atomic.Bool
	refuse.Store(true)
	r.client.PrependReactor("list", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refuse.Load(), nil, errors.New("forbidden")
	})
	r.run()
	r.synced("because of an API that refuses")
	r.calls.waitFor(t, "problem scheduling.x-k8s.io")
	refuse.Store(false)
	poll.Until(t, "the objects are read when the API answers again", func() bool {
		_, ok := r.Get(groups, "research", "early")
		return ok
	})
}

func TestAServerWithoutDefinitions(t *testing.T) {
	r := newRig(t, object("early"))
	r.version.Store("v1beta1")
	var served atomic.Bool
	r.client.PrependReactor("list", crds.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return !served.Load(), nil, apierrors.NewNotFound(crds.GroupResource(), "")
	})
	native := object("native")
	native.SetAPIVersion("scheduling.k8s.io/v1beta1")
	r.apply(r.client.Resource(nativeGroups).Namespace("research").Create(t.Context(), native, metav1.CreateOptions{}))
	r.run()
	r.synced("on a server that has no custom resources")
	r.calls.waitFor(t, "set v1beta1 native")
	served.Store(true)
	r.apply(r.client.Resource(crds).Create(t.Context(), definition(crdName, "True"), metav1.CreateOptions{}))
	r.calls.waitFor(t, "set v1beta1 native", "set v1alpha1 early")
}

func TestVersion(t *testing.T) {
	now := metav1.Now()
	for _, tt := range []struct {
		name   string
		change func(*unstructured.Unstructured)
		want   string
	}{
		{"that in which it is stored", func(*unstructured.Unstructured) {}, "v1alpha1"},
		{"the first that is served", func(u *unstructured.Unstructured) {
			u.Object["spec"].(map[string]any)["versions"].([]any)[1].(map[string]any)["served"] = false
		}, "v1"},
		{"on its way out", func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(&now) }, ""},
		{"names not accepted", func(u *unstructured.Unstructured) { delete(u.Object, "status") }, ""},
	} {
		u := definition(crdName, "True")
		tt.change(u)
		kept, err := onlyServed(map[string]schema.GroupResource{crdName: groups.GroupResource()})(u)
		if err != nil {
			t.Fatal(err)
		}
		if got := version(kept); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if text := fmt.Sprint(kept); strings.Contains(text, "big") || strings.Contains(text, "applied") || strings.Contains(text, "many") {
			t.Errorf("kept %s", text)
		}
	}
}

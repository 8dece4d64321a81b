package scheduler

import (
	"context"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/scheduler/gangcache"
)

// A replica that waits for the lease knows all gangs, and keeps no list of those
// that changed. When it leads it looks at every one, those too that are an object
// and no pods yet.
func TestAStandbyRemembersNoChanges(t *testing.T) {
	r := newRig(t)
	var mu sync.Mutex
	var looked []string
	r.leading.subscribers = []func(gang.Key){func(key gang.Key) {
		mu.Lock()
		defer mu.Unlock()
		looked = append(looked, key.String())
	}}
	member := func(name string) *corev1.Pod {
		return r.pod(name, DefaultName, func(pod *corev1.Pod) { labels.SetGroup(&pod.ObjectMeta, llama.Name, 2) })
	}
	bare := gang.Key{Dialect: gang.Volcano, Namespace: namespace, Name: "bare"}
	kind := volcano.Reader().Kinds[0].GroupKind
	for range 3 {
		pod := member("a-0")
		r.members.Live.Apply(func() gangcache.Change { return r.cache.SetPod(pod) })
		r.members.Live.Apply(func() gangcache.Change { return r.cache.DeletePod(pod.UID) })
	}
	r.members.Live.Apply(func() gangcache.Change { return r.cache.SetPod(member("a-0")) })
	r.members.Live.Apply(func() gangcache.Change { return r.cache.SetObject(bare, gangcache.Object{GroupKind: kind}) })
	if len(looked) > 0 {
		t.Errorf("it does not lead, and remembers %q", looked)
	}

	engine := &upstream.Scheduler{NextEntity: func(klog.Logger) (framework.QueuedEntityInfo, error) { return nil, nil }}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	r.follow(ctx, &work, engine, func() {})
	cancel() // nothing is to be written
	defer work.Wait()
	if _, err := engine.NextEntity(klog.Background()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	first := slices.Clone(looked)
	mu.Unlock()
	for _, key := range []gang.Key{bare, llama} {
		if !slices.Contains(first, key.String()) {
			t.Errorf("it leads, and does not look at %s: %q", key, first)
		}
	}
	r.members.Live.Apply(func() gangcache.Change { return r.cache.SetPod(member("a-1")) })
	mu.Lock()
	defer mu.Unlock()
	if len(looked) != len(first)+1 {
		t.Errorf("it looks at %q after one change", looked[len(first):])
	}
}

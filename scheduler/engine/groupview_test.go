package engine

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewVirtualGroups()
		groups := NewGroupView(cache.NewSharedIndexInformer(store, &schedulingv1beta1.PodGroup{}, 0, cache.Indexers{}), store)
		set := func(priority int32) {
			store.Set(&schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "g"}, Spec: schedulingv1beta1.PodGroupSpec{Priority: &priority}})
		}
		var seen atomic.Int32
		release := make(chan struct{}, 10)
		for range 2 { // the slower of two counts
			slow := seen.Load() == 0
			seen.Store(1)
			_, err := groups.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, obj any) {
				if slow {
					<-release
					seen.Store(*obj.(*schedulingv1beta1.PodGroup).Spec.Priority)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		names := []types.NamespacedName{{Namespace: "research", Name: "g"}}
		groups.WaitHandled(names) // before it runs there is nothing to wait for
		set(5)
		go groups.RunWithContext(t.Context())
		eventually(t, "it has synced", groups.HasSynced)
		groups.WaitHandled(names)

		set(6)
		time.AfterFunc(50*time.Millisecond, func() { release <- struct{}{} })
		groups.WaitHandled(names)
		if got := seen.Load(); got != 6 {
			t.Errorf("the handler had seen priority %d, want 6", got)
		}
		groups.WaitHandled([]types.NamespacedName{{Namespace: "research", Name: "unknown"}})

		set(7)
		start := time.Now()
		groups.WaitHandled(names) // the handler is not released
		if waited := time.Since(start); waited != paceLimit {
			t.Errorf("gave up after %s, want %s", waited, paceLimit)
		}
		release <- struct{}{}
	})
}

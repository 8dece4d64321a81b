package kubetest

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gangctl/gangctl/internal/poll"
)

// AwaitWatch returns when a resource is watched through a fake client. What changes between the list and the watch is lost there: it has no
// resource versions to watch from.
func AwaitWatch(t testing.TB, client *clienttesting.Fake, resource string) {
	t.Helper()
	poll.Until(t, "a watch of "+resource, func() bool {
		return slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool { return a.Matches("watch", resource) })
	})
}

// SelectWatched has the watches of pods of a fake client respect their label selectors, as an API server does. By itself it sends all pods.
func SelectWatched(client *clienttesting.Fake, stored clienttesting.ObjectTracker) {
	client.PrependWatchReactor("pods", func(a clienttesting.Action) (bool, watch.Interface, error) {
		all, err := stored.Watch(a.GetResource(), a.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		selector := a.(clienttesting.WatchAction).GetWatchRestrictions().Labels
		return true, watch.Filter(all, func(e watch.Event) (watch.Event, bool) {
			pod, ok := e.Object.(*corev1.Pod)
			return e, ok && selector.Matches(labels.Set(pod.Labels))
		}), nil
	})
}

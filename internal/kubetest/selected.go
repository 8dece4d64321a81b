package kubetest

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gangctl/gangctl/internal/poll"
)

// AwaitWatch returns when a resource is watched through a fake client. What is deleted between the list and the watch is lost there: the watch
// begins with what is newer than the list, and what is gone is not among that.
func AwaitWatch(t testing.TB, client *clienttesting.Fake, resource string) {
	t.Helper()
	poll.Until(t, "a watch of "+resource, func() bool {
		return slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool { return a.Matches("watch", resource) })
	})
}

// SelectWatched has the watches of pods of a fake client respect their label selectors, as an API server does. By itself it sends all pods.
func SelectWatched(client *clienttesting.Fake, stored clienttesting.ObjectTracker) {
	client.PrependWatchReactor("pods", func(a clienttesting.Action) (bool, watch.Interface, error) {
		all, err := stored.Watch(a.GetResource(), a.GetNamespace(), WatchedFrom(a))
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

// WatchedFrom returns the options of a watch. A tracker of objects that gets them begins with what has changed since the list; without them,
// that is lost.
func WatchedFrom(a clienttesting.Action) metav1.ListOptions {
	return a.(clienttesting.WatchActionImpl).ListOptions
}

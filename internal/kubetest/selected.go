package kubetest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

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

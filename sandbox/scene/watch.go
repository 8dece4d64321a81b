package scene

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// WaitFor watches the pods of a namespace until the scene is as wanted, and
// returns it. When ctx ends first, the error shows the last scene.
func WaitFor(ctx context.Context, client kubernetes.Interface, namespace string, wanted func(Scene) bool) (Scene, error) {
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	pods := map[string]corev1.Pod{}
	var last Scene
	reached := func() bool {
		all := make([]corev1.Pod, 0, len(pods))
		for _, pod := range pods {
			all = append(all, pod)
		}
		last = Of(all)
		return wanted(last)
	}
	synced := func(store cache.Store) (bool, error) {
		for _, obj := range store.List() {
			if pod, ok := obj.(*corev1.Pod); ok {
				pods[pod.Name] = *pod
			}
		}
		return reached(), nil
	}
	_, err := watchtools.UntilWithSync(ctx, source, &corev1.Pod{}, synced, func(e watch.Event) (bool, error) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok {
			return false, fmt.Errorf("watch pods of namespace %s: %v", namespace, e.Object)
		}
		if e.Type == watch.Deleted {
			delete(pods, pod.Name)
		} else {
			pods[pod.Name] = *pod
		}
		return reached(), nil
	})
	if err != nil {
		return last, fmt.Errorf("wait for the pods of namespace %s: %w; last seen: %s", namespace, err, last)
	}
	return last, nil
}

// String lists the members and their states, for errors and logs.
func (s Scene) String() string {
	parts := make([]string, 0, len(s))
	for _, m := range s {
		parts = append(parts, fmt.Sprintf("%s %s", m.Pod, m.State))
	}
	return strings.Join(parts, ", ")
}

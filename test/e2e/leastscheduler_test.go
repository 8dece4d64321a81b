package e2e

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/sandbox/demo"
)

// leastScheduler is the schedulerName of a scheduler that does the least that any has to do: it watches the pods of the cluster, as nobody
// can tell before which of them name it, and binds the members of a gang to a given node as soon as it has seen them all. It thinks about
// nothing. How long it takes is how long the API server takes, on this machine and at this time.
const leastScheduler = "least"

// runLeastScheduler runs it until the test ends. Its gangs are pods of one value of a label, of a given size.
func runLeastScheduler(t *testing.T, stage *demo.Stage, label string, size int, node string) {
	t.Helper()
	config := stage.Config()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	factory := informers.NewSharedInformerFactory(client, 0)
	seen := map[string][]*corev1.Pod{}
	pods := factory.Core().V1().Pods().Informer()
	_, err = pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		p, ok := obj.(*corev1.Pod)
		if !ok || p.Spec.SchedulerName != leastScheduler || p.Spec.NodeName != "" {
			return
		}
		gang := p.Labels[label]
		if seen[gang] = append(seen[gang], p); len(seen[gang]) == size {
			for _, member := range seen[gang] {
				go bind(t.Context(), client, member, node)
			}
			delete(seen, gang)
		}
	}})
	must(t, err)
	factory.StartWithContext(t.Context())
	t.Cleanup(factory.Shutdown)
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		t.Fatal("the pods cannot be watched")
	}
}

// bind tries until it succeeds or the test ends: the test waits for what is bound, and says what is not.
func bind(ctx context.Context, client kubernetes.Interface, p *corev1.Pod, node string) {
	for ctx.Err() == nil {
		err := client.CoreV1().Pods(p.Namespace).Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name, UID: p.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{})
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

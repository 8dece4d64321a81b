// Package leastscheduler is a scheduler that does the least that any has to do: it watches the pods of the cluster, as it is not known before which of
// them name it, and binds the members of a gang as soon as it has seen them all. It thinks about nothing. How long it takes is how long the API server
// takes, on this machine and at this time: the floor for all others.
package leastscheduler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Name is its schedulerName.
const Name = "least"

// Gangs is what it knows of gangs.
type Gangs struct {
	// Label is that of the members; its value is the gang.
	Label string
	// Size is how many members a gang has.
	Size func(gang string) int
	// Node is where the next member goes; how many are there already does not matter to it.
	Node func() string
}

// syncTimeout is how long it takes at most until the pods are watched.
const syncTimeout = 90 * time.Second

// Start starts it, and returns when the pods are watched. It ends with ctx.
func Start(ctx context.Context, config *rest.Config, gangs Gangs) error {
	config = rest.CopyConfig(config)
	config.ContentType, config.QPS = "application/vnd.kubernetes.protobuf", -1 // the API server sets the pace
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	seen := map[string][]*corev1.Pod{}
	pods := factory.Core().V1().Pods().Informer()
	_, err = pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		p, ok := obj.(*corev1.Pod)
		if !ok || p.Spec.SchedulerName != Name || p.Spec.NodeName != "" {
			return
		}
		gang := p.Labels[gangs.Label]
		if seen[gang] = append(seen[gang], p); len(seen[gang]) == gangs.Size(gang) {
			for _, member := range seen[gang] {
				go bind(ctx, client, member, gangs.Node())
			}
			delete(seen, gang)
		}
	}})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	factory.StartWithContext(ctx)
	context.AfterFunc(ctx, factory.Shutdown)
	synced, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if !cache.WaitForCacheSync(synced.Done(), pods.HasSynced) {
		return fmt.Errorf("watch pods: %w", context.Cause(synced))
	}
	return nil
}

// bind tries until it succeeds or ctx ends: who measures waits for what is bound, and reports what is not.
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

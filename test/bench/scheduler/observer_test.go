package scheduler

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// observer sees when members are bound.
type observer struct {
	mu      sync.Mutex
	gangs   map[string]*observed
	seen    map[string]bool
	started int // gangs of which all members are bound
	want    int
	done    chan struct{}
	first   time.Time // binding

	partial     int // gangs that are bound in part now
	since       time.Time
	partialTime time.Duration // summed over gangs
	longest     time.Duration // that of one gang which has started
}

// observed is one gang.
type observed struct {
	members, bound       int
	created, first, last time.Time // when the last member was created, and the first and the last one bound
}

// observe watches the members of gangs until want of them have started.
func observe(ctx context.Context, b testing.TB, client kubernetes.Interface, gangs []int, want int) *observer {
	o := &observer{gangs: map[string]*observed{}, seen: map[string]bool{}, want: want, done: make(chan struct{})}
	for i, members := range gangs {
		o.gangs[gangName(i)] = &observed{members: members}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = gangLabel }))
	pods := factory.Core().V1().Pods().Informer()
	look := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			o.bound(pod)
		}
	}
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, now any) { look(now) }})
	if err != nil {
		b.Fatal(err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		b.Fatal("the pods cannot be watched")
	}
	return o
}

func (o *observer) created(gang string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gangs[gang].created = time.Now()
}

func (o *observer) bound(pod *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	g := o.gangs[pod.Labels[gangLabel]]
	if g == nil || o.seen[pod.Name] {
		return
	}
	o.seen[pod.Name] = true
	now := time.Now()
	o.partialTime += time.Duration(o.partial) * now.Sub(o.since)
	o.since = now
	if o.first.IsZero() {
		o.first = now
	}
	g.last = now
	if g.bound++; g.bound == 1 {
		o.partial++
		g.first = now
	}
	if g.bound == g.members {
		o.partial--
		o.longest = max(o.longest, now.Sub(g.first))
		if o.started++; o.started == o.want {
			close(o.done)
		}
	}
}

// inPart is how many gangs are bound in part.
func (o *observer) inPart() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.partial
}

// latencies are how long gangs took from their last member's creation, or the scheduler's start if that was later, to the last binding, in
// order.
func (o *observer) latencies(from time.Time) []time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	var latencies []time.Duration
	for _, g := range o.gangs {
		if g.bound == g.members {
			begin := g.created
			if from.After(begin) {
				begin = from
			}
			latencies = append(latencies, g.last.Sub(begin))
		}
	}
	slices.Sort(latencies)
	return latencies
}

// percentile is the value that a share of sorted values does not exceed.
func percentile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(share*float64(len(sorted)-1))]
}

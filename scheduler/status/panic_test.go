package status

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/gangcache"
)

// broken panics over one gang.
type broken struct {
	Gangs
	bad                gang.Key
	panicked, reported atomic.Int32
}

func (b *broken) Lack(key gang.Key) gangcache.Lack {
	if key == b.bad {
		b.panicked.Add(1)
		panic("what a tenant wrote")
	}
	b.reported.Add(1)
	return b.Gangs.Lack(key)
}

// A gang over which the controller panics is skipped until it changes; others are reported on.
func TestAPanicOverAGang(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace, pod.UID, pod.ResourceVersion = "p", key.Namespace, "p", "1"
	b := newBench(t, pod)
	gangs := &broken{Gangs: b.Gangs, bad: gang.Key{Dialect: key.Dialect, Namespace: key.Namespace, Name: "bad"}}
	b.Controller.Gangs = gangs
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	defer running.Wait()
	defer cancel()
	for round := range int32(3) {
		b.queue.Add(gangs.bad)
		b.queue.Add(b.key)
		for begun := time.Now(); gangs.reported.Load() <= round; time.Sleep(time.Millisecond) {
			if time.Since(begun) > 10*time.Second {
				t.Fatal("another gang is not reported on")
			}
		}
	}
	if got := gangs.panicked.Load(); got != 1 {
		t.Errorf("it panicked %d times, want once", got)
	}
}

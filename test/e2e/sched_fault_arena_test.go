package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/test/faultproxy"
)

// arena is two nodes of four CPUs, and a scheduler that has them for itself and
// talks to the API server through a proxy. Its gangs are those of the dialect
// without objects.
type arena struct {
	team
	process process
	proxy   *faultproxy.Proxy
	sched   *ownScheduler
}

func (c *cluster) arena(t *testing.T, name string, change ...func(*process)) *arena {
	t.Helper()
	_, stderr, err := c.Run("node", "add", "--count", "2", "--cpu", "4", "--gpus", "0", "--label", "arena="+name)
	if err != nil {
		t.Fatalf("add nodes: %v\n%s", err, stderr)
	}
	proxy, err := faultproxy.Start(c.Config)
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Close()) })
	w := labelsWire(t)
	w.scheduler = name
	a := &arena{team: c.with(t, w), proxy: proxy, process: process{dataDir: c.DataDir, proxy: proxy, name: name}}
	for _, f := range change {
		f(&a.process)
	}
	a.sched = a.process.start(t)
	return a
}

// gang creates members of a gang.
func (a *arena) gang(name string, min, count int) {
	a.t.Helper()
	a.members(name, min, count, a.here)
}

// member creates one of them, in the place of one that is gone.
func (a *arena) member(gang string, min int, name string) {
	a.t.Helper()
	pod := plain(name, a.scheduler, "1")
	a.setGroup(pod, gang, min)
	a.here(pod)
	eventually(a.t, name+" is created", func(ctx context.Context) bool { // its predecessor may be on its way out
		_, err := a.client.CoreV1().Pods(space).Create(ctx, pod, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			must(a.t, err)
		}
		return err == nil
	})
}

// singles creates pods of one CPU that are in no gang.
func (a *arena) singles(names ...string) {
	a.t.Helper()
	for _, name := range names {
		pod := plain(name, a.scheduler, "1")
		a.here(pod)
		a.create(a.t, pod)
	}
}

func (a *arena) here(pod *corev1.Pod) {
	pod.Spec.NodeSelector = map[string]string{"arena": a.scheduler}
}

// clear removes pods and waits until they are gone.
func (a *arena) clear(names ...string) {
	a.t.Helper()
	for _, name := range names {
		err := a.client.CoreV1().Pods(space).Delete(a.t.Context(), name, now())
		if !apierrors.IsNotFound(err) {
			must(a.t, err)
		}
		a.gone(name)
	}
}

func (a *arena) gone(name string) {
	a.t.Helper()
	eventually(a.t, name+" is gone", func(ctx context.Context) bool {
		_, err := a.client.CoreV1().Pods(space).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// restart ends the scheduler as by kill -9, and starts it again.
func (a *arena) restart() {
	a.t.Helper()
	a.sched.stop()
	a.sched.start()
}

// counted is a fault that counts how often it happens.
func counted(n *atomic.Int32, fault faultproxy.Fault) faultproxy.Fault {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		n.Add(1)
		fault(w, r, forward)
	}
}

// deletion selects the request that deletes a pod.
func deletion(names ...string) faultproxy.Match {
	return func(r *http.Request) bool {
		for _, name := range names {
			if r.Method == http.MethodDelete && r.URL.Path == "/api/v1/namespaces/"+space+"/pods/"+name {
				return true
			}
		}
		return false
	}
}

// audit fails the test if a node is ever given to more pods than it has CPUs. It
// sends requests to the API server itself, not through a proxy.
func (c *cluster) audit(t *testing.T, cpus int64) {
	t.Helper()
	a := &auditor{pods: map[types.UID]*corev1.Pod{}, milli: cpus * 1000}
	factory := informers.NewSharedInformerFactory(c.client, 0)
	registration, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: a.see, UpdateFunc: func(_, obj any) { a.see(obj) }, DeleteFunc: a.miss,
	})
	must(t, err)
	factory.StartWithContext(t.Context())
	eventually(t, "pods are watched", func(context.Context) bool { return registration.HasSynced() })
	t.Cleanup(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, finding := range a.findings {
			t.Error(finding)
		}
		if a.seen == 0 {
			t.Error("nothing was audited")
		}
	})
}

type auditor struct {
	mu       sync.Mutex
	pods     map[types.UID]*corev1.Pod // those with a node that have not ended
	milli    int64
	seen     int
	findings []string
}

func (a *auditor) see(obj any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		delete(a.pods, pod.UID)
		return
	}
	_, known := a.pods[pod.UID]
	a.pods[pod.UID] = pod
	if known {
		return
	}
	a.seen++
	var used int64
	var names []string
	for _, other := range a.pods {
		if other.Spec.NodeName == pod.Spec.NodeName {
			used += other.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
			names = append(names, other.Name)
		}
	}
	if used > a.milli {
		a.findings = append(a.findings, fmt.Sprintf("node %s was given to %s, when %s came", pod.Spec.NodeName, strings.Join(names, ", "), pod.Name))
	}
}

func (a *auditor) miss(obj any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		delete(a.pods, pod.UID)
	}
}

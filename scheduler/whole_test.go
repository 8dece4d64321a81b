package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/scheduler/plugins/aging"
	"github.com/gangctl/gangctl/scheduler/plugins/preemption"
	"github.com/gangctl/gangctl/scheduler/plugins/replacement"
)

// startWhole runs the rig with all our plugins, less those that are disabled, until the test ends. Gangs get reservations after a
// second.
func (r *rig) startWhole(disabled ...string) parts {
	r.t.Helper()
	return r.startParts(newParts(r.gangs, r.profiles), disabled...)
}

// startParts is startWhole with given parts.
func (r *rig) startParts(p parts, disabled ...string) parts {
	r.t.Helper()
	gangCycle(r.t)
	r.server.PrependReactor("patch", "pods", r.patch)
	ctx, cancel := context.WithCancel(r.t.Context())
	for i := range r.profiles {
		for _, name := range disabled {
			r.profiles[i].Plugins.MultiPoint.Disabled = append(r.profiles[i].Plugins.MultiPoint.Disabled, schedulerconfig.Plugin{Name: name})
		}
		r.profiles[i].PluginConfig = append(r.profiles[i].PluginConfig, schedulerconfig.PluginConfig{
			Name: aging.Name, Args: &runtime.Unknown{Raw: []byte(`{"after":"1s"}`), ContentType: runtime.ContentTypeJSON},
		})
	}
	for i := range r.profiles {
		for name := range r.others {
			r.profiles[i].Plugins.MultiPoint.Enabled = append(r.profiles[i].Plugins.MultiPoint.Enabled, schedulerconfig.Plugin{Name: name})
		}
	}
	enable(r.profiles, extensions(p))
	broadcaster := events.NewEventBroadcasterAdapterWithContext(ctx, r.client)
	engine, err := newEngine(ctx, p, r.others, r.client, r.factory, nil,
		profile.RecorderFactory(func(name string) events.EventRecorderLogger { return broadcaster.NewRecorder(name) }),
		upstream.WithProfiles(r.profiles...), upstream.WithPodInitialBackoffSeconds(1), upstream.WithPodMaxBackoffSeconds(1))
	r.must(err)
	var work sync.WaitGroup
	r.follow(ctx, &work, engine, func() { r.t.Error("the group objects cannot be read") })
	r.factory.StartWithContext(ctx)
	r.factory.WaitForCacheSyncWithContext(ctx)
	r.must(engine.WaitForHandlersSync(ctx))
	work.Go(func() { p.aging.Run(ctx) })
	work.Go(func() { p.preemption.Run(ctx) })
	work.Go(func() { p.planner.Run(ctx) })
	work.Go(func() { engine.Run(ctx) })
	r.t.Cleanup(func() {
		cancel()
		work.Wait()
		r.factory.Shutdown()
		broadcaster.Shutdown()
	})
	return p
}

// patch numbers the versions of pods, as an API server does; the engine passes over updates without a new one.
func (r *rig) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	handled, obj, err := clienttesting.ObjectReaction(r.server.Tracker())(action)
	pod, ok := obj.(*corev1.Pod)
	if err != nil || !ok {
		return handled, obj, err
	}
	pod = pod.DeepCopy()
	pod.ResourceVersion = r.version()
	return true, pod, r.server.Tracker().Update(podResource, pod, pod.Namespace)
}

// labelled makes a pod a member of a gang.
func labelled(gang string, minimum int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io/name": gang, "pod-group.scheduling.sigs.k8s.io/min-available": fmt.Sprint(minimum)}
	}
}

// gangOf creates a gang that needs all its members, and returns their names.
func (r *rig) gangOf(name string, members int, change ...func(*corev1.Pod)) (names []string) {
	r.t.Helper()
	for i := range members {
		names = append(names, fmt.Sprintf("%s-%d", name, i))
		r.create(r.pod(names[i], DefaultName, append(change, labelled(name, members))...))
	}
	return names
}

// comer has pods come, one every while, until done: reservations are reviewed when a pod comes.
func (r *rig) comer(what string, done func() bool) {
	r.t.Helper()
	n := 0
	next := time.Now()
	poll.Until(r.t, what, func() bool {
		if now := time.Now(); now.After(next) {
			r.create(r.pod(fmt.Sprint("comer-", n), DefaultName, requestingCPU("64")))
			n, next = n+1, now.Add(500*time.Millisecond)
		}
		return done()
	})
}

// reserved reports whether a gang has a reservation.
func (p parts) reserved(gang string) bool {
	return slices.ContainsFunc(p.aging.Held(), func(r aging.Reservation) bool { return r.Group.Name == "labels:"+gang })
}

func requestingCPU(cpus string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: quantity(cpus)}
	}
}

// A configuration may switch any of our plugins off; the others go on.
func TestEachPluginCanBeDisabled(t *testing.T) {
	for _, plugin := range extensions(parts{}) {
		t.Run(plugin.name, func(t *testing.T) {
			r := newRig(t)
			p := r.startWhole(plugin.name)
			r.node("n1", 4)
			runs := r.gangOf("runs", 4)
			r.waitPlaced(runs...)
			r.gangOf("waits", 2)
			r.comer("the outcome of a wait", func() bool {
				return p.reserved("waits") || plugin.name == aging.Name && hasMessage(r.get("comer-0"), "nsufficient cpu")
			})
			r.delete(runs...)
			r.waitPlaced("waits-0", "waits-1")
		})
	}
}

// A gang may wait for the end of one whose member has died: the replacement must come in, or both wait indefinitely.
func TestAReservationLetsAReplacementIn(t *testing.T) {
	for name, disabled := range map[string][]string{"its place is held": nil, "nothing is held": {replacement.Name}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.startWhole(append(disabled, preemption.Name)...)
			r.node("n1", 4)
			r.node("n2", 4)
			r.waitPlaced(r.gangOf("g", 8)...)
			r.gangOf("a", 8)
			r.comer("a reservation", func() bool { return p.reserved("a") })
			r.delete("g-3")
			r.create(r.pod("g-3r", DefaultName, labelled("g", 8)))
			r.waitPlaced("g-3r")
			if n := r.placed("a-0", "a-1", "a-2", "a-3", "a-4", "a-5", "a-6", "a-7"); n != 0 {
				t.Errorf("%d members of the gang that waits have places", n)
			}
		})
	}
}

// Claims of the members are looked up, or none of them would fit anywhere, whoever leaves.
func TestAGangWithVolumesGetsAReservation(t *testing.T) {
	r := newRig(t)
	ctx, wait := t.Context(), storagev1.VolumeBindingWaitForFirstConsumer
	_, err := r.server.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: "example.com/disks", VolumeBindingMode: &wait,
	}, metav1.CreateOptions{})
	r.must(err)
	class := "local"
	_, err = r.server.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}},
		},
	}, metav1.CreateOptions{})
	r.must(err)
	p := r.startWhole()
	r.node("n1", 4)
	r.waitPlaced(r.gangOf("runs", 4)...)
	r.gangOf("waits", 2, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}}
	})
	r.comer("a reservation", func() bool { return p.reserved("waits") })
}

// brokenFor panics over the pods of a tenant.
type brokenFor struct {
	prefix   string
	panicked atomic.Int64
}

// GangOfForeign implements preemption.ForeignGangs.
func (b *brokenFor) GangOfForeign(pod *corev1.Pod) (string, bool) {
	if strings.HasPrefix(pod.Name, b.prefix) {
		b.panicked.Add(1)
		panic("what nobody thought of, in " + pod.Name)
	}
	return "", false
}

// A plugin that panics over one pod, in the cycle of another user's gang, ends neither the process nor the cycles of others.
func TestAPanicInAPluginEndsNothing(t *testing.T) {
	r, broken := newRig(t), &brokenFor{prefix: "evil"}
	p := newParts(r.gangs, r.profiles)
	p.preemption = preemption.New(p.handle, p.planner, p.claims, r.attempts, r.suspender, broken, nil, clock.RealClock{})
	r.startParts(p)
	r.node("n1", 4)
	r.create(r.pod("evil", DefaultName, requestingCPU("4")))
	r.waitPlaced("evil")
	urgent := int32(100)
	above := r.gangOf("above", 2, func(p *corev1.Pod) { p.Spec.Priority = &urgent })
	poll.Until(t, "the plugin panics", func() bool { return broken.panicked.Load() > 0 })
	r.node("n2", 4)
	r.waitPlaced(above...)
	r.waitPlaced(r.gangOf("quiet", 2)...)
}

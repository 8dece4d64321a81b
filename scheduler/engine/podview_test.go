package engine

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/scheduler/gangcache"
)

// shown is an engine that notes what it is shown.
type shown struct {
	podEvents
	assumed *AssumedPods
	got     []string
}

func newShown(t *testing.T, patience time.Duration) *shown {
	t.Helper()
	s := &shown{assumed: NewAssumedPods()}
	pods := cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, cache.Indexers{})
	ours := func(pod *corev1.Pod) bool { return pod.Spec.SchedulerName != corev1.DefaultSchedulerName }
	s.podEvents = podEvents{NewPodView(pods, gangcache.New(NewVirtualGroups(), gangcache.MemberPriority), s.assumed, ours, func(gang.Key) {}, func([]types.NamespacedName) {}, patience)}
	note := func(verb string, obj any) {
		if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			verb, obj = verb+" (missed)", last.Obj
		}
		pod := obj.(*corev1.Pod)
		group, _ := GroupOf(pod)
		if pod.Spec.Priority != nil && *pod.Spec.Priority != 0 {
			group.Name += fmt.Sprintf("@%d", *pod.Spec.Priority)
		}
		s.got = append(s.got, verb+" "+string(pod.UID)+" "+group.Name)
	}
	_, err := s.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { note("add", obj) },
		UpdateFunc: func(old, obj any) {
			if old.(*corev1.Pod).ResourceVersion == obj.(*corev1.Pod).ResourceVersion {
				t.Error("an update that the engine would take for none")
			}
			note("update", obj)
		},
		DeleteFunc: func(obj any) { note("delete", obj) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shown) want(t *testing.T, what string, want ...string) {
	t.Helper()
	if fmt.Sprintf("%q", s.got) != fmt.Sprintf("%q", want) {
		t.Errorf("%s: shown %q, want %q", what, s.got, want)
	}
	s.got = nil
}

func TestRegroup(t *testing.T) {
	serial := 0
	pod := func(uid, group, node string, priority int32) *corev1.Pod {
		serial++
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: uid, UID: types.UID(uid), ResourceVersion: fmt.Sprint(serial)},
			Spec:       corev1.PodSpec{NodeName: node, SchedulerName: "gang-scheduler", Priority: &priority},
		}
		if group != "" {
			labels.SetGroup(&p.ObjectMeta, group, 2)
		}
		return p
	}
	s := newShown(t, AmbiguousDelay)
	a := pod("1", "a", "", 0)
	s.OnAdd(a, true)
	s.want(t, "a member comes", "add 1 labels:a")
	next := pod("1", "a", "", 0)
	s.OnUpdate(a, next)
	s.want(t, "nothing of it changes", "update 1 labels:a")
	low := pod("2", "a", "", -7)
	s.OnAdd(low, false)
	s.want(t, "a member of a lower priority comes", "update 1 labels:a@-7", "add 2 labels:a@-7")
	bound := pod("1", "a", "n1", 0)
	s.OnUpdate(next, bound)
	s.want(t, "it is bound", "update 1 labels:a@-7")
	s.OnDelete(cache.DeletedFinalStateUnknown{Key: "research/2", Obj: low})
	s.want(t, "the lower one goes", "delete (missed) 2 labels:a@-7", "update 1 labels:a")
	moved := pod("1", "b", "n1", 0)
	s.OnUpdate(bound, moved)
	s.want(t, "another gang, with a node already", "update 1 labels:b")
	now := metav1.Now()
	leaving := pod("1", "b", "n1", 0)
	leaving.DeletionTimestamp = &now
	s.OnUpdate(moved, leaving)
	s.want(t, "it leaves its place", "update 1 ")
	s.OnDelete(leaving)
	s.want(t, "it is gone", "delete 1 ")

	waiting := pod("3", "a", "", 0)
	s.OnAdd(waiting, false)
	other := pod("3", "b", "", 0)
	s.OnUpdate(waiting, other)
	s.want(t, "a waiting pod changes its gang", "add 3 labels:a", "delete 3 labels:a", "add 3 labels:b")
	single := pod("3", "", "", 0)
	s.OnUpdate(other, single)
	s.want(t, "out of its gang", "delete 3 labels:b", "add 3 ")
	again := pod("4", "b", "", 0)
	again.Name = "3"
	s.OnUpdate(single, again)
	s.want(t, "another pod of the name", "delete 3 ", "add 4 labels:b")

	theirs := pod("5", "b", "", 0)
	theirs.Spec.SchedulerName = "default-scheduler"
	s.OnAdd(theirs, false)
	bare := theirs.DeepCopy()
	bare.ResourceVersion += "0"
	s.OnUpdate(theirs, bare)
	s.OnDelete(bare)
	s.want(t, "a pod of another scheduler", "add 5 ", "update 5 ", "delete 5 ")
	if s.gangs.Pods(gang.Key{Dialect: gang.Labels, Namespace: "research", Name: "b"})[0].UID != "4" {
		t.Error("the roster and the engine saw different things")
	}
}

// A pod that is being bound stays in its gang until it is bound, or is not: shown as deleted, its node would count as free.
func TestRegroupWhileBinding(t *testing.T) {
	in := func(version, group, node string) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "1", UID: "1", ResourceVersion: version},
			Spec:       corev1.PodSpec{NodeName: node, SchedulerName: "gang-scheduler"},
		}
		labels.SetGroup(&p.ObjectMeta, group, 2)
		return p
	}
	for name, tt := range map[string]struct {
		then func(s *shown)
		want []string
	}{
		"and is bound": {func(s *shown) {
			s.OnUpdate(in("2", "b", ""), in("3", "b", "n1"))
			s.assumed.set("1", false)
		}, []string{"update 1 labels:a", "update 1 labels:b"}},
		"and is not":     {func(s *shown) { s.assumed.set("1", false) }, []string{"delete 1 labels:a", "add 1 labels:b"}},
		"and is deleted": {func(s *shown) { s.OnDelete(in("3", "b", "")); s.assumed.set("1", false) }, []string{"delete 1 labels:a"}},
		"and comes back": {func(s *shown) {
			s.OnUpdate(in("2", "b", ""), in("3", "a", ""))
			s.assumed.set("1", false)
		}, []string{"update 1 labels:a", "update 1 labels:a"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShown(t, AmbiguousDelay)
			s.OnAdd(in("1", "a", ""), false)
			s.assumed.set("1", true)
			s.OnUpdate(in("1", "a", ""), in("2", "b", ""))
			s.want(t, "it changes its gang", "add 1 labels:a", "update 1 labels:a")
			tt.then(s)
			poll.Until(t, "the engine has seen all", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return len(s.got) >= len(tt.want)
			})
			s.mu.Lock()
			defer s.mu.Unlock()
			s.want(t, name, tt.want...)
		})
	}
}

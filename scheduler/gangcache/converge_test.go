package gangcache

import (
	"fmt"
	"math/rand"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

// state is what an API server would list.
type state struct {
	live, ended map[types.UID]*corev1.Pod
	objects     map[gang.Key]Object
	budget      *Object
	classes     map[string]gang.Terms
}

// listed is a cache that learns everything at once, as after a restart.
func (s *state) listed() (*Cache, sink) {
	published := sink{}
	r := New(published, MemberPriority)
	for _, p := range s.live {
		r.SetPod(p)
	}
	for key, o := range s.objects {
		r.SetObject(key, o)
	}
	for name, terms := range s.classes {
		r.SetClass(name, terms, true)
	}
	if s.budget != nil {
		r.SetBudget(*s.budget)
	}
	for _, p := range s.ended {
		r.SetEnded(p)
	}
	return r, published
}

// What the cache publishes depends on what exists, and not on the order in
// which it came to know that: a restart changes nothing.
func TestOrderDoesNotMatter(t *testing.T) {
	for seed := range int64(40) {
		random := rand.New(rand.NewSource(seed))
		s := &state{live: map[types.UID]*corev1.Pod{}, ended: map[types.UID]*corev1.Pod{}, objects: map[gang.Key]Object{}, classes: map[string]gang.Terms{}}
		published := sink{}
		r := New(published, MemberPriority)
		views := map[types.UID]*corev1.Pod{} // what the engine was shown last
		for step := range 120 {
			change := s.step(random, r)
			for _, uid := range change.Members {
				if p := s.live[uid]; p != nil {
					views[uid] = r.View(p)
				}
			}
			fresh, want := s.listed()
			if !equality.Semantic.DeepEqual(published, want) {
				t.Fatalf("seed %d step %d: published\n%v\nafter a restart\n%v", seed, step, published, want)
			}
			for uid, p := range s.live {
				if views[uid] == nil || views[uid].ResourceVersion != p.ResourceVersion {
					views[uid] = r.View(p) // by its own event
				}
				if now := fresh.View(p); !equality.Semantic.DeepEqual(views[uid].Spec, now.Spec) {
					t.Fatalf("seed %d step %d: the engine was not told that %s changed: it saw %v, and is in %v", seed, step, uid, views[uid].Spec, now.Spec)
				}
			}
			for key := range r.gangs {
				if a, b := r.Incomplete(key), fresh.Incomplete(key); a != b {
					t.Fatalf("seed %d step %d: %s: %q, after a restart %q", seed, step, key, a, b)
				}
			}
		}
	}
}

// step does something at random to the state, and applies it to the cache.
func (s *state) step(random *rand.Rand, r *Cache) Change {
	one := func(options ...string) string { return options[random.Intn(len(options))] }
	name := one("g", "h")
	key := gang.Key{Dialect: gang.Dialect(one("scheduler-plugins", "volcano", "kube-batch", "native")), Namespace: "research", Name: name}
	uid := one("p0", "p1", "p2", "p3", "p4")
	switch random.Intn(9) {
	case 0, 1, 2:
		p := pod(uid, priority(int32(random.Intn(3))), owned(types.UID(one("job", "other"))), func(p *corev1.Pod) { p.ResourceVersion = fmt.Sprint(random.Int()) })
		for _, name := range []func(*corev1.Pod){
			label("scheduling.x-k8s.io/pod-group", name), note(volcano.GroupAnnotation, name),
			func(p *corev1.Pod) {
				label("pod-group.scheduling.sigs.k8s.io/name", name)(p)
				label("pod-group.scheduling.sigs.k8s.io/min-available", one("1", "2", "x"))(p)
			}, inField(name),
		} {
			if random.Intn(3) == 0 {
				name(p)
			}
		}
		s.live[p.UID] = p
		return r.SetPod(p)
	case 3:
		delete(s.live, types.UID(uid))
		return r.DeletePod(types.UID(uid))
	case 4:
		o := object(key, int32(1+random.Intn(3)))
		o.PriorityClass = one("", "gold")
		s.objects[key] = o
		return r.SetObject(key, o)
	case 5:
		delete(s.objects, key)
		return r.DeleteObject(key, object(key, 1).GroupKind)
	case 6:
		if p := s.live[types.UID(uid)]; p != nil {
			over := p.DeepCopy()
			over.Status.Phase = corev1.PodPhase(one("Succeeded", "Failed"))
			s.ended[p.UID] = over
			change := r.SetEnded(over)
			if random.Intn(2) == 0 {
				return change
			}
			delete(s.live, p.UID)
			return r.DeletePod(p.UID)
		}
		delete(s.ended, types.UID(uid))
		return r.DeleteEnded(types.UID(uid))
	case 7:
		if s.budget != nil && random.Intn(2) == 0 {
			old := *s.budget
			s.budget = nil
			return r.DeleteBudget(old.Key, old.GroupKind)
		}
		o := budget(types.UID(one("job", "other")))
		s.budget = &o
		return r.SetBudget(o)
	default:
		terms := gang.Terms{Priority: int32(random.Intn(5))}
		if random.Intn(2) == 0 {
			delete(s.classes, "gold")
			return r.SetClass("gold", gang.Terms{}, false)
		}
		s.classes["gold"] = terms
		return r.SetClass("gold", terms, true)
	}
}

package gangcache

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

// inField is Kubernetes' own way to name a gang.
func inField(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name} }
}

// Which gang counts for a pod, by what it carries and which objects exist.
func TestWhichGangCounts(t *testing.T) {
	annotated := note(volcano.GroupAnnotation, "g")
	koordinated := note("gang.scheduling.koordinator.sh/name", "g")
	koordMin := note("gang.scheduling.koordinator.sh/min-available", "2")
	early := label("pod-group.scheduling.sigs.k8s.io", "g")
	tests := []struct {
		name    string
		pod     *corev1.Pod
		objects []gang.Dialect
		budget  types.UID
		want    string
	}{
		{"nothing", pod("a"), nil, "", ""},
		{"an object that is missing", pod("a", label("scheduling.x-k8s.io/pod-group", "g")), nil, "", "scheduler-plugins:g"},
		{"its old spelling", pod("a", early), []gang.Dialect{gang.SchedulerPlugins}, "", "scheduler-plugins:g"},
		{"that of Koordinator", pod("a", early, scheduler("koord-scheduler")), []gang.Dialect{gang.SchedulerPlugins, gang.Koordinator}, "", "koordinator:g"},
		{"labels", pod("a", ofLabels), nil, "", "labels:llama"},
		{"labels, other spelling", pod("a", label("pod-group.scheduling.x-k8s.io/name", "g")), nil, "", "labels:g"},
		{"labels of Koordinator's pods", pod("a", ofLabels, needs("2"), scheduler("koord-scheduler")), nil, "", "koordinator:llama"},
		{"Koordinator's annotations", pod("a", koordinated, koordMin), nil, "", "koordinator:g"},
		{"labels and an object that is missing", pod("a", ofLabels, ofObject), nil, "", "labels:llama"},
		{"labels and an object that exists", pod("a", label("pod-group.scheduling.sigs.k8s.io/name", "l"), label("scheduling.x-k8s.io/pod-group", "g")), []gang.Dialect{gang.SchedulerPlugins}, "", "scheduler-plugins:g"},
		{"Kubernetes' field before all", pod("a", inField("n"), early), []gang.Dialect{gang.SchedulerPlugins}, "", "native:n"},
		{"an annotation of two dialects", pod("a", annotated), []gang.Dialect{gang.KubeBatch}, "", "kube-batch:g"},
		{"both exist", pod("a", annotated), []gang.Dialect{gang.KubeBatch, gang.Volcano}, "", "volcano:g"},
		{"both exist, the name decides", pod("a", annotated, scheduler("kube-batch")), []gang.Dialect{gang.KubeBatch, gang.Volcano}, "", "kube-batch:g"},
		{"KAI", pod("a", note("pod-group-name", "g")), []gang.Dialect{gang.KAI}, "", "kai:g"},
		{"a budget", pod("a", owned("job")), nil, "job", "pdb:budget"},
		{"a budget of another controller", pod("a", owned("job")), nil, "other", ""},
		{"a budget and labels", pod("a", owned("job"), ofLabels), nil, "job", "labels:llama"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := New(sink{}, MemberPriority)
			r.SetPod(tt.pod) // before the objects, and they must move it
			for _, d := range tt.objects {
				key := gang.Key{Dialect: d, Namespace: "research", Name: "g"}
				r.SetObject(key, object(key, 2))
			}
			if tt.budget != "" {
				r.SetBudget(budget(tt.budget))
			}
			for range 2 {
				view := r.View(tt.pod)
				got := ""
				if view.Spec.SchedulingGroup != nil {
					got = *view.Spec.SchedulingGroup.PodGroupName
				}
				if got != tt.want {
					t.Errorf("shown in %q, want %q", got, tt.want)
				}
				r = replay(tt.pod, r) // and after them
			}
		})
	}
}

// way is one in which a pod names a gang, of the same name.
type way struct {
	name string
	mark func(*corev1.Pod)
	// object is the dialect of the objects that it may name, known the schedulerName that decides for it between ways that are equal.
	object gang.Dialect
	known  string
	// shared is a further one while the object is missing: the annotation may be of another dialect, which it is known for.
	shared string
	// first is set for Kubernetes' field, complete where nothing else is needed, last for what names no gang by itself.
	first, complete, last bool
}

// ways are those of the table in docs/scheduler.md, in the order in which equal ones count.
func ways() []way {
	return []way{
		{name: "field", mark: inField("field"), object: gang.Native, known: "default-scheduler", first: true},
		{name: "coscheduling", mark: label("scheduling.x-k8s.io/pod-group", "coscheduling"), object: gang.SchedulerPlugins, known: "gang-scheduler scheduler-plugins-scheduler"},
		{name: "volcano", mark: note(volcano.GroupAnnotation, "volcano"), object: gang.Volcano, known: "volcano", shared: "kube-batch"},
		{name: "kube-batch", mark: note(volcano.GroupAnnotation, "kube-batch"), object: gang.KubeBatch, known: "kube-batch", shared: "volcano"},
		{name: "labels", mark: label("pod-group.scheduling.x-k8s.io/name", "labels"), complete: true},
		{name: "koordinator", mark: note("gang.scheduling.koordinator.sh/name", "koordinator"), object: gang.Koordinator, known: "koord-scheduler"},
		{name: "kai", mark: note("pod-group-name", "kai"), object: gang.KAI, known: "kai-scheduler"},
		{name: "budget", mark: owned("job"), last: true},
	}
}

// rank is lower for what counts before others: the field, an object that exists, labels, an object that is missing, a budget.
func (w way) rank(exists bool) int {
	switch {
	case w.first:
		return 0
	case w.last:
		return 4
	case w.complete:
		return 2
	case exists:
		return 1
	}
	return 3
}

// Whatever name of ours a pod has: of any two ways the one counts that docs/scheduler.md has first.
func TestAnyTwoWays(t *testing.T) {
	for _, name := range []string{"gang-scheduler", "volcano", "kube-batch", "koord-scheduler", "scheduler-plugins-scheduler", "kai-scheduler", "default-scheduler", "mine"} {
		for i, a := range ways() {
			for _, b := range ways()[i+1:] {
				if a.object == gang.Volcano && b.object == gang.KubeBatch {
					continue // one annotation: see TestWhichGangCounts
				}
				for _, exist := range [][2]bool{{}, {true, false}, {false, true}, {true, true}} {
					r := New(sink{}, MemberPriority)
					p := pod("p", a.mark, b.mark, scheduler(name))
					r.SetPod(p)
					for i, w := range []way{a, b} {
						if w.object != "" && exist[i] {
							key := gang.Key{Dialect: w.object, Namespace: "research", Name: w.name}
							r.SetObject(key, object(key, 2))
						}
					}
					r.SetBudget(budget("job"))
					want := a
					ranks := [2]int{a.rank(exist[0]), b.rank(exist[1])}
					if ranks[1] < ranks[0] || ranks[1] == ranks[0] && (strings.Contains(b.known, name) || !exist[1] && b.shared == name) {
						want = b
					}
					if key, ok := r.GangOf(p.UID); !ok || key.Name != want.name {
						t.Errorf("%s: %s (exists: %t) and %s (exists: %t): %s counts, want %s", name, a.name, exist[0], b.name, exist[1], key, want.name)
					}
				}
			}
		}
	}
}

// replay has a new cache see the objects of another one first, then the pod.
func replay(pod *corev1.Pod, old *Cache) *Cache {
	r := New(sink{}, MemberPriority)
	for key, e := range old.gangs {
		for _, o := range e.objects {
			if key.Dialect == gang.PDB {
				r.SetBudget(*o)
			} else {
				r.SetObject(key, *o)
			}
		}
	}
	r.SetPod(pod)
	return r
}

func budget(owner types.UID) Object {
	return Object{
		Declaration: gang.Declaration{Key: gang.Key{Dialect: gang.PDB, Namespace: "research", Name: "budget"}, UID: "b", Owner: owner, MinMember: 2},
		GroupKind:   schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"},
	}
}

func TestMembersMoveWithObjects(t *testing.T) {
	published := sink{}
	r := New(published, MemberPriority)
	both := pod("a", label("scheduling.x-k8s.io/pod-group", "llama"), ofLabels, needs("4"))
	r.SetPod(both)
	if published.min(labelGang) != 4 {
		t.Fatalf("published %v, want the labelled gang", published)
	}
	change := r.SetObject(objectGang, object(objectGang, 2))
	if published.min(objectGang) != 2 || len(published) != 1 || len(change.Members) != 1 {
		t.Errorf("published %v, shown %v: the object exists now", published, change.Members)
	}
	if ambiguous := r.Ambiguous(objectGang); !strings.Contains(ambiguous, "pod a names gangs in several ways: scheduler-plugins llama counts, labels llama does not") {
		t.Errorf("Ambiguous = %q", ambiguous)
	}
	r.DeleteObjects(podGroups("scheduling.x-k8s.io"))
	if published.min(labelGang) != 4 || len(published) != 1 {
		t.Errorf("published %v: the object is gone", published)
	}

	r.SetPod(pod("p", owned("job")))
	r.SetBudget(budget("job"))
	pdb := gang.Key{Dialect: gang.PDB, Namespace: "research", Name: "budget"}
	if published.min(pdb) != 2 {
		t.Errorf("published %v, want the budget's gang", published)
	}
	r.SetBudget(budget("another job"))
	if published.min(pdb) != 0 || r.View(pod("p")).Spec.SchedulingGroup != nil {
		t.Errorf("published %v: the budget went to another job", published)
	}
	r.SetBudget(budget("job"))
	if change := r.DeleteBudget(pdb, budget("").GroupKind); published.min(pdb) != 0 || len(change.Members) != 1 {
		t.Errorf("published %v, shown %v: the budget is gone", published, change.Members)
	}
}

// Of two budgets for one controller the first by name makes the gang, and the other when that one is gone, whichever was read first.
func TestTwoBudgetsForAController(t *testing.T) {
	named := func(name string) Object {
		o := budget("job")
		o.Key.Name = name
		return o
	}
	for _, names := range [][]string{{"a", "b"}, {"b", "a"}} {
		published := sink{}
		r := New(published, MemberPriority)
		r.SetPod(pod("p", owned("job")))
		for _, name := range names {
			r.SetBudget(named(name))
		}
		a, b := named("a"), named("b")
		if r.View(pod("p")).Spec.SchedulingGroup == nil || published.min(a.Key) != 2 {
			t.Errorf("%v: published %v, want the gang of a", names, published)
		}
		r.DeleteBudget(a.Key, a.GroupKind)
		if r.View(pod("p")).Spec.SchedulingGroup == nil || published.min(b.Key) != 2 {
			t.Errorf("%v: published %v, want the gang of b", names, published)
		}
		r.DeleteBudget(b.Key, b.GroupKind)
		if r.View(pod("p")).Spec.SchedulingGroup != nil || len(r.budgets) != 0 {
			t.Errorf("%v: published %v, want no gang", names, published)
		}
	}
}

func TestAmbiguousTerms(t *testing.T) {
	r := New(sink{}, MemberPriority)
	r.SetObject(objectGang, object(objectGang, 1))
	r.SetPod(pod("a", ofObject, priority(3)))
	if ambiguous := r.Ambiguous(objectGang); ambiguous != "" {
		t.Errorf("Ambiguous = %q about a plain gang", ambiguous)
	}
	classy := object(objectGang, 1)
	classy.PriorityClass = "gold"
	r.SetObject(objectGang, classy)
	if ambiguous := r.Ambiguous(objectGang); !strings.Contains(ambiguous, "PriorityClass gold not found") || !strings.Contains(ambiguous, "3") {
		t.Errorf("Ambiguous = %q", ambiguous)
	}
	r.SetClass("gold", gang.Terms{Priority: 9}, true)
	if ambiguous := r.Ambiguous(objectGang); !strings.Contains(ambiguous, "PriorityClass gold of the PodGroup is not applied") {
		t.Errorf("Ambiguous = %q", ambiguous)
	}
	r.SetClass("gold", gang.Terms{Priority: 3}, true)
	if ambiguous := r.Ambiguous(objectGang); ambiguous != "" {
		t.Errorf("Ambiguous = %q though the class says what the pods say", ambiguous)
	}
	classy.Unapplied = []gang.UnappliedRule{{Text: "the network topology (soft)"}}
	r.SetObject(objectGang, classy)
	if ambiguous := r.Ambiguous(objectGang); ambiguous != "the network topology (soft) is not applied" {
		t.Errorf("Ambiguous = %q", ambiguous)
	}
	r.SetPod(pod("b", ofObject, note(volcano.GroupAnnotation, "other")))
	if ambiguous := r.Ambiguous(objectGang); !strings.Contains(ambiguous, "volcano other does not") {
		t.Errorf("Ambiguous = %q", ambiguous)
	}
	r.SetPod(pod("n", inField("n"), ofObject))
	if ambiguous := r.Ambiguous(gang.Key{Dialect: gang.Native, Namespace: "research", Name: "n"}); !strings.Contains(ambiguous, "native n counts, scheduler-plugins llama does not") {
		t.Errorf("Ambiguous = %q", ambiguous)
	}
}

func TestTerms(t *testing.T) {
	published := sink{}
	r := New(published, ObjectPriority)
	never := func(p *corev1.Pod) {
		policy := corev1.PreemptNever
		p.Spec.PreemptionPolicy = &policy
	}
	r.SetObject(objectGang, object(objectGang, 3))
	worker := pod("w1", ofObject)
	r.SetPod(pod("launcher", ofObject, priority(100), never))
	change := r.SetPod(worker)
	if len(change.Members) != 2 || len(change.TermsChanged) != 1 {
		t.Errorf("change %+v: the launcher's priority fell with the worker's", change)
	}
	want := func(p int32, policy corev1.PreemptionPolicy) {
		t.Helper()
		view := r.View(worker)
		if *view.Spec.Priority != p || *published["research/scheduler-plugins:llama"].Spec.Priority != p {
			t.Errorf("priority %d of the member, %d of the gang, want %d", *view.Spec.Priority, *published["research/scheduler-plugins:llama"].Spec.Priority, p)
		}
		if got := view.Spec.PreemptionPolicy; (got == nil) != (policy == "") || (got != nil && *got != policy) {
			t.Errorf("policy %v, want %q", got, policy)
		}
		if worker.Spec.Priority != nil {
			t.Error("the API server's object was changed")
		}
	}
	want(0, corev1.PreemptNever)
	r.DeletePod("launcher")
	want(0, "")
	r.SetPod(pod("w0", ofObject))
	if change := r.SetPod(pod("w0", ofObject, func(p *corev1.Pod) { p.ResourceVersion = "2" })); len(change.Members) != 0 {
		t.Errorf("shown %v though nothing in common changed", change.Members)
	}
	o := object(objectGang, 3)
	o.PriorityClass = "gold"
	r.SetObject(objectGang, o)
	if change := r.SetClass("gold", gang.Terms{Priority: 7, Policy: corev1.PreemptNever}, true); len(change.Members) != 2 {
		t.Errorf("shown %v: the class of the gang appeared", change.Members)
	}
	want(7, corev1.PreemptNever)
	declared := int32(8)
	o.Priority = &declared
	r.SetObject(objectGang, o)
	want(8, "")
	r.SetPod(pod("w0", ofObject, never, func(p *corev1.Pod) { p.ResourceVersion = "3" }))
	want(8, corev1.PreemptNever) // the API server has no policy of groups
	o.PreemptionPolicy = corev1.PreemptLowerPriority
	r.SetObject(objectGang, o)
	want(8, "")
	o.Priority, o.PreemptionPolicy = nil, ""
	r.SetPod(pod("w0", ofObject, func(p *corev1.Pod) { p.ResourceVersion = "4" }))
	r.SetObject(objectGang, o)
	r.SetClass("gold", gang.Terms{}, false)
	want(0, "")
	if policy := published["research/scheduler-plugins:llama"].Spec.PreemptionPolicy; policy != nil {
		t.Errorf("policy of the group: %v", *policy)
	}
}

// A class that a group object of an operator names was not admitted, unlike that of a PodGroup of Kubernetes itself.
func TestTheClassOfAnObjectIsNotTrusted(t *testing.T) {
	published := sink{}
	r := New(published, MemberPriority)
	r.SetClass("gold", gang.Terms{Priority: 1000}, true)
	o := object(objectGang, 1)
	o.PriorityClass = "gold"
	r.SetObject(objectGang, o)
	r.SetPod(pod("a", ofObject, priority(3)))
	if got := *published["research/scheduler-plugins:llama"].Spec.Priority; got != 3 {
		t.Errorf("priority %d, want the pod's", got)
	}
	admitted := int32(1000)
	o.Priority = &admitted
	r.SetObject(objectGang, o)
	if got := *published["research/scheduler-plugins:llama"].Spec.Priority; got != 1000 {
		t.Errorf("priority %d, want the one that was admitted", got)
	}
}

// A pod that is on its way out has its place still, and no part in the gang.
func TestLeavingMembers(t *testing.T) {
	published := sink{}
	r := New(published, MemberPriority)
	r.SetPod(pod("a", ofLabels, needs("1")))
	now := metav1.Now()
	out := pod("a", ofLabels, needs("1"), func(p *corev1.Pod) { p.DeletionTimestamp, p.Spec.NodeName = &now, "n1" })
	r.SetPod(out)
	if len(published) != 0 || r.View(out).Spec.SchedulingGroup != nil {
		t.Errorf("published %v", published)
	}
	if n := len(r.Pods(labelGang)); n != 1 {
		t.Errorf("%d pods, want the one that leaves", n)
	}
	r.DeletePod("a")
	if n := len(r.Pods(labelGang)); n != 0 {
		t.Errorf("%d pods", n)
	}
}

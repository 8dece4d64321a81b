package gangcache

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

// sink records what the cache publishes.
type sink map[string]*schedulingv1beta1.PodGroup

func (s sink) Set(group *schedulingv1beta1.PodGroup) { s[group.Namespace+"/"+group.Name] = group }
func (s sink) Delete(namespace, name string)         { delete(s, namespace+"/"+name) }

// min is the minimum of a gang as the engine sees it; 0 if it does not see it.
func (s sink) min(key gang.Key) int32 {
	group := s[key.Namespace+"/"+key.VirtualName()]
	if group == nil || group.Spec.SchedulingPolicy.Gang == nil {
		return 0
	}
	return group.Spec.SchedulingPolicy.Gang.MinCount
}

func pod(uid string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: uid, UID: types.UID(uid)}}
	for _, c := range change {
		c(p)
	}
	return p
}

func priority(p int32) func(*corev1.Pod) { return func(pod *corev1.Pod) { pod.Spec.Priority = &p } }

func label(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { metav1.SetMetaDataLabel(&pod.ObjectMeta, key, value) }
}

func note(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value) }
}

func owned(uid types.UID) func(*corev1.Pod) {
	yes := true
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{UID: uid, Controller: &yes}}
	}
}

func scheduler(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.SchedulerName = name }
}

func succeeded(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }

var (
	ofObject = label(schedulerplugins.PodGroupLabel, "llama")
	ofLabels = label(labels.NameLabel, "llama")
	needs    = func(n string) func(*corev1.Pod) { return label(labels.MinAvailableLabel, n) }

	objectGang = gang.Key{Dialect: gang.SchedulerPlugins, Namespace: "research", Name: "llama"}
	labelGang  = gang.Key{Dialect: gang.Labels, Namespace: "research", Name: "llama"}
)

func object(key gang.Key, minMember int32) Object {
	for _, r := range Readers() {
		if r.Dialect == key.Dialect {
			return Object{Declaration: gang.Declaration{Key: key, UID: "u", MinMember: minMember}, GroupKind: r.Kinds[0].GroupKind}
		}
	}
	return Object{}
}

func TestAGangNeedsItsObjectAndAMember(t *testing.T) {
	published := sink{}
	r := New(published, MemberPriority)
	r.SetPod(pod("a", ofObject, priority(7)))
	if len(published) != 0 {
		t.Fatalf("published without an object: %v", published)
	}
	if why := r.Incomplete(objectGang); why != "PodGroup research/llama not found" {
		t.Errorf("Incomplete = %q", why)
	}
	r.SetProblem(schedulerplugins.GVK().GroupKind(), "list podgroups: forbidden")
	if why := r.Incomplete(objectGang); !strings.HasSuffix(why, "not found: list podgroups: forbidden") {
		t.Errorf("Incomplete = %q", why)
	}
	llama := object(objectGang, 2)
	r.SetObject(objectGang, llama)
	group := published["research/scheduler-plugins:llama"]
	if group == nil || published.min(objectGang) != 2 || *group.Spec.Priority != 7 || group.Spec.DisruptionMode.All == nil {
		t.Fatalf("published %+v, want minimum 2 at the members' priority, evicted as a whole", group)
	}
	if why := r.Incomplete(objectGang); !strings.Contains(why, "1/2 pods exist") {
		t.Errorf("Incomplete = %q, want 1/2 pods exist", why)
	}
	r.SetPod(pod("b", ofObject))
	if why := r.Incomplete(objectGang); why != "" {
		t.Errorf("Incomplete = %q for a whole gang", why)
	}
	r.SetPod(pod("b", ofObject, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue"}} }))
	if why := r.Incomplete(objectGang); !strings.Contains(why, "2/2 pods exist, 1 gated: pod b by kueue") {
		t.Errorf("Incomplete = %q, want the gate", why)
	}
	r.SetPod(pod("c", ofObject))
	if why := r.Incomplete(objectGang); why != "" {
		t.Errorf("Incomplete = %q, where two of three are not gated, and enough", why)
	}
	r.DeletePod("c")
	r.DeleteObject(objectGang, llama.GroupKind)
	if len(published) != 0 {
		t.Errorf("still published without its object: %v", published)
	}
	r.SetObject(objectGang, llama)
	r.DeletePod("a")
	r.DeletePod("b")
	if len(published) != 0 {
		t.Errorf("still published without members: %v", published)
	}
	r.DeleteObjects(llama.GroupKind)
	if len(r.gangs)+len(r.named)+len(r.owned) != 0 {
		t.Errorf("left behind: %v %v %v", r.gangs, r.named, r.owned)
	}
}

// One gated member keeps the others of a PodGroup of Kubernetes waiting, and in no other dialect.
func TestAGatedMember(t *testing.T) {
	for _, dialect := range []gang.Dialect{gang.Native, gang.SchedulerPlugins} {
		key := gang.Key{Dialect: dialect, Namespace: "research", Name: "llama"}
		member := ofObject
		if dialect == gang.Native {
			member = func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &key.Name} }
		}
		gated := pod("c", member, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} })
		r := New(sink{}, MemberPriority)
		r.SetObject(key, object(key, 2))
		for _, p := range []*corev1.Pod{pod("a", member), pod("b", member), gated} {
			r.SetPod(p)
		}
		if r.View(pod("a", member)).Spec.SchedulingGroup == nil {
			t.Errorf("%s: a member is shown as none", dialect)
		}
		together := dialect == gang.Native
		if shown := r.View(gated).Spec.SchedulingGroup != nil; shown != together {
			t.Errorf("%s: the gated member is shown as one: %t", dialect, shown)
		}
		if why := r.Incomplete(key); strings.Contains(why, "3/2 pods exist, 1 gated: pod c by quota; Kubernetes starts no member") != together || (why == "") == together {
			t.Errorf("%s: Incomplete = %q", dialect, why)
		}
		gated.Spec.SchedulingGates = nil
		r.SetPod(gated)
		if r.View(gated).Spec.SchedulingGroup == nil || r.Incomplete(key) != "" {
			t.Errorf("%s: without a gate, Incomplete = %q", dialect, r.Incomplete(key))
		}
	}
}

func TestResetForgetsTheObjectsOfOneKind(t *testing.T) {
	published := sink{}
	r := New(published, MemberPriority)
	r.SetObject(objectGang, object(objectGang, 1))
	r.SetPod(pod("a", ofObject))
	r.SetPod(pod("b", ofLabels, needs("1")))
	if len(published) != 2 {
		t.Fatalf("published %v, want two gangs of one name", published)
	}
	if change := r.DeleteObjects(object(objectGang, 1).GroupKind); fmt.Sprint(change.Keys) != fmt.Sprint([]gang.Key{objectGang}) {
		t.Errorf("changed %v", change.Keys)
	}
	if published.min(labelGang) != 1 || len(published) != 1 {
		t.Errorf("published %v, want the labelled gang only", published)
	}
}

func TestLabelledGangs(t *testing.T) {
	published := sink{}
	r := New(published, MemberPriority)
	r.SetPod(pod("a", ofLabels, needs("3")))
	r.SetPod(pod("b", ofLabels, needs("5")))
	r.SetPod(pod("c", ofLabels))
	if got := published.min(labelGang); got != 5 {
		t.Fatalf("minCount = %d, want the largest, 5", got)
	}
	r.DeletePod("b")
	if got := published.min(labelGang); got != 3 {
		t.Errorf("minCount = %d after the larger one left, want 3", got)
	}
	r.DeletePod("c")
	r.SetPod(pod("a", ofLabels, needs("five")))
	if len(published) != 0 {
		t.Errorf("published %v", published)
	}
	if why := r.Incomplete(labelGang); !strings.Contains(why, labels.MinAvailableLabel) || !strings.Contains(why, `"five"`) {
		t.Errorf("Incomplete = %q, want the label and its value", why)
	}
}

func TestAnUnreadableObjectHasNoMinimum(t *testing.T) {
	published := sink{}
	r := New(published, MemberPriority)
	r.SetPod(pod("a", ofObject))
	r.SetObject(objectGang, object(objectGang, 1))
	if published.min(objectGang) != 1 {
		t.Fatalf("published %v", published)
	}
	broken := object(objectGang, 1)
	broken.Unreadable = errors.New("spec.minMember: want a number")
	r.SetObject(objectGang, broken)
	if len(published) != 0 {
		t.Errorf("published with the minimum of old: %v", published)
	}
	if why := r.Incomplete(objectGang); !strings.Contains(why, "PodGroup research/llama cannot be read: spec.minMember") {
		t.Errorf("Incomplete = %q", why)
	}
	r.SetPod(pod("a", ofObject, func(p *corev1.Pod) { p.Spec.NodeName = "n1" }))
	if ambiguous := r.Ambiguous(objectGang); !strings.Contains(ambiguous, "cannot be read") {
		t.Errorf("Ambiguous = %q about a gang that runs", ambiguous)
	}
}

func TestCompletedMembersCount(t *testing.T) {
	published := sink{}
	r := New(published, MemberPriority)
	r.SetObject(objectGang, object(objectGang, 3))
	for _, uid := range []string{"a", "b", "c"} {
		r.SetPod(pod(uid, ofObject))
	}
	want := func(what string, min int32) {
		t.Helper()
		if got := published.min(objectGang); got != min {
			t.Errorf("%s: minCount %d, want %d", what, got, min)
		}
	}
	r.SetEnded(pod("a", ofObject, succeeded)) // seen there before it is gone here
	want("a is still in both caches", 3)
	r.DeletePod("a")
	want("a completed", 2)
	r.SetEnded(pod("b", ofObject, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }))
	r.DeletePod("b")
	want("b failed", 2)
	if why := r.Incomplete(objectGang); !strings.Contains(why, "2/3 pods exist, 1 of them completed") {
		t.Errorf("Incomplete = %q", why)
	}
	if left, succeeded, failed := r.Ends(objectGang); left != 1 || succeeded+failed != 0 {
		t.Errorf("%d left, want one", left)
	}
	if n := len(r.Pods(objectGang)); n != 3 {
		t.Errorf("%d pods, want all of them", n)
	}
	r.SetEnded(pod("c", ofObject, succeeded))
	r.SetEnded(pod("d", ofObject, succeeded))
	r.DeletePod("c")
	if left, succeeded, failed := r.Ends(objectGang); left != 0 || succeeded != 3 || failed != 1 {
		t.Errorf("%d left, %d succeeded, %d failed, want 0, 3, 1", left, succeeded, failed)
	}
	r.SetPod(pod("c", ofObject))
	r.SetPod(pod("e", ofObject))
	want("never less than one", 1)
	now := metav1.Now()
	r.SetEnded(pod("d", ofObject, succeeded, func(p *corev1.Pod) { p.DeletionTimestamp = &now }))
	r.DeleteEnded("a")
	r.DeletePod("c")
	want("what is deleted counts no more", 2)
}

func TestAnEarlierRunDoesNotCount(t *testing.T) {
	published := sink{}
	r := New(published, MemberPriority)
	for _, uid := range []string{"old-0", "old-1"} {
		r.SetEnded(pod(uid, ofLabels, needs("3"), succeeded, owned("first run")))
	}
	r.SetPod(pod("new-0", ofLabels, needs("3"), owned("second run")))
	if got := published.min(labelGang); got != 3 {
		t.Errorf("minCount %d: members of an earlier job of the same name count", got)
	}
	r.SetEnded(pod("new-1", ofLabels, needs("3"), succeeded, owned("second run")))
	if got := published.min(labelGang); got != 2 {
		t.Errorf("minCount %d, want 2: one of this job completed", got)
	}
	if got := r.Completed(labelGang); got != 1 {
		t.Errorf("%d completed, want the one of this job", got)
	}
}

// at is a time in seconds after some hour.
func at(seconds int) time.Time { return time.Unix(1_790_000_000+int64(seconds), 0) }

func endedAt(seconds int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		succeeded(pod)
		terminated := &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at(seconds))}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: terminated}}}
	}
}

// A PodGroup that no job controls may be used again: of a CronJob, for example, whose earlier pods are kept. Those of one run may have several controllers.
func TestAnEarlierRunWithTheSameObjectDoesNotCount(t *testing.T) {
	const set = "jobset.sigs.k8s.io/jobset-name"
	for _, c := range []struct {
		name       string
		ended      []func(*corev1.Pod)
		live       []func(*corev1.Pod)
		controlled bool
		want       int32
	}{
		{name: "an earlier run", ended: []func(*corev1.Pod){owned("first run"), created(at(0)), endedAt(90)}, live: []func(*corev1.Pod){owned("second run"), created(at(100))}, want: 4},
		{name: "nothing is known of its end", ended: []func(*corev1.Pod){owned("first run"), succeeded}, live: []func(*corev1.Pod){owned("second run"), created(at(100))}, want: 4},
		{name: "another job of the gang", ended: []func(*corev1.Pod){owned("prepare"), created(at(0)), endedAt(90)}, live: []func(*corev1.Pod){owned("train"), created(at(0))}, want: 1},
		{name: "the same job", ended: []func(*corev1.Pod){owned("run"), created(at(0)), endedAt(90)}, live: []func(*corev1.Pod){owned("run"), created(at(100))}, want: 1},
		{name: "another job of the JobSet", ended: []func(*corev1.Pod){owned("prepare"), created(at(0)), endedAt(90), label(set, "js")}, live: []func(*corev1.Pod){owned("train"), created(at(100)), label(set, "js")}, want: 1},
		{name: "the object is one job's", ended: []func(*corev1.Pod){owned("prepare"), created(at(0)), endedAt(90)}, live: []func(*corev1.Pod){owned("train"), created(at(100))}, controlled: true, want: 1},
	} {
		published := sink{}
		r := New(published, MemberPriority)
		key := gang.Key{Dialect: gang.Volcano, Namespace: "research", Name: "llama"}
		o := taskGroup(t, key, 4, map[string]int32{"worker": 3})
		if c.controlled {
			o.Owner = "job"
		}
		r.SetObject(key, o)
		member := func(uid string, change []func(*corev1.Pod)) *corev1.Pod {
			return pod(uid, append(change, note(volcano.GroupAnnotation, "llama"), note("volcano.sh/task-spec", "worker"))...)
		}
		for _, uid := range []string{"old-0", "old-1", "old-2"} {
			r.SetEnded(member(uid, c.ended))
		}
		r.SetPod(member("new-0", c.live))
		earlier := c.want == 4
		if why := r.Incomplete(key); earlier != strings.Contains(why, "1/3 pods exist of role worker") {
			t.Errorf("%s: Incomplete = %q", c.name, why)
		}
		r.SetPod(member("new-1", c.live))
		r.SetPod(member("new-2", c.live))
		if got := published.min(key); got != c.want {
			t.Errorf("%s: minCount %d, want %d", c.name, got, c.want)
		}
		if n, pods := r.Completed(key), len(r.Pods(key)); earlier != (n == 0) || earlier != (pods == 3) {
			t.Errorf("%s: %d completed of %d pods", c.name, n, pods)
		}
	}
}

// taskGroup is Volcano's group with a minimum for each task.
func taskGroup(t *testing.T, key gang.Key, minMember int32, tasks map[string]int32) Object {
	t.Helper()
	o := object(key, minMember)
	mins := map[string]any{}
	for task, n := range tasks {
		mins[task] = int64(n)
	}
	d, err := volcano.Decode(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": key.Namespace, "name": key.Name, "uid": "u"},
		"spec":     map[string]any{"minMember": int64(minMember), "minTaskMember": mins},
	}})
	if err != nil {
		t.Fatal(err)
	}
	o.Declaration = d
	return o
}

func TestRolesHaveMinimums(t *testing.T) {
	published := sink{}
	r := New(published, MemberPriority)
	key := gang.Key{Dialect: gang.Volcano, Namespace: "research", Name: "llama"}
	r.SetObject(key, taskGroup(t, key, 3, map[string]int32{"ps": 1, "worker": 2}))
	member := func(uid, role string) *corev1.Pod {
		return pod(uid, note(volcano.GroupAnnotation, "llama"), note("volcano.sh/task-spec", role))
	}
	r.SetPod(member("w0", "Worker"))
	r.SetPod(member("w1", "worker"))
	r.SetPod(member("w2", "worker"))
	if why := r.Incomplete(key); len(published) != 0 || !strings.Contains(why, "0/1 pods exist of role ps") {
		t.Errorf("published %v, Incomplete = %q", published, why)
	}
	r.SetPod(member("p0", "ps"))
	if got := published.min(key); got != 3 {
		t.Errorf("minCount %d, want the gang's, 3", got)
	}
	// A job that may start with fewer than all of its tasks' minimums.
	r.SetObject(key, taskGroup(t, key, 2, map[string]int32{"ps": 1, "worker": 5}))
	if got, why := published.min(key), r.Incomplete(key); got != 2 || why != "" {
		t.Errorf("minCount %d, Incomplete = %q, want 2 members whatever their roles", got, why)
	}
}

// In KAI each subgroup has to be there, whatever the group as a whole requests.
func TestRolesOfKAI(t *testing.T) {
	published := sink{}
	r := New(published, MemberPriority)
	key := gang.Key{Dialect: gang.KAI, Namespace: "research", Name: "llama"}
	o := object(key, 2)
	o.RoleMin = map[string]int32{"ps": 1, "worker": 2}
	r.SetObject(key, o)
	for _, uid := range []string{"w0", "w1", "p0"} {
		role := map[byte]string{'w': "worker", 'p': "ps"}[uid[0]]
		if why := r.Incomplete(key); why == "" {
			t.Errorf("complete without %s", uid)
		}
		r.SetPod(pod(uid, note("pod-group-name", "llama"), label("kai.scheduler/subgroup-name", role)))
	}
	if got, why := published.min(key), r.Incomplete(key); got != 3 || why != "" {
		t.Errorf("minCount %d, Incomplete = %q, want the sum over the roles, 3", got, why)
	}
}

// Tenants write the minimums of roles: the sum of two that are as large as can be is no small number.
func TestMinimumsOfRolesDoNotOverflow(t *testing.T) {
	key := gang.Key{Dialect: gang.KAI, Namespace: "research", Name: "llama"}
	o := object(key, 2)
	o.RoleMin = map[string]int32{"ps": math.MaxInt32, "worker": math.MaxInt32}
	e := &entry{objects: map[schema.GroupKind]*Object{o.GroupKind: &o}}
	if got, why := e.minCount(New(sink{}, MemberPriority), key); got != math.MaxInt32 || why != "" {
		t.Errorf("minCount %d, %q, want %d", got, why, math.MaxInt32)
	}
}

func TestBasicGroupsAreNoGangs(t *testing.T) {
	published := sink{}
	r := New(published, MemberPriority)
	key := gang.Key{Dialect: gang.Native, Namespace: "research", Name: "llama"}
	o := object(key, 1)
	o.Basic = true
	r.SetObject(key, o)
	name := "llama"
	r.SetPod(pod("a", func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name} }))
	group := published["research/native:llama"]
	if group == nil || group.Spec.SchedulingPolicy.Basic == nil || group.Spec.SchedulingPolicy.Gang != nil || group.Spec.DisruptionMode.Single == nil {
		t.Errorf("published %+v", group)
	}
	if why := r.Incomplete(key); why != "" {
		t.Errorf("Incomplete = %q", why)
	}
}

var podGroups = func(group string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: "PodGroup"} }

// A gang that needs no number of members, or of which that is not known any more,
// has a priority all the same.
func TestPriority(t *testing.T) {
	r := New(sink{}, MemberPriority)
	if p := r.Priority(objectGang); p != 0 {
		t.Errorf("priority %d of no gang", p)
	}
	r.SetPod(pod("a", ofObject, priority(7)))
	if _, _, declared := r.Required(objectGang); declared || r.Priority(objectGang) != 7 {
		t.Errorf("without an object: declared %t, priority %d, want 7", declared, r.Priority(objectGang))
	}
	basic := object(objectGang, 0)
	basic.Basic = true
	r.SetObject(objectGang, basic)
	if _, _, declared := r.Required(objectGang); declared || r.Priority(objectGang) != 7 {
		t.Errorf("with one that needs no number: declared %t, priority %d, want 7", declared, r.Priority(objectGang))
	}
}

func TestAllAreThoseWithoutPodsToo(t *testing.T) {
	r := New(sink{}, MemberPriority)
	bare := gang.Key{Dialect: gang.Volcano, Namespace: "research", Name: "bare"}
	r.SetObject(bare, object(bare, 2))
	r.SetPod(pod("a", ofObject))
	if keys := r.Keys(); len(keys) != 1 || keys[0] != objectGang {
		t.Errorf("with pods: %v", keys)
	}
	if keys := r.All(); len(keys) != 2 || keys[0] != bare || keys[1] != objectGang {
		t.Errorf("all: %v", keys)
	}
}

package roster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// sink records what the roster publishes.
type sink map[string]*schedulingv1beta1.PodGroup

func (s sink) Set(group *schedulingv1beta1.PodGroup) { s[group.Namespace+"/"+group.Name] = group }
func (s sink) Delete(namespace, name string)         { delete(s, namespace+"/"+name) }

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

var (
	objectGang = gang.Key{Dialect: gang.SchedulerPlugins, Namespace: "research", Name: "llama"}
	labelGang  = gang.Key{Dialect: gang.Labels, Namespace: "research", Name: "llama"}
)

func TestAGangNeedsItsObjectAndAMember(t *testing.T) {
	published := sink{}
	r := New(published)
	const name = "research/scheduler-plugins:llama"

	r.SetPod(objectGang, pod("a", priority(7)))
	if len(published) != 0 {
		t.Fatalf("published without an object: %v", published)
	}
	if why := r.Incomplete(objectGang); why != "PodGroup research/llama not found" {
		t.Errorf("Incomplete = %q", why)
	}

	r.SetObject(objectGang, Object{UID: "u", MinMember: 2})
	group := published[name]
	if group == nil {
		t.Fatalf("not published with object and member: %v", published)
	}
	if got := group.Spec.SchedulingPolicy.Gang.MinCount; got != 2 {
		t.Errorf("minCount = %d, want 2", got)
	}
	if got := *group.Spec.Priority; got != 7 {
		t.Errorf("priority = %d, want that of the members, 7", got)
	}
	if group.Spec.DisruptionMode.All == nil {
		t.Error("the engine may evict members of the gang one by one")
	}
	if why := r.Incomplete(objectGang); !strings.Contains(why, "1/2 pods exist") {
		t.Errorf("Incomplete = %q, want 1/2 pods exist", why)
	}

	r.SetPod(objectGang, pod("b"))
	if why := r.Incomplete(objectGang); why != "" {
		t.Errorf("Incomplete = %q for a whole gang", why)
	}

	r.DeleteObject(objectGang)
	if len(published) != 0 {
		t.Errorf("still published without its object: %v", published)
	}
	r.SetObject(objectGang, Object{UID: "u", MinMember: 2})
	r.DeletePod(objectGang, "a")
	r.DeletePod(objectGang, "b")
	if len(published) != 0 {
		t.Errorf("still published without members: %v", published)
	}
}

func TestResetForgetsTheObjectsOfOneDialect(t *testing.T) {
	published := sink{}
	r := New(published)
	r.SetObject(objectGang, Object{MinMember: 1})
	r.SetPod(objectGang, pod("a"))
	r.SetPod(labelGang, pod("b", label(labels.MinAvailableLabel, "1")))
	if len(published) != 2 {
		t.Fatalf("published %v, want two gangs of one name", published)
	}
	if keys := r.DeleteObjects(gang.SchedulerPlugins); len(keys) != 1 || keys[0] != objectGang {
		t.Errorf("DeleteObjects = %v", keys)
	}
	if _, ok := published["research/labels:llama"]; !ok || len(published) != 1 {
		t.Errorf("published %v, want the labelled gang only", published)
	}
}

func TestLabelledGangTakesTheLargestMinimum(t *testing.T) {
	published := sink{}
	r := New(published)
	r.SetPod(labelGang, pod("a", label(labels.MinAvailableLabel, "3")))
	r.SetPod(labelGang, pod("b", label(labels.MinAvailableLabel, "5")))
	r.SetPod(labelGang, pod("c"))
	group := published["research/labels:llama"]
	if group == nil || group.Spec.SchedulingPolicy.Gang.MinCount != 5 {
		t.Fatalf("published %+v, want minCount 5", group)
	}
	r.DeletePod(labelGang, "b")
	if got := published["research/labels:llama"].Spec.SchedulingPolicy.Gang.MinCount; got != 3 {
		t.Errorf("minCount = %d after the larger one left, want 3", got)
	}
}

func TestLabelledGangWithoutAMinimumIsHeldAndExplained(t *testing.T) {
	published := sink{}
	r := New(published)
	r.SetPod(labelGang, pod("a", label(labels.MinAvailableLabel, "five")))
	if len(published) != 0 {
		t.Errorf("published %v", published)
	}
	if why := r.Incomplete(labelGang); !strings.Contains(why, labels.MinAvailableLabel) || !strings.Contains(why, `"five"`) {
		t.Errorf("Incomplete = %q, want the label and its value", why)
	}
}

func TestPriorityIsTheHighest(t *testing.T) {
	published := sink{}
	r := New(published)
	for uid, p := range map[string]int32{"a": -5, "b": 100, "c": 0} {
		r.SetPod(labelGang, pod(uid, priority(p), label(labels.MinAvailableLabel, "3")))
	}
	if got := *published["research/labels:llama"].Spec.Priority; got != 100 {
		t.Errorf("priority = %d, want 100", got)
	}
	r.DeletePod(labelGang, "b")
	r.DeletePod(labelGang, "c")
	if got := *published["research/labels:llama"].Spec.Priority; got != -5 {
		t.Errorf("priority = %d of one member at -5", got)
	}
}

func TestEnroll(t *testing.T) {
	tests := []struct {
		name string
		pod  *corev1.Pod
		want string
	}{
		{"on its own", pod("a"), ""},
		{"object", pod("a", label(schedulerplugins.PodGroupLabel, "g")), "scheduler-plugins:g"},
		{"labels", pod("a", label(labels.NameLabel, "g")), "labels:g"},
		{"both: the object wins", pod("a", label(labels.NameLabel, "l"), label(schedulerplugins.PodGroupLabel, "o")), "scheduler-plugins:o"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // a transform may see its own result again
				Enroll(tt.pod)
				got := ""
				if group := tt.pod.Spec.SchedulingGroup; group != nil {
					got = *group.PodGroupName
				}
				if got != tt.want {
					t.Errorf("enrolled in %q, want %q", got, tt.want)
				}
			}
		})
	}
}

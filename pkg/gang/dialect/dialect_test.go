package dialect

import (
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
)

func reader(t *testing.T, d gang.Dialect) gang.Reader {
	t.Helper()
	for _, r := range Readers() {
		if r.Dialect == d {
			return r
		}
	}
	t.Fatalf("no reader for %s", d)
	return gang.Reader{}
}

func labelled(pairs ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p", Labels: map[string]string{}}}
	for i := 0; i < len(pairs); i += 2 {
		p.Labels[pairs[i]] = pairs[i+1]
	}
	return p
}

func noted(pairs ...string) *corev1.Pod {
	p := labelled(pairs...)
	p.Annotations, p.Labels = p.Labels, nil
	return p
}

// What ties a pod to its gang, dialect by dialect.
func TestGroupOf(t *testing.T) {
	name := "g"
	native := labelled()
	native.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	app := noted("yunikorn.apache.org/task-group-name", "workers")
	app.Labels = map[string]string{"applicationId": "g"}
	tests := []struct {
		dialect gang.Dialect
		pod     *corev1.Pod
	}{
		{gang.SchedulerPlugins, labelled("scheduling.x-k8s.io/pod-group", "g")},
		{gang.SchedulerPlugins, labelled("pod-group.scheduling.sigs.k8s.io", "g")},
		{gang.Labels, labelled("pod-group.scheduling.sigs.k8s.io/name", "g")},
		{gang.Labels, labelled("pod-group.scheduling.x-k8s.io/name", "g")},
		{gang.Volcano, noted("scheduling.k8s.io/group-name", "g")},
		{gang.KubeBatch, noted("scheduling.k8s.io/group-name", "g")},
		{gang.Koordinator, labelled("pod-group.scheduling.sigs.k8s.io", "g")},
		{gang.Koordinator, labelled("pod-group.scheduling.sigs.k8s.io/name", "g")},
		{gang.Koordinator, noted("gang.scheduling.koordinator.sh/name", "g")},
		{gang.KAI, noted("pod-group-name", "g")},
		{gang.Kueue, labelled("kueue.x-k8s.io/pod-group-name", "g")},
		{gang.YuniKorn, app},
		{gang.Native, native},
	}
	for _, tt := range tests {
		if got, ok := reader(t, tt.dialect).GroupOf(tt.pod); !ok || got != "g" {
			t.Errorf("%s: got %q %v from %v %v", tt.dialect, got, ok, tt.pod.Labels, tt.pod.Annotations)
		}
		if got, ok := reader(t, tt.dialect).GroupOf(labelled()); ok {
			t.Errorf("%s: a pod without a group reference is in %q", tt.dialect, got)
		}
	}
}

// The minimum that pods state can be changed wherever they state it, and stays what is read from them.
func TestSetMinimum(t *testing.T) {
	pods := map[gang.Dialect]*corev1.Pod{
		gang.Labels:      labelled("pod-group.scheduling.sigs.k8s.io/name", "g", "pod-group.scheduling.sigs.k8s.io/min-available", "4"),
		gang.Koordinator: noted("gang.scheduling.koordinator.sh/name", "g", "gang.scheduling.koordinator.sh/min-available", "4"),
		gang.Kueue:       noted("kueue.x-k8s.io/pod-group-total-count", "4"),
		gang.YuniKorn:    noted("yunikorn.apache.org/task-group-name", "workers", "yunikorn.apache.org/task-groups", `[{"name":"workers","minMember":4}]`),
	}
	made := gang.LeaderWorkerSet // its controller writes them, and no template
	for _, r := range Readers() {
		pod := pods[r.Dialect]
		if stated := pod != nil; (r.FromPods != nil && r.Dialect != made) != stated || (r.SetMinimum != nil) != stated {
			t.Errorf("%s: pods state a minimum: %v, which is read: %v, and changed: %v", r.Dialect, stated, r.FromPods != nil, r.SetMinimum != nil)
			continue
		}
		if pod == nil {
			continue
		}
		before := []gang.Role{{Name: "worker", Replicas: 4, Template: corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta}}}
		after := []gang.Role{{Name: "worker", Replicas: 3, Template: corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta}}}
		unstated := noted("other", "4")
		r.SetMinimum(&pod.ObjectMeta, 3, before, after)
		r.SetMinimum(&unstated.ObjectMeta, 3, before, after)
		if d, err := r.FromPods(gang.Key{Dialect: r.Dialect, Name: "g"}, []*corev1.Pod{pod}); err != nil || d.MinMember != 3 {
			t.Errorf("%s: a minimum of %d, %v, want 3, of %v %v", r.Dialect, d.MinMember, err, pod.Labels, pod.Annotations)
		}
		if !reflect.DeepEqual(unstated, noted("other", "4")) {
			t.Errorf("%s: written to a pod that states none: %v", r.Dialect, unstated)
		}
	}
}

func object(apiVersion string, spec, status map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": "PodGroup", "metadata": map[string]any{"name": "g", "namespace": "team",
		"ownerReferences": []any{map[string]any{"uid": "job", "controller": true}}}, "spec": spec, "status": status}}
}

// What a group object declares, dialect by dialect.
func TestDecode(t *testing.T) {
	condition := func(kind, status string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": kind, "status": status, "reason": "NotEnoughResources", "message": "no room", "lastTransitionTime": "2026-11-21T13:00:00Z"}}}
	}
	tests := []struct {
		dialect gang.Dialect
		object  *unstructured.Unstructured
		want    gang.Declaration
	}{
		{gang.SchedulerPlugins, object("scheduling.x-k8s.io/v1alpha1", map[string]any{"minMember": int64(4)}, map[string]any{"phase": "Scheduling"}), gang.Declaration{MinMember: 4, Phase: "Scheduling"}},
		{gang.SchedulerPlugins, object("scheduling.sigs.k8s.io/v1alpha1", map[string]any{}, nil), gang.Declaration{MinMember: 1}},
		{gang.Volcano, object("scheduling.volcano.sh/v1beta1", map[string]any{"minMember": int64(2), "minTaskMember": map[string]any{"worker": int64(1)}}, condition("Unschedulable", "True")),
			gang.Declaration{MinMember: 2, Queue: "default", Phase: "Pending", RoleMin: map[string]int32{"worker": 1}, Conditions: []gang.Condition{{Reason: "NotEnoughResources", Message: "no room"}}}},
		{gang.Volcano, object("scheduling.volcano.sh/v1beta1", map[string]any{"minMember": int64(6), "minTaskMember": map[string]any{"master": int64(1), "worker": int64(5)}}, nil),
			gang.Declaration{MinMember: 6, Queue: "default", Phase: "Pending", RoleMin: map[string]int32{"master": 1, "worker": 5}}},
		{gang.Volcano, object("scheduling.volcano.sh/v1beta1", map[string]any{"minMember": int64(3), "minTaskMember": map[string]any{"master": int64(1), "worker": int64(5)}}, nil), // elastic
			gang.Declaration{MinMember: 3, Queue: "default", Phase: "Pending"}},
		{gang.KubeBatch, object("scheduling.incubator.k8s.io/v1alpha1", map[string]any{"minMember": int64(3), "queue": "q"}, nil), gang.Declaration{MinMember: 3, Queue: "q"}},
		{gang.KAI, object("scheduling.run.ai/v2alpha2", map[string]any{"minMember": int64(2), "queue": "q", "topologyConstraint": map[string]any{"requiredTopologyLevel": "rack"}},
			map[string]any{"schedulingConditions": []any{map[string]any{"status": "True", "reasons": []any{map[string]any{"reason": "OverLimit", "message": "over"}}}}}),
			gang.Declaration{MinMember: 2, Queue: "q", Topology: gang.Topology{Required: "rack"}, Conditions: []gang.Condition{{Reason: "OverLimit", Message: "over"}}}},
		{gang.Native, object("scheduling.k8s.io/v1beta1", map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(9)}},
			"schedulingConstraints": map[string]any{"topology": []any{map[string]any{"key": "zone"}}}}, condition("PodGroupInitiallyScheduled", "False")),
			gang.Declaration{MinMember: 9, Topology: gang.Topology{Required: "zone"}, Conditions: []gang.Condition{{Reason: "NotEnoughResources", Message: "no room"}}}},
		{gang.Native, object("scheduling.k8s.io/v1beta1", map[string]any{"schedulingPolicy": map[string]any{"basic": map[string]any{}}}, nil), gang.Declaration{MinMember: 1}},
	}
	for _, tt := range tests {
		d, err := reader(t, tt.dialect).Decode(tt.object)
		if err != nil {
			t.Errorf("%s: %v", tt.dialect, err)
			continue
		}
		if d.MinMember != tt.want.MinMember || d.Queue != tt.want.Queue || d.Phase != tt.want.Phase || !reflect.DeepEqual(d.Topology, tt.want.Topology) || len(d.Conditions) != len(tt.want.Conditions) || len(d.RoleMin) != len(tt.want.RoleMin) {
			t.Errorf("%s: got %+v", tt.dialect, d)
		}
		for i, w := range tt.want.Conditions {
			if d.Conditions[i].Reason != w.Reason || d.Conditions[i].Message != w.Message {
				t.Errorf("%s: got %+v", tt.dialect, d.Conditions[i])
			}
		}
		if d.Owner != "job" || d.Key != (gang.Key{Dialect: tt.dialect, Namespace: "team", Name: "g"}) {
			t.Errorf("%s: got %v of %q", tt.dialect, d.Key, d.Owner)
		}
	}
	if _, err := reader(t, gang.Volcano).Decode(object("scheduling.volcano.sh/v1beta1", map[string]any{"minMember": "two"}, nil)); err == nil {
		t.Error("a minMember that is no number was accepted")
	}
}

// A pod that a controller makes of the template of a member for something else is in no gang: it would wait for members that are gone.
func TestOutside(t *testing.T) {
	member := labelled("scheduling.x-k8s.io/pod-group", "g", "ray.io/node-type", "head")
	cleanup := labelled("scheduling.x-k8s.io/pod-group", "g", "ray.io/node-type", "redis-cleanup")
	cleanup.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("g")}
	p := Precedence(Readers(), "gang-scheduler")
	owned := []gang.Key{{Dialect: gang.SchedulerPlugins, Namespace: "team", Name: "g"}}
	if keys := gang.MembershipOf(member, p).Keys(); len(keys) != 1 {
		t.Errorf("a member is in %v", keys)
	}
	m := gang.MembershipOf(cleanup, p).WithOwned(owned, p)
	if key, ok := m.Resolve(func(gang.Key) bool { return true }); ok || len(m.Keys()) > 0 {
		t.Errorf("it is in %v, %v", key, m.Keys())
	}
}

// The minimums of roles are gone through with every event of a member, and a user may write as many as fit into an object.
func TestManyRoles(t *testing.T) {
	for _, n := range []int{1000, 50_000} {
		mins, groups := map[string]any{}, []any{}
		for i := range n {
			name := fmt.Sprint("r", i)
			mins[name], groups = int64(1), append(groups, map[string]any{"name": name, "minMember": int64(1)})
		}
		for d, u := range map[gang.Dialect]*unstructured.Unstructured{
			gang.Volcano:   object("scheduling.volcano.sh/v1beta1", map[string]any{"minMember": int64(n), "minTaskMember": mins}, nil),
			gang.KubeBatch: object("scheduling.incubator.k8s.io/v1alpha1", map[string]any{"minTaskMember": mins}, nil),
			gang.KAI:       object("scheduling.run.ai/v2alpha2", map[string]any{"subGroups": groups}, nil),
		} {
			got, err := reader(t, d).Decode(u)
			if few := n == 1000; few && (err != nil || len(got.RoleMin) != n) || !few && (err == nil || len(got.RoleMin) != 0) {
				t.Errorf("%s: %d of %d roles, %v", d, len(got.RoleMin), n, err)
			}
		}
	}
}

// What pods alone declare, in the dialects without objects.
func TestFromPods(t *testing.T) {
	groups := noted("yunikorn.apache.org/task-groups", `[{"name": "a", "minMember": 2}, {"name": "b", "minMember": 3}]`)
	tests := []struct {
		dialect gang.Dialect
		pods    []*corev1.Pod
		min     int32
		bad     bool
	}{
		{gang.Labels, []*corev1.Pod{labelled("pod-group.scheduling.sigs.k8s.io/min-available", "2"), labelled("pod-group.scheduling.sigs.k8s.io/min-available", "3")}, 3, false},
		{gang.Labels, []*corev1.Pod{labelled("pod-group.scheduling.sigs.k8s.io/min-available", "two")}, 1, true},
		{gang.Koordinator, []*corev1.Pod{noted("gang.scheduling.koordinator.sh/min-available", "4")}, 4, false},
		{gang.Koordinator, []*corev1.Pod{noted("gang.scheduling.koordinator.sh/min-available", "0")}, 1, true},
		{gang.Kueue, []*corev1.Pod{noted("kueue.x-k8s.io/pod-group-total-count", "5")}, 5, false},
		{gang.Kueue, []*corev1.Pod{noted()}, 1, true},
		{gang.YuniKorn, []*corev1.Pod{noted(), groups}, 5, false},
		{gang.YuniKorn, []*corev1.Pod{noted("yunikorn.apache.org/task-groups", "{")}, 1, true},
	}
	for _, tt := range tests {
		d, err := reader(t, tt.dialect).FromPods(gang.Key{}, tt.pods)
		if d.MinMember != tt.min || (err != nil) != tt.bad {
			t.Errorf("%s: got %d, %v", tt.dialect, d.MinMember, err)
		}
	}
}

func TestAffinity(t *testing.T) {
	for _, tt := range []struct {
		dialect   gang.Dialect
		scheduler string
		want      int
	}{{gang.Volcano, "volcano", 1}, {gang.Volcano, "kube-batch", -1}, {gang.Volcano, "mine", 0}, {gang.SchedulerPlugins, "default-scheduler", 0}, {gang.Native, "default-scheduler", 1}, {gang.Koordinator, "koord-scheduler", 1}, {gang.SchedulerPlugins, "gang-scheduler", 1}, {gang.Native, "gang-scheduler", 0}, {gang.Kueue, "gang-scheduler", -1}} {
		if got := Affinity(reader(t, tt.dialect), tt.scheduler); got != tt.want {
			t.Errorf("%s for %s: got %d, want %d", tt.scheduler, tt.dialect, got, tt.want)
		}
	}
}

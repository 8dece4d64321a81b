package intern

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The numbers are those of the generated code.
func TestNumbers(t *testing.T) {
	tests := []struct {
		of     any
		fields map[string]int
	}{
		{metav1.ObjectMeta{}, map[string]int{"name": metaName, "generateName": metaGenerateName, "namespace": metaNamespace, "selfLink": metaSelfLink, "uid": metaUID,
			"resourceVersion": metaResourceVersion, "labels": metaLabels, "annotations": metaAnnotations, "ownerReferences": metaOwners, "managedFields": metaManagedFields}},
		{corev1.Pod{}, map[string]int{"metadata": objectMeta, "spec": podSpec, "status": podStatus}},
		{corev1.PodSpec{}, map[string]int{"volumes": specVolumes, "nodeName": specNodeName}},
		{corev1.PodStatus{}, map[string]int{"conditions": statusConditions, "startTime": statusStartTime}},
		{corev1.Node{}, map[string]int{"metadata": objectMeta, "status": nodeStatus}},
		{corev1.NodeStatus{}, map[string]int{"capacity": statusCapacity, "allocatable": statusAllocatable, "conditions": nodeConditions}},
	}
	for _, tt := range tests {
		found := map[string]int{}
		of := reflect.TypeOf(tt.of)
		for i := range of.NumField() {
			var kind, rest string
			var number int
			tag := strings.NewReplacer(",", " ").Replace(of.Field(i).Tag.Get("protobuf"))
			if _, err := fmt.Sscan(tag, &kind, &number, &rest); err == nil {
				_, name, _ := strings.Cut(tag, "name=")
				name, _, _ = strings.Cut(name, " ")
				found[name] = number
			}
		}
		for name, want := range tt.fields {
			if found[name] != want {
				t.Errorf("%s.%s: the number is %d, not %d", of, name, found[name], want)
			}
		}
	}
}

func meta(i int) metav1.ObjectMeta {
	yes := true
	return metav1.ObjectMeta{
		Namespace: "team", Name: fmt.Sprintf("job-worker-%d", i), UID: "uid", ResourceVersion: "12", Generation: 3, CreationTimestamp: metav1.Unix(100, 0),
		DeletionTimestamp: &metav1.Time{Time: time.Unix(200, 0)}, Labels: map[string]string{"job": "j", "index": fmt.Sprint(i)}, Annotations: map[string]string{"a": "b", "noise": "x"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Job", Name: "j", UID: "u", Controller: &yes}}, Finalizers: []string{"f"},
	}
}

func pod(i int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta(i)}
	amounts := corev1.ResourceList{"cpu": resource.MustParse("2"), "nvidia.com/gpu": resource.MustParse("1")}
	p.Spec = corev1.PodSpec{NodeName: fmt.Sprintf("n%d", i), Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: amounts}}},
		Volumes: []corev1.Volume{{Name: "keep"}, {Name: "drop"}}, Tolerations: []corev1.Toleration{{Key: "gpu"}}}
	at := metav1.Unix(int64(1000+i%2), 0)
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &at, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.DisruptionTarget}}}
	return p
}

func encode(t *testing.T, obj interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	data, err := obj.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Every pod is what it is without sharing, and what can be shared is.
func TestPods(t *testing.T) {
	pool := NewPool()
	var got []*corev1.Pod
	for i := range 200 {
		p, err := pool.Pod(encode(t, pod(i)), Kept{})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p)
	}
	for i, p := range got {
		if !equality.Semantic.DeepEqual(p, pod(i)) {
			t.Fatalf("pod %d: got %+v", i, p)
		}
		if &p.Spec.Containers[0] != &got[0].Spec.Containers[0] || &p.OwnerReferences[0] != &got[0].OwnerReferences[0] || &p.Status.Conditions[0] != &got[0].Status.Conditions[0] {
			t.Fatalf("pod %d shares nothing", i)
		}
		if p.Status.StartTime != got[i%2].Status.StartTime {
			t.Fatalf("pod %d has a start of its own", i)
		}
	}
}

func TestKept(t *testing.T) {
	kept := Kept{
		Annotation: func(key []byte) bool { return string(key) != "noise" },
		Volume:     func(data []byte) bool { return strings.Contains(string(data), "keep") },
		Condition:  func(data []byte) bool { return strings.Contains(string(data), string(corev1.DisruptionTarget)) },
	}
	got, err := NewPool().Pod(encode(t, pod(1)), kept)
	want := pod(1)
	delete(want.Annotations, "noise")
	want.Spec.Volumes, want.Status.Conditions = want.Spec.Volumes[:1], want.Status.Conditions[1:]
	if err != nil || !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func TestNodes(t *testing.T) {
	node := func(i int) *corev1.Node {
		n := &corev1.Node{ObjectMeta: meta(i), Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "gpu"}}}}
		size := corev1.ResourceList{"cpu": resource.MustParse("96"), "memory": resource.MustParse("768Gi")}
		n.Status = corev1.NodeStatus{Capacity: size, Allocatable: size, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: corev1.NodeDiskPressure}}}
		return n
	}
	pool := NewPool()
	var got []*corev1.Node
	for i := range 3 {
		n, err := pool.Node(encode(t, node(i)), Kept{})
		if err != nil || !equality.Semantic.DeepEqual(n, node(i)) {
			t.Fatalf("node %d: got %+v, %v", i, n, err)
		}
		got = append(got, n)
	}
	if reflect.ValueOf(got[0].Status.Allocatable).Pointer() != reflect.ValueOf(got[2].Status.Allocatable).Pointer() {
		t.Error("nodes of one size do not share it")
	}
	n, err := pool.Node(encode(t, node(0)), Kept{Condition: func(data []byte) bool { return strings.Contains(string(data), "Ready") }})
	if err != nil || len(n.Status.Conditions) != 1 || n.Status.Conditions[0].Type != corev1.NodeReady {
		t.Errorf("conditions: %+v, %v", n.Status.Conditions, err)
	}
}

func TestObjects(t *testing.T) {
	replicas := int32(2)
	want := &appsv1.Deployment{ObjectMeta: meta(1), Spec: appsv1.DeploymentSpec{Replicas: &replicas}, Status: appsv1.DeploymentStatus{ReadyReplicas: 1}}
	got := &appsv1.Deployment{}
	if err := NewPool().Object(encode(t, want), got); err != nil || !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, broken := range [][]byte{{0xff}, {0x0a, 0x7f}, nil} {
		if err := NewPool().Object(broken, &appsv1.Deployment{}); err == nil {
			t.Errorf("%x: no error", broken)
		}
	}
}

func TestTreesShare(t *testing.T) {
	pool := NewPool()
	var got []any
	for _, replicas := range []int64{4, 4, 8} {
		want := map[string]any{"replicas": replicas, "containers": []any{map[string]any{"name": "c", "args": []any{"a", true, 1.5}}}}
		tree, err := pool.Tree(fmt.Appendf(nil, `{"replicas":%d,"containers":[{"name":"c","args":["a",true,1.5]}]}`, replicas))
		if err != nil || !reflect.DeepEqual(tree, want) {
			t.Fatalf("got %v, %v", tree, err)
		}
		got = append(got, tree)
	}
	at := func(i int) uintptr { return reflect.ValueOf(got[i]).Pointer() }
	if at(0) != at(1) || at(0) == at(2) {
		t.Error("equal values are not shared, or values that differ are")
	}
	if nothing, err := pool.Tree([]byte("null")); nothing != nil || err != nil {
		t.Errorf("null is %v, %v", nothing, err)
	}
	if broken, err := pool.Tree([]byte("{")); err == nil {
		t.Errorf("broken JSON is %v", broken)
	}
}

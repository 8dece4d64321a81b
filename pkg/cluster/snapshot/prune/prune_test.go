package prune

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p", Labels: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}, {Manager: "kubelet"}}}}
	for _, name := range []string{"main", "side"} {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Image: "i", Env: []corev1.EnvVar{{Name: "TOKEN", Value: strings.Repeat("secret", 50)}, {Name: "B"}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}}})
	}
	p.Spec.NodeName, p.Spec.HostNetwork = "n", true
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(1, 0)}}}}
	return p
}

// What is left out of the encoding is what setting the fields to nothing leaves out.
func TestProtobuf(t *testing.T) {
	m, err := Drop("metadata.managedFields", "spec.containers.env", "spec.hostNetwork", "status.containerStatuses.state.running.startedAt").ForType(reflect.TypeFor[corev1.Pod]())
	if err != nil {
		t.Fatal(err)
	}
	data, err := pod().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	left, err := m.Apply(data)
	if err != nil {
		t.Fatal(err)
	}
	got := &corev1.Pod{}
	if err := got.Unmarshal(left); err != nil {
		t.Fatal(err)
	}
	want := pod()
	want.ManagedFields, want.Spec.HostNetwork, want.Status.ContainerStatuses[0].State.Running = nil, false, &corev1.ContainerStateRunning{}
	for i := range want.Spec.Containers {
		want.Spec.Containers[i].Env = nil
	}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestProtobufIsBroken(t *testing.T) {
	m, err := Drop("spec.containers.env").ForType(reflect.TypeFor[corev1.Pod]())
	if err != nil {
		t.Fatal(err)
	}
	whole, err := pod().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{whole[:len(whole)-3], {0x07}, {0x12, 0xff}} {
		if _, err := m.Apply(data); err == nil {
			t.Errorf("%d bytes: no error", len(data))
		}
		if err := Each(data, func(int, []byte, []byte) error { return nil }); err == nil {
			t.Errorf("%d bytes: no error from Each", len(data))
		}
	}
	for _, path := range []string{"spec.nothing", "metadata.labels.x"} {
		if _, err := Drop(path).ForType(reflect.TypeFor[corev1.Pod]()); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}

func TestObject(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"nothing to leave out", `{"a": [1, -2.5e3 , true,null ,"x"], "b": {}}`, `{"a":[1,-2500,true,null,"x"],"b":{}}`},
		{"a field", `{"metadata": {"managedFields": [{"a": "}]"}], "name": "n"}, "x": 1}`, `{"metadata":{"name":"n"},"x":1}`},
		{"all fields", `{"metadata": {"managedFields": []}}`, `{"metadata":{}}`},
		{"in a list", `{"spec": {"containers": [{"name": "a", "env": [1]}, {"env": 2, "name": "b"}]}}`, `{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}`},
		{"any key", `{"spec": {"roles": {"Worker": {"env": 1, "n": 2}, "PS": {"env": 1}}}}`, `{"spec":{"roles":{"PS":{},"Worker":{"n":2}}}}`},
		{"another type than expected", `{"metadata": "x", "spec": {"containers": 3, "roles": [null]}}`, `{"metadata":"x","spec":{"containers":3,"roles":[null]}}`},
	}
	without := Drop("metadata.managedFields", "spec.containers.env", "spec.roles.*.env")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var object map[string]any
			if err := json.Unmarshal([]byte(tt.in), &object); err != nil {
				t.Fatal(err)
			}
			without.Object(object)
			if got, err := json.Marshal(object); err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

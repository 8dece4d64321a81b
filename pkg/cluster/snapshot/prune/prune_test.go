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

// objects are pairs of an object, and of what is left of it without withoutSome.
var objects = []struct{ name, in, want string }{
	{"nothing to leave out", `{"a": [1, -2.5e3 , true,null ,"x"], "b": {}}`, `{"a":[1, -2.5e3 , true,null ,"x"],"b":{}}`},
	{"a field", `{"metadata": {"managedFields": [{"a": "}]"}], "name": "n"}, "x": 1}`, `{"metadata":{"name":"n"},"x":1}`},
	{"all fields", `{"metadata": {"managedFields": []}}`, `{"metadata":{}}`},
	{"in a list", ` {"spec": {"containers": [{"name": "a", "env": [1]} , {"env": 2, "name": "b"}]}} `, `{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}`},
	{"any key", `{"spec": {"roles": {"PS": {"env": 1}, "Worker": {"env": 1, "n": 2}}}}`, `{"spec":{"roles":{"PS":{},"Worker":{"n":2}}}}`},
	{"another type than expected", `{"metadata": "x", "spec": {"containers": 3, "roles": [null]}}`, `{"metadata":"x","spec":{"containers":3,"roles":[null]}}`},
	{"brackets and quotes in strings", `{"metadata":{"a":"\\\"}]","managedFields":"\"\\","b":"\\"},"c":"{"}`, `{"metadata":{"a":"\\\"}]","b":"\\"},"c":"{"}`},
	{"a key with an escape", `{"metadata":{"managed\u0046ields":1,"\u00fc":2}}`, `{"metadata":{"\u00fc":2}}`},
	{"a number at the end", `{"metadata":{"a":1},"b":2}`, `{"metadata":{"a":1},"b":2}`},
}

func withoutSome() Fields {
	return Drop("metadata.managedFields", "spec.containers.env", "spec.roles.*.env")
}

func TestJSON(t *testing.T) {
	for _, tt := range objects {
		if got, err := withoutSome().JSON([]byte(tt.in)); err != nil || string(got) != tt.want {
			t.Errorf("%s: got %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
	for _, broken := range []string{"", "{", `{"metadata"`, `{"metadata":`, `{"metadata":{"a`, `{"metadata":{"a":"`, `{1:2}`, `{"metadata":{"managedFields"}}`, "[", `{"metadata":[}`} {
		if got, err := withoutSome().JSON([]byte(broken)); err == nil {
			t.Errorf("%s becomes %s", broken, got)
		}
	}
}

func TestEachKey(t *testing.T) {
	var got []string
	err := EachKey([]byte(` { "a" : {"b":[1,"}"]}, "\u0063":"x\"" ,"d":null } `), func(key string, value []byte) error {
		got = append(got, key+"="+string(value))
		return nil
	})
	if want := `a={"b":[1,"}"]} c="x\"" d=null`; err != nil || strings.Join(got, " ") != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	for _, broken := range []string{"", "[]", "{", `{"a"`, `{"a":`, `{"a" 1}`, `{"a":1`} {
		if err := EachKey([]byte(broken), func(string, []byte) error { return nil }); err == nil {
			t.Errorf("%s is an object", broken)
		}
	}
}

// left is what JSON has to leave, of a value that was decoded first.
func left(f Fields, value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, value := range v {
			if below, whole := f.find(name); whole {
				delete(v, name)
			} else if below != nil {
				v[name] = left(below, value)
			}
		}
	case []any:
		for i := range v {
			v[i] = left(f, v[i])
		}
	}
	return value
}

// What is left of valid JSON decodes as what is left of it decoded; other data is no more than an error.
func FuzzJSON(f *testing.F) {
	for _, tt := range objects {
		f.Add(tt.in)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want, got any
		if json.Unmarshal([]byte(text), &want) != nil {
			_, _ = withoutSome().JSON([]byte(text))
			_ = EachKey([]byte(text), func(string, []byte) error { return nil })
			return
		}
		raw, err := withoutSome().JSON([]byte(text))
		if err == nil {
			err = json.Unmarshal(raw, &got)
		}
		if want = left(withoutSome(), want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nbecomes %s, %v", text, raw, err)
		}
		object, ok := want.(map[string]any)
		if !ok {
			return
		}
		parts := map[string]any{}
		err = EachKey(raw, func(key string, value []byte) error {
			var part any
			err := json.Unmarshal(value, &part)
			parts[key] = part
			return err
		})
		if err != nil || !reflect.DeepEqual(parts, object) {
			t.Errorf("%s\nhas %v, %v", raw, parts, err)
		}
	})
}

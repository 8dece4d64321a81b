package snapshot

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A snapshot is equal to one with copies of its objects, and to none in which anything is different.
func TestEqual(t *testing.T) {
	s := read(t, file)
	s.Injected = map[InjectedKey]*corev1.PodSpec{{Role: "Worker"}: {NodeName: "a"}}
	copied := s.Clone()
	for i, p := range copied.Pods {
		copied.Pods[i] = p.DeepCopy()
	}
	for kind, list := range copied.Custom {
		for i, u := range list {
			copied.Custom[kind][i] = u.DeepCopy()
		}
	}
	copied.Injected = map[InjectedKey]*corev1.PodSpec{{Role: "Worker"}: {NodeName: "a"}}
	if !s.Equal(copied) {
		t.Error("a copy is not equal")
	}
	copied.Pods[0].Spec.NodeName = "n1"
	if s.Equal(copied) {
		t.Error("a pod with another node is equal")
	}
	fields := reflect.TypeFor[Snapshot]()
	for i := range fields.NumField() {
		other := s.Clone()
		switch f := reflect.ValueOf(other).Elem().Field(i); {
		case fields.Field(i).Name == "At":
			other.At = other.At.Add(time.Second)
		case f.Kind() == reflect.Bool:
			f.SetBool(!f.Bool())
		case f.Kind() == reflect.String:
			f.SetString("other")
		case f.Kind() == reflect.Struct:
			other.Server.Version = "other"
		case f.Kind() == reflect.Map && f.Len() > 0:
			f.SetZero()
		default:
			of := f.Type().Elem()
			more := reflect.Zero(of)
			if of.Kind() == reflect.Pointer {
				more = reflect.New(of.Elem())
			}
			f.Set(reflect.Append(f, more))
		}
		if s.Equal(other) || other.Equal(s) {
			t.Errorf("equal with another %s", fields.Field(i).Name)
		}
	}
}

package snapshot

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Put adds an object that was read from a cluster. Call [Snapshot.Finish] when all are in.
func (s *Snapshot) Put(obj runtime.Object) error {
	for _, k := range kinds {
		if k.put(s, obj) {
			return nil
		}
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("a snapshot has no place for a %T", obj)
	}
	if s.Custom == nil {
		s.Custom = map[schema.GroupKind][]*unstructured.Unstructured{}
	}
	gk := u.GroupVersionKind().GroupKind()
	s.Custom[gk] = append(s.Custom[gk], u)
	return nil
}

// PutUntyped adds an object of any kind. Call [Snapshot.Finish] when all are in.
func (s *Snapshot) PutUntyped(u *unstructured.Unstructured) error {
	raw, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	if s.Custom == nil {
		s.Custom = map[schema.GroupKind][]*unstructured.Unstructured{}
	}
	return s.addObject(u.GroupVersionKind(), raw)
}

package intern

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot/prune"
)

// objectMeta is the number of the metadata in every kind.
const objectMeta = 1

// Message is a generated protobuf type of an API object.
type Message interface {
	Unmarshal(data []byte) error
	metav1.ObjectMetaAccessor
}

// Object decodes an object of any kind.
func (p *Pool) Object(data []byte, into Message) error {
	meta, ok := into.GetObjectMeta().(*metav1.ObjectMeta)
	if !ok {
		return into.Unmarshal(data)
	}
	first, content, rest, err := prune.First(data)
	if err != nil {
		return err
	}
	if first != objectMeta { // not the order in which API servers write
		return into.Unmarshal(data)
	}
	if err := p.Meta(content, meta, Kept{}); err != nil {
		return err
	}
	return into.Unmarshal(rest)
}

// Alike decodes an object of a kind in which most objects differ only in their metadata. What else they hold they share; seen
// is what has occurred.
func Alike[T any, P interface {
	*T
	Message
}](p *Pool, data []byte, seen map[string]T) (P, error) {
	first, content, rest, err := prune.First(data)
	if err != nil {
		return nil, err
	}
	obj := P(new(T))
	meta, ok := obj.GetObjectMeta().(*metav1.ObjectMeta)
	if !ok || first != objectMeta {
		return obj, obj.Unmarshal(data)
	}
	like, known := seen[string(rest)]
	if !known {
		if err := P(&like).Unmarshal(rest); err != nil {
			return nil, err
		}
		seen[string(rest)] = like
	}
	*obj = like
	return obj, p.Meta(content, meta, Kept{})
}

package intern

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

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

// Tree decodes a value in JSON, or returns the one that an equal encoding was decoded to: jobs of one shape share their spec, and groups
// their status.
func (p *Pool) Tree(data []byte) (any, error) {
	return p.trees.get(data, smallCache, func(data []byte) (value any, err error) {
		err = utiljson.Unmarshal(data, &value)
		return value, err
	})
}

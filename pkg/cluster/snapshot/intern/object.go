package intern

import (
	"encoding/json"

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

// Tree returns the value that is equal to one that was decoded from JSON: jobs of one shape share their spec, and groups their
// status.
func (p *Pool) Tree(value any) (any, error) {
	if value == nil {
		return nil, nil
	}
	key, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return p.trees.get(key, smallCache, func([]byte) (any, error) { return value, nil })
}

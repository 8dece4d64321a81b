package intern

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot/prune"
)

// The numbers of fields of ObjectMeta in protobuf.
const (
	metaName            = 1
	metaGenerateName    = 2
	metaNamespace       = 3
	metaSelfLink        = 4
	metaUID             = 5
	metaResourceVersion = 6
	metaLabels          = 11
	metaAnnotations     = 12
	metaOwners          = 13
	metaManagedFields   = 17
)

// Meta decodes the metadata of an object. Who manages which field is left out, and what is not kept.
func (p *Pool) Meta(data []byte, m *metav1.ObjectMeta, kept Kept) error {
	labels, annotations, owners, rest := p.scratch[0][:0], p.scratch[1][:0], p.scratch[2][:0], p.scratch[3][:0]
	var name, uid, version []byte
	err := prune.Each(data, func(number int, whole, content []byte) error {
		switch number {
		case metaName:
			name = content
		case metaUID:
			uid = content
		case metaResourceVersion:
			version = content
		case metaNamespace:
			m.Namespace = p.String(content)
		case metaLabels:
			labels = append(labels, whole...)
		case metaAnnotations:
			if key, _, err := entry(content); err != nil {
				return err
			} else if kept.Annotation == nil || kept.Annotation(key) {
				annotations = append(annotations, whole...)
			}
		case metaOwners:
			owners = append(owners, whole...)
		case metaManagedFields, metaGenerateName, metaSelfLink:
		default:
			rest = append(rest, whole...)
		}
		return nil
	})
	p.scratch = [4][]byte{labels, annotations, owners, rest}
	if err != nil {
		return err
	}
	if err := m.Unmarshal(rest); err != nil {
		return err
	}
	// One allocation for the three strings that are different in every object.
	all := string(append(append(append(rest[:0], name...), uid...), version...))
	m.Name, m.UID, m.ResourceVersion = all[:len(name)], types.UID(all[len(name):len(name)+len(uid)]), all[len(name)+len(uid):]
	if m.Labels, err = p.stringMap(labels); err != nil {
		return err
	}
	if m.Annotations, err = p.stringMap(annotations); err != nil {
		return err
	}
	m.OwnerReferences, err = p.ownersOf(owners)
	return err
}

// stringMap decodes the entries of a map.
func (p *Pool) stringMap(entries []byte) (map[string]string, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	return p.maps.get(entries, smallCache, func(entries []byte) (map[string]string, error) {
		count := 0
		if err := prune.Each(entries, func(int, []byte, []byte) error { count++; return nil }); err != nil {
			return nil, err
		}
		m := make(map[string]string, count)
		return m, prune.Each(entries, func(_ int, _, content []byte) error {
			key, value, err := entry(content)
			if err == nil {
				m[p.String(key)] = p.String(value)
			}
			return err
		})
	})
}

// entry is the key and the value of an entry of a map.
func entry(content []byte) (key, value []byte, err error) {
	err = prune.Each(content, func(number int, _, content []byte) error {
		switch number {
		case 1:
			key = content
		case 2:
			value = content
		}
		return nil
	})
	return key, value, err
}

func (p *Pool) ownersOf(fields []byte) ([]metav1.OwnerReference, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	return p.owners.get(fields, smallCache, func(fields []byte) ([]metav1.OwnerReference, error) {
		var m metav1.ObjectMeta
		err := m.Unmarshal(fields)
		return m.OwnerReferences, err
	})
}

// Package intern decodes API objects such that what is equal in many of them is held once: names of namespaces and nodes,
// keys and values of labels, owners, whole specs. What it hands out is shared, so it must not be changed. It is pure.
package intern

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pool holds what was decoded before. It is not safe for concurrent use: each list has its own.
type Pool struct {
	strings  map[string]string
	maps     cache[map[string]string]
	owners   cache[[]metav1.OwnerReference]
	amounts  cache[corev1.NodeStatus]
	specs    cache[corev1.PodSpec]
	statuses cache[corev1.PodStatus]
	times    cache[*metav1.Time]
	trees    cache[any]

	// scratch are buffers that are used again.
	scratch [4][]byte
}

// How many values are remembered. Lists come sorted by name, so that equal values are mostly close to each other; a large cache would hold
// more than it saves.
const (
	smallCache = 1 << 10
	largeCache = 1 << 13
	longest    = 128 // of a string that is worth remembering
)

// NewPool returns an empty pool.
func NewPool() *Pool { return &Pool{strings: map[string]string{}} }

// String returns the string that is equal to some bytes.
func (p *Pool) String(b []byte) string {
	if s, ok := p.strings[string(b)]; ok { // no copy is made to look
		return s
	}
	s := string(b)
	if len(s) <= longest {
		p.strings[s] = s
	}
	return s
}

// cache remembers what some encoded bytes mean.
type cache[T any] map[string]T

// get returns the value of an encoding, decoding it if it was not seen lately.
func (c *cache[T]) get(key []byte, most int, decode func([]byte) (T, error)) (T, error) {
	if v, ok := (*c)[string(key)]; ok {
		return v, nil
	}
	v, err := decode(key)
	if err != nil {
		return v, err
	}
	if *c == nil || len(*c) >= most {
		*c = cache[T]{}
	}
	(*c)[string(key)] = v
	return v, nil
}

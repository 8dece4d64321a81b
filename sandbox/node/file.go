package node

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// Read returns the Node objects of a file of YAML documents: their names,
// labels, taints and sizes. Their state is made again.
func (m Machine) Read(path string, now time.Time) ([]*corev1.Node, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read nodes: %w", err)
	}
	docs, err := documents(data)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	var out []*corev1.Node
	seen := map[string]bool{}
	for i, doc := range docs {
		n := &corev1.Node{}
		if err := sigsyaml.UnmarshalStrict(doc, n); err != nil {
			return nil, fmt.Errorf("parse %s, document %d: %w", path, i+1, err)
		}
		switch {
		case n.Kind != "Node" || n.APIVersion != "v1":
			return nil, fmt.Errorf("%s, document %d: is a %s %s, want a v1 Node", path, i+1, n.APIVersion, n.Kind)
		case n.Name == "":
			return nil, fmt.Errorf("%s, document %d: the node has no name", path, i+1)
		case seen[n.Name]:
			return nil, fmt.Errorf("%s, document %d: there are two nodes %s", path, i+1, n.Name)
		case n.Status.Capacity == nil && n.Status.Allocatable == nil:
			return nil, fmt.Errorf("%s: node %s has no status.capacity", path, n.Name)
		}
		seen[n.Name] = true
		out = append(out, m.complete(n, now))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no nodes", path)
	}
	return out, nil
}

func documents(data []byte) ([][]byte, error) {
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var out [][]byte
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(doc)) > 0 {
			out = append(out, doc)
		}
	}
}

package config

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// section is the mapping that holds the keys of a profile, or those of the top level. It is nil if it is not there and not to
// be made.
func (e *Edit) section(profile string, create bool) (*yaml.Node, error) {
	at := e.doc.Content[0]
	if profile == "" {
		return at, nil
	}
	for _, name := range []string{profilesKey, profile} {
		i := find(at, name)
		if i < 0 || at.Content[i+1].Tag == "!!null" {
			if !create {
				return nil, nil
			}
			put(at, name, &yaml.Node{Kind: yaml.MappingNode})
			i = find(at, name)
		}
		at = at.Content[i+1]
		if at.Kind != yaml.MappingNode { // an alias, above all: to change it would change what it stands for
			return nil, failure.Errorf("settings %s: line %d: %s is no plain mapping", e.path, at.Line, name).WithHint("edit the file by hand")
		}
	}
	return at, nil
}

// find is the index of a key in a mapping, or -1. Case does not count, as it does not when the file is read.
func find(mapping *yaml.Node, key string) int {
	for i := 0; mapping != nil && i < len(mapping.Content); i += 2 {
		if strings.EqualFold(mapping.Content[i].Value, key) {
			return i
		}
	}
	return -1
}

// put sets a key of a mapping. The comment at the end of the line stays.
func put(mapping *yaml.Node, key string, value *yaml.Node) {
	i := find(mapping, key)
	if i < 0 {
		if len(mapping.Content) == 0 {
			mapping.Style = 0 // {} would go on in one line
		}
		mapping.Content = append(mapping.Content, scalar(key, false), value)
		return
	}
	value.LineComment = mapping.Content[i+1].LineComment
	mapping.Content[i+1] = value
}

func scalar(text string, plain bool) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	if !plain {
		node.Tag = "!!str" // quoted where it would read as something else
	}
	return node
}

// inline is a value of the file in one line.
func inline(value any) string {
	var node yaml.Node
	if err := node.Encode(value); err != nil {
		return err.Error()
	}
	node.Style = yaml.FlowStyle
	out, err := yaml.Marshal(&node)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(out))
}

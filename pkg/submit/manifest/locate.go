package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/document"
	"github.com/gangctl/gangctl/pkg/submit/jsontype"
)

// problem is one mistake in a document, and the line of the document on which it stands, from 1.
type problem struct {
	line int
	text string
}

// tree is a document with its lines; nil if it is JSON that is no YAML.
func tree(d document.Document) *yamlv3.Node {
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(d.Text, &root); err != nil || len(root.Content) == 0 {
		return nil
	}
	return root.Content[0]
}

// twice finds the first key that comes again in its map; nil if none does.
func twice(node *yamlv3.Node, path string) *problem {
	switch node.Kind {
	case yamlv3.MappingNode:
		seen := map[string]bool{}
		return pairs(node, path, func(key, value *yamlv3.Node, at string) *problem {
			if seen[key.Value] {
				return &problem{key.Line, at + " is given twice"}
			}
			seen[key.Value] = true
			return twice(value, at)
		})
	case yamlv3.SequenceNode:
		for i, item := range node.Content {
			if p := twice(item, fmt.Sprintf("%s[%d]", path, i)); p != nil {
				return p
			}
		}
	default: // a value
	}
	return nil
}

// comparison walks a document along a type.
type comparison struct {
	// unknown are the fields that the type does not have.
	unknown []problem
}

// compare finds the first value that does not fit; nil if all do.
func (c *comparison) compare(node *yamlv3.Node, t reflect.Type, path string) *problem {
	if node.Kind == yamlv3.AliasNode {
		node = node.Alias
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case node.Tag == "!!null":
		return nil
	case jsontype.DecodesItself(t):
		return leaf(node, t, path)
	case t.Kind() == reflect.Struct:
		return c.fields(node, t, path)
	case t.Kind() == reflect.Map:
		return c.entries(node, t, path)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return c.items(node, t, path)
	}
	return leaf(node, t, path)
}

func (c *comparison) fields(node *yamlv3.Node, t reflect.Type, path string) *problem {
	if node.Kind != yamlv3.MappingNode {
		return wrong(node, path, "must be a map of fields")
	}
	known, names := jsontype.Fields(t)
	return pairs(node, path, func(key, value *yamlv3.Node, at string) *problem {
		field, ok := known[key.Value]
		if ok {
			return c.compare(value, field, at)
		}
		text := at
		if nearest := suggest.Nearest(key.Value, names); nearest != "" {
			text += fmt.Sprintf(" (did you mean %s?)", nearest)
		}
		c.unknown = append(c.unknown, problem{key.Line, text})
		return nil
	})
}

func (c *comparison) entries(node *yamlv3.Node, t reflect.Type, path string) *problem {
	if node.Kind != yamlv3.MappingNode {
		return wrong(node, path, "must be a map")
	}
	return pairs(node, path, func(_, value *yamlv3.Node, at string) *problem { return c.compare(value, t.Elem(), at) })
}

// pairs visits the keys of a map in their order.
func pairs(node *yamlv3.Node, path string, visit func(key, value *yamlv3.Node, at string) *problem) *problem {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Tag == "!!merge" {
			continue
		}
		if p := visit(key, value, strings.TrimPrefix(path+"."+key.Value, ".")); p != nil {
			return p
		}
	}
	return nil
}

func (c *comparison) items(node *yamlv3.Node, t reflect.Type, path string) *problem {
	if node.Kind != yamlv3.SequenceNode {
		return wrong(node, path, "must be a list")
	}
	for i, item := range node.Content {
		if p := c.compare(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); p != nil {
			return p
		}
	}
	return nil
}

// leaf decodes one value as the API machinery does.
func leaf(node *yamlv3.Node, t reflect.Type, path string) *problem {
	text, err := yamlv3.Marshal(node)
	if err != nil {
		return nil
	}
	// Not by way of yaml.Unmarshal, which makes a text of a number where one is wanted.
	raw, err := yaml.YAMLToJSON(text)
	if err == nil {
		err = json.Unmarshal(raw, reflect.New(t).Interface())
	}
	if err == nil {
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		if node.Kind != yamlv3.ScalarNode {
			return wrong(node, path, "must be a text")
		}
		return wrong(node, path, "must be a text: put it in quotes")
	case reflect.Bool:
		return wrong(node, path, "must be true or false")
	case reflect.Int, reflect.Int32, reflect.Int64:
		return wrong(node, path, "must be a whole number")
	default:
		return wrong(node, path, plain(err))
	}
}

func wrong(node *yamlv3.Node, path, rule string) *problem {
	if node.Kind == yamlv3.ScalarNode {
		return &problem{node.Line, fmt.Sprintf("%s: %q: %s", path, node.Value, rule)}
	}
	return &problem{node.Line, path + ": " + rule}
}

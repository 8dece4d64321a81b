package intern

import (
	"bufio"
	"bytes"
	"errors"
	"unicode/utf8"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot/prune"
)

// shared are the keys under which many objects hold the same: the specs of jobs of one shape, their pod templates, the states
// of groups, the labels of a team.
var shared = map[string]bool{"spec": true, "template": true, "status": true, "labels": true}

// scannerBuffer is how much of a value is looked at at a time.
const scannerBuffer = 512

// JSON decodes an object as Kubernetes does, integers as int64, with the keys and the short strings of the pool. Parts that are
// equal in several objects are one, and decoded once.
func (p *Pool) JSON(data []byte) (map[string]any, error) {
	value, err := p.value(bytes.TrimSpace(data), 0)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("invalid JSON: no object")
	}
	return object, nil
}

// value decodes a value; depth is how deep it lies.
func (p *Pool) value(data []byte, depth int) (any, error) {
	if len(data) == 0 {
		return nil, errors.New("invalid JSON: no value")
	}
	switch data[0] {
	case '{':
		return p.object(data, depth)
	case '[':
		return p.array(data, depth)
	case '"':
		if text := data[1 : len(data)-1]; plain(text) {
			return p.boxed(text), nil
		}
	}
	var value any
	err := utiljson.Unmarshal(data, &value)
	if text, ok := value.(string); ok {
		value = p.boxed([]byte(text))
	}
	return value, err
}

func (p *Pool) object(data []byte, depth int) (any, error) {
	object := map[string]any{}
	s := p.scanner(depth, data)
	err := s.Object(func(key string) error {
		if !plain([]byte(key)) {
			if err := utiljson.Unmarshal([]byte(`"`+key+`"`), &key); err != nil {
				return err
			}
		}
		part, err := s.Value(nil)
		if err != nil {
			return err
		}
		decode := func(part []byte) (any, error) { return p.value(part, depth+1) }
		value, err := any(nil), error(nil)
		if shared[key] && part[0] == '{' {
			value, err = p.trees.get(part, smallCache, decode)
		} else {
			value, err = decode(part)
		}
		object[p.text(key)] = value
		return err
	})
	return object, err
}

func (p *Pool) array(data []byte, depth int) (any, error) {
	list := []any{}
	s := p.scanner(depth, data)
	err := s.Array(func() error {
		part, err := s.Value(nil)
		if err != nil {
			return err
		}
		value, err := p.value(part, depth+1)
		list = append(list, value)
		return err
	})
	return list, err
}

// scanner returns the scanner of a depth: what it reads has to last while what is below is read.
func (p *Pool) scanner(depth int, data []byte) *prune.Scanner {
	for len(p.scanners) <= depth {
		p.scanners = append(p.scanners, prune.NewScanner(bufio.NewReaderSize(nil, scannerBuffer)))
	}
	p.scanners[depth].Reset(data)
	return p.scanners[depth]
}

// plain reports whether a string is encoded as itself.
func plain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c >= utf8.RuneSelf || c == '\\' || c == '"' {
			return false
		}
	}
	return true
}

// boxed returns the string that is equal to some bytes as a value.
func (p *Pool) boxed(text []byte) any {
	if v, ok := p.boxes[string(text)]; ok { // no copy is made to look
		return v
	}
	s := string(text)
	if len(s) > longest {
		return s
	}
	if p.boxes == nil {
		p.boxes = map[string]any{}
	}
	v := any(s)
	p.boxes[s] = v
	return v
}

// text returns the string that is equal to another one.
func (p *Pool) text(s string) string {
	known, _ := p.boxed([]byte(s)).(string)
	return known
}

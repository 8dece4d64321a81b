package intern

import "encoding/json"

// shared are the keys under which many objects hold the same: the specs of jobs of one shape, their pod templates, the states
// of groups, the labels of a team.
var shared = map[string]bool{"spec": true, "template": true, "status": true, "labels": true}

// Tree returns what was decoded from JSON with the keys and the short strings of the pool. Parts that are equal in several
// objects are one.
func (p *Pool) Tree(value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, child := range v {
			inner, err := p.child(key, child)
			if err != nil {
				return nil, err
			}
			m[p.text(key)] = inner
		}
		return m, nil
	case []any:
		for i := range v {
			child, err := p.Tree(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = child
		}
		return v, nil
	case string:
		return p.text(v), nil
	}
	return value, nil
}

func (p *Pool) child(key string, value any) (any, error) {
	if _, ok := value.(map[string]any); !ok || !shared[key] {
		return p.Tree(value)
	}
	encoded, err := json.Marshal(value) // with sorted keys
	if err != nil {
		return nil, err
	}
	return p.trees.get(encoded, smallCache, func([]byte) (any, error) { return p.Tree(value) })
}

func (p *Pool) text(s string) string {
	if known, ok := p.strings[s]; ok {
		return known
	}
	if len(s) <= longest {
		p.strings[s] = s
	}
	return s
}

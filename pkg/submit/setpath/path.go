// Package setpath sets fields of an API object by assignments such as spec.runPolicy.backoffLimit=3, typed against the Go type of the
// object: a number becomes a number, a quantity is checked, and a field that the type does not have is an error that names it.
// It is pure.
package setpath

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gangctl/gangctl/pkg/submit/redact"
)

// Step is one of a path: the key of a map or the name of a field, or the index of an item.
type Step struct {
	Key string
	// Index counts from 0, and Key is empty; it is -1 for a key.
	Index int
}

// Path leads to one field of an object.
type Path []Step

// Assignment is one parsed PATH=VALUE or PATH-.
type Assignment struct {
	Path Path
	// Value is everything behind the first "=" that is not escaped, byte for byte.
	Value string
	// Remove takes the field away.
	Remove bool
}

// special are the characters of a key that mean something else without a backslash before them.
const special = `.[]=\`

// String is the path as parse reads it.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		if s.Index >= 0 {
			fmt.Fprintf(&b, "[%d]", s.Index)
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		for _, c := range []byte(s.Key) {
			if strings.IndexByte(special, c) >= 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		}
	}
	return b.String()
}

// parse reads PATH=VALUE, or PATH- to take a field away. A path is a.b[0].c; a dot, a bracket, an equals sign or a backslash
// that belongs to a key has a backslash before it: metadata.annotations.example\.com/team=vision.
func parse(text string) (Assignment, error) {
	path, rest, err := parsePath(text)
	if err != nil {
		return Assignment{}, fmt.Errorf("%q: %w", redact.Flag("set", text), err)
	}
	if value, ok := strings.CutPrefix(rest, "="); ok {
		return Assignment{Path: path, Value: value}, nil
	}
	last := &path[len(path)-1]
	switch {
	case last.Index >= 0 && rest == "-":
		return Assignment{Path: path, Remove: true}, nil
	case rest != "":
		return Assignment{}, fmt.Errorf("%q: after ] comes a dot, another [ or an equals sign", redact.Flag("set", text))
	case last.Index < 0 && len(last.Key) > 1 && strings.HasSuffix(last.Key, "-"):
		last.Key = strings.TrimSuffix(last.Key, "-")
		return Assignment{Path: path, Remove: true}, nil
	}
	return Assignment{}, fmt.Errorf("%q: must be PATH=VALUE, or PATH- to take the field away", redact.Flag("set", text))
}

// parsePath reads a path up to the "=" behind it, or to the end; rest begins where it stopped.
func parsePath(text string) (path Path, rest string, err error) {
	key, open := "", true // open: a key has to come, or goes on
	for i := 0; ; i++ {
		if i == len(text) || text[i] == '=' || text[i] == '.' || text[i] == '[' {
			if open && key == "" {
				return nil, "", fmt.Errorf("the path lacks a key at character %d", i+1)
			}
			if open {
				path = append(path, Step{Key: key, Index: -1})
			}
			key, open = "", false
		}
		switch {
		case i == len(text) || text[i] == '=':
			return path, text[i:], nil
		case text[i] == '.':
			open = true
		case text[i] == '[':
			end := strings.IndexByte(text[i:], ']')
			index := -1
			if end > 0 {
				index = number(text[i+1 : i+end])
			}
			if index < 0 {
				return nil, "", fmt.Errorf("what stands in [] at character %d must be a number from 0", i+1)
			}
			path = append(path, Step{Index: index})
			i += end
		case !open:
			return path, text[i:], nil
		case text[i] == '\\':
			if i++; i == len(text) {
				return nil, "", fmt.Errorf("nothing comes after the last backslash")
			}
			key += text[i : i+1]
		case text[i] == ']':
			return nil, "", fmt.Errorf("] at character %d has no [ before it", i+1)
		default:
			key += text[i : i+1]
		}
	}
}

// maxIndex is more items than any list of a job has.
const maxIndex = 1 << 16

// number is the index in decimal digits, or -1.
func number(digits string) int {
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || n > maxIndex || digits != strconv.FormatUint(n, 10) {
		return -1
	}
	return int(n)
}

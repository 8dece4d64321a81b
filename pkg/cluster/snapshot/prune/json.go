package prune

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// errJSON is the error of data that is not JSON.
var errJSON = errors.New("invalid JSON")

// JSON leaves the fields out of a value that is encoded as JSON, and was found to be valid: what follows it is not looked at. The result is
// what is left of data, in the same memory.
func (f Fields) JSON(data []byte) ([]byte, error) {
	s := scanner{in: data, out: data[:0]}
	err := s.prune(f)
	return s.out, err
}

// EachKey calls f with the keys of an object that is encoded as valid JSON, and their encoded values.
func EachKey(data []byte, f func(key string, value []byte) error) error {
	s := scanner{in: data}
	if s.next() != '{' {
		return errJSON
	}
	for s.in = s.in[1:]; ; {
		switch s.next() {
		case '}':
			return nil
		case ',':
			s.in = s.in[1:]
			continue
		}
		_, key, err := s.key()
		if err != nil {
			return err
		}
		value, err := s.take()
		if err != nil {
			return err
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
}

// scanner reads values in what is left of in, and writes to out.
type scanner struct{ in, out []byte }

// prune copies the next value without the fields. Nothing is written that was not read before, so that in and out may be the same memory.
func (s *scanner) prune(f Fields) error {
	open := s.next()
	if len(f) == 0 || open != '{' && open != '[' {
		whole, err := s.take()
		s.out = append(s.out, whole...)
		return err
	}
	s.in, s.out = s.in[1:], append(s.out, open)
	for start := len(s.out); ; {
		switch c := s.next(); {
		case c == '}' && open == '{' || c == ']' && open == '[':
			s.in, s.out = s.in[1:], append(s.out, c)
			return nil
		case c == ',':
			s.in = s.in[1:]
			continue
		}
		if err := s.part(f, open == '{', len(s.out) > start); err != nil {
			return err
		}
	}
}

// part copies a member of an object, or an element of a list, behind others if it is not the first that is left.
func (s *scanner) part(f Fields, named, behind bool) error {
	var name []byte
	if named {
		quoted, key, err := s.key()
		if err != nil {
			return err
		}
		below, whole := f.find(key)
		if whole {
			_, err := s.take()
			return err
		}
		f, name = below, quoted
	}
	if behind {
		s.out = append(s.out, ',')
	}
	if named {
		s.out = append(append(s.out, name...), ':')
	}
	return s.prune(f)
}

// key reads a key and the colon behind it.
func (s *scanner) key() (quoted []byte, key string, err error) {
	if s.next() != '"' {
		return nil, "", errJSON
	}
	if quoted, err = s.take(); err != nil {
		return nil, "", err
	}
	if bytes.ContainsFunc(quoted, func(r rune) bool { return r == '\\' || r >= utf8.RuneSelf }) { // an escape, or what may be no UTF-8
		err = json.Unmarshal(quoted, &key)
	} else {
		key = string(quoted[1 : len(quoted)-1])
	}
	if err == nil && s.next() != ':' {
		err = errJSON
	}
	if err != nil {
		return nil, "", err
	}
	s.in = s.in[1:]
	return quoted, key, nil
}

// next is the first byte behind space; 0 at the end.
func (s *scanner) next() byte {
	for len(s.in) > 0 {
		switch c := s.in[0]; c {
		case ' ', '\n', '\t', '\r':
			s.in = s.in[1:]
		default:
			return c
		}
	}
	return 0
}

// take reads the next value.
func (s *scanner) take() ([]byte, error) {
	s.next()
	depth := 0
	for i := 0; i < len(s.in); i++ {
		switch s.in[i] {
		case '"':
			end := stringEnd(s.in[i+1:])
			if end < 0 {
				return nil, errJSON
			}
			i += end
			if depth == 0 {
				return s.cut(i + 1), nil
			}
		case '{', '[':
			depth++
		case '}', ']', ',', ':', ' ', '\n', '\t', '\r':
			if c := s.in[i]; c == '}' || c == ']' {
				depth--
				if depth == 0 {
					return s.cut(i + 1), nil
				}
			}
			if depth <= 0 { // the end of a number, or of true, false or null
				return s.value(i)
			}
		}
	}
	return s.value(len(s.in))
}

// value cuts off a number, true, false or null of so many bytes.
func (s *scanner) value(size int) ([]byte, error) {
	if size == 0 {
		return nil, errJSON
	}
	return s.cut(size), nil
}

func (s *scanner) cut(size int) []byte {
	whole := s.in[:size]
	s.in = s.in[size:]
	return whole
}

// stringEnd is how many bytes a string has behind its first quote, with the last one; negative without.
func stringEnd(data []byte) int {
	for from := 0; ; {
		quote := bytes.IndexByte(data[from:], '"')
		if quote < 0 {
			return -1
		}
		quote += from
		first := quote
		for first > 0 && data[first-1] == '\\' {
			first--
		}
		if (quote-first)%2 == 0 {
			return quote + 1
		}
		from = quote + 1
	}
}

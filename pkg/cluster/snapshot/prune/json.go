package prune

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxDepth is how deep values may be nested; those of Kubernetes are not a tenth of it.
const maxDepth = 500

// Scanner reads JSON values from a stream, without decoding them.
type Scanner struct {
	in    *bufio.Reader
	out   []byte
	key   []byte
	depth int
}

// NewScanner returns a Scanner of a stream.
func NewScanner(in *bufio.Reader) *Scanner { return &Scanner{in: in} }

// Reset makes the Scanner read from data.
func (s *Scanner) Reset(data []byte) { s.in.Reset(bytes.NewReader(data)) }

// Value returns the next value of the stream without the fields. The bytes are valid until the next call. Whether they are
// JSON in every detail is for the decoder to say; here only strings and brackets are followed.
func (s *Scanner) Value(without Fields) ([]byte, error) {
	s.out = s.out[:0]
	err := s.value(without, true)
	return s.out, err
}

// Object calls f at the value of each key of the object that is next in the stream; f must read the value, or Skip it.
func (s *Scanner) Object(f func(key string) error) error {
	return s.members('{', '}', func(c byte) error {
		if err := s.readKey(c); err != nil {
			return err
		}
		return f(string(s.key))
	})
}

// Array calls f at each element of the array that is next in the stream; f must read the element. A null is an empty array.
func (s *Scanner) Array(f func() error) error {
	c, err := s.next()
	if err != nil {
		return err
	}
	if c == 'n' {
		return s.literal(c, false)
	}
	if err := s.in.UnreadByte(); err != nil {
		return err
	}
	return s.members('[', ']', func(byte) error {
		if err := s.in.UnreadByte(); err != nil {
			return err
		}
		return f()
	})
}

// Skip reads a value and drops it.
func (s *Scanner) Skip() error { return s.value(nil, false) }

// members reads what is between brackets; f is called with the first byte of each member.
func (s *Scanner) members(open, end byte, f func(first byte) error) error {
	if s.depth++; s.depth > maxDepth {
		return fmt.Errorf("invalid JSON: nested more than %d deep", maxDepth)
	}
	defer func() { s.depth-- }()
	if err := s.expect(open); err != nil {
		return err
	}
	for first := true; ; first = false {
		c, err := s.next()
		if err != nil {
			return err
		}
		if c == end {
			return nil
		}
		if !first {
			if c != ',' {
				return unexpected(c)
			}
			if c, err = s.next(); err != nil {
				return err
			}
		}
		if err := f(c); err != nil {
			return err
		}
	}
}

func (s *Scanner) value(without Fields, keep bool) error {
	c, err := s.next()
	if err != nil {
		return err
	}
	switch c {
	case '{', '[':
		if err := s.in.UnreadByte(); err != nil {
			return err
		}
		if c == '{' {
			return s.object(without, keep)
		}
		return s.array(without, keep)
	case '"':
		if keep {
			s.out, err = s.text(append(s.out, c))
			return err
		}
		s.key, err = s.text(s.key[:0])
		return err
	}
	return s.literal(c, keep)
}

func (s *Scanner) object(without Fields, keep bool) error {
	s.write(keep, '{')
	comma := false
	err := s.members('{', '}', func(c byte) error {
		if err := s.readKey(c); err != nil {
			return err
		}
		var below Fields
		whole := false
		if len(without) > 0 {
			below, whole = without.find(string(s.key))
		}
		if whole || !keep {
			return s.value(nil, false)
		}
		if comma {
			s.write(keep, ',')
		}
		comma = true
		s.out = append(append(append(s.out, '"'), s.key...), '"', ':')
		return s.value(below, keep)
	})
	s.write(keep, '}')
	return err
}

func (s *Scanner) array(without Fields, keep bool) error {
	s.write(keep, '[')
	comma := false
	err := s.members('[', ']', func(byte) error {
		if err := s.in.UnreadByte(); err != nil {
			return err
		}
		if comma {
			s.write(keep, ',')
		}
		comma = true
		return s.value(without, keep)
	})
	s.write(keep, ']')
	return err
}

func (s *Scanner) write(keep bool, c byte) {
	if keep {
		s.out = append(s.out, c)
	}
}

// readKey reads a key and its colon, as it is written, without the quotes.
func (s *Scanner) readKey(first byte) (err error) {
	if first != '"' {
		return unexpected(first)
	}
	if s.key, err = s.text(s.key[:0]); err != nil {
		return err
	}
	s.key = s.key[:len(s.key)-1]
	return s.expect(':')
}

// text appends the rest of a string, up to and with the quote that ends it.
func (s *Scanner) text(out []byte) ([]byte, error) {
	for {
		part, err := s.in.ReadSlice('"')
		out = append(out, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return out, truncated(err)
		}
		backslashes := 0
		for i := len(out) - 2; i >= 0 && out[i] == '\\'; i-- {
			backslashes++
		}
		if backslashes%2 == 0 {
			return out, nil
		}
	}
}

// literal reads the rest of a number, true, false or null.
func (s *Scanner) literal(c byte, keep bool) error {
	for {
		switch c {
		case ',', ']', '}', ' ', '\n', '\t', '\r':
			return s.in.UnreadByte()
		case ':', '"', '{', '[':
			return unexpected(c)
		}
		s.write(keep, c)
		var err error
		if c, err = s.in.ReadByte(); err != nil {
			return truncated(err)
		}
	}
}

func (s *Scanner) expect(want byte) error {
	c, err := s.next()
	if err == nil && c != want {
		err = unexpected(c)
	}
	return err
}

// next is the next byte that is not white space.
func (s *Scanner) next() (byte, error) {
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return 0, truncated(err)
		}
		switch c {
		case ' ', '\n', '\t', '\r':
		default:
			return c, nil
		}
	}
}

func truncated(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func unexpected(c byte) error { return fmt.Errorf("invalid JSON: unexpected %q", c) }

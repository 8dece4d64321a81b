package prune

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// Apply leaves the fields out of an encoded message. The result is what is left of data, in the same memory.
func (m Message) Apply(data []byte) ([]byte, error) {
	if len(m) == 0 {
		return data, nil
	}
	out := data[:0]
	for rest := data; len(rest) > 0; {
		number, kind, tag := protowire.ConsumeTag(rest)
		if tag < 0 {
			return nil, protowire.ParseError(tag)
		}
		size := protowire.ConsumeFieldValue(number, kind, rest[tag:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		whole, value := rest[:tag+size], rest[tag:tag+size]
		rest = rest[tag+size:]
		var f *field
		if int(number) < len(m) {
			f = m[number]
		}
		switch {
		case f == nil || !f.whole && kind != protowire.BytesType:
			out = append(out, whole...)
		case !f.whole:
			content, n := protowire.ConsumeBytes(value)
			if n < 0 {
				return nil, protowire.ParseError(n)
			}
			content, err := f.below.Apply(content)
			if err != nil {
				return nil, err
			}
			// It is no longer than before, so what is written never overtakes what is read.
			out = protowire.AppendTag(out, number, kind)
			out = protowire.AppendBytes(out, content)
		}
	}
	return out, nil
}

// First is the number of the first field of an encoded message, its content if that is bytes, a string or a message, and what
// follows.
func First(data []byte) (number int, content, rest []byte, err error) {
	n, kind, tag := protowire.ConsumeTag(data)
	if tag < 0 {
		return 0, nil, nil, protowire.ParseError(tag)
	}
	size := protowire.ConsumeFieldValue(n, kind, data[tag:])
	if size < 0 {
		return 0, nil, nil, protowire.ParseError(size)
	}
	if kind == protowire.BytesType {
		content, _ = protowire.ConsumeBytes(data[tag : tag+size]) // its size was checked
	}
	return int(n), content, data[tag+size:], nil
}

// Each calls f with the fields of an encoded message, one after the other: the number, the whole field with its tag, and its
// content if that is bytes, a string or a message.
func Each(data []byte, f func(number int, whole, content []byte) error) error {
	for len(data) > 0 {
		number, content, rest, err := First(data)
		if err != nil {
			return err
		}
		if err := f(number, data[:len(data)-len(rest)], content); err != nil {
			return err
		}
		data = rest
	}
	return nil
}

package page

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// magic begins every protobuf message of an API server. An envelope follows, runtime.Unknown, whose field 2 is the list; of
// a list, field 1 is the metadata, and field 2 an object.
var magic = []byte("k8s\x00")

const (
	envelopeObject   = 2
	envelopeEncoding = 3
	listMeta         = 1
	listItem         = 2
)

// maxItem is the size of the largest object that is read; API servers and etcd take far smaller ones.
const maxItem = 64 << 20

func readProtobuf(in *bufio.Reader, f func(Item) error) (meta metav1.ListMeta, err error) {
	if _, err := in.Discard(len(magic)); err != nil {
		return meta, err
	}
	envelope := message{in: in, left: -1}
	var buf []byte
	for seen := false; ; {
		number, size, err := envelope.field()
		if errors.Is(err, io.EOF) && seen {
			return meta, nil
		}
		if errors.Is(err, io.EOF) {
			return meta, io.ErrUnexpectedEOF
		}
		if err != nil {
			return meta, err
		}
		switch {
		case number == envelopeObject:
			seen = true
			if err := readList(&message{in: in, left: size}, &meta, &buf, f); err != nil {
				return meta, err
			}
		case number == envelopeEncoding && size > 0:
			return meta, errors.New("the list is encoded in an unknown way")
		default:
			if err := envelope.skip(size); err != nil {
				return meta, err
			}
		}
	}
}

func readList(list *message, meta *metav1.ListMeta, buf *[]byte, f func(Item) error) error {
	for {
		number, size, err := list.field()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if number != listMeta && number != listItem {
			if err := list.skip(size); err != nil {
				return err
			}
			continue
		}
		raw, err := list.bytes(size, buf)
		if err != nil {
			return err
		}
		if number == listMeta {
			err = meta.Unmarshal(raw)
		} else {
			err = f(Item{Raw: raw, Protobuf: true})
		}
		if err != nil {
			return err
		}
	}
}

// message reads the fields of a protobuf message from a stream.
type message struct {
	in *bufio.Reader
	// left is how many bytes of the message are left; negative for all that the stream holds.
	left int64
}

// field reads the tag of the next field, and the size of its content: 0 for a number, which is read too. At the end of the
// message it returns io.EOF.
func (m *message) field() (number protowire.Number, size int64, err error) {
	if m.left == 0 {
		return 0, 0, io.EOF
	}
	if m.left < 0 {
		if _, err := m.in.Peek(1); err != nil {
			return 0, 0, err
		}
	}
	tag, err := m.varint()
	if err != nil {
		return 0, 0, err
	}
	number, kind := protowire.DecodeTag(tag)
	switch {
	case !number.IsValid():
		return 0, 0, fmt.Errorf("invalid protobuf: field %d", number)
	case kind == protowire.VarintType:
		_, err = m.varint()
		return number, 0, err
	case kind != protowire.BytesType:
		return 0, 0, fmt.Errorf("invalid protobuf: type %d of field %d", kind, number)
	}
	length, err := m.varint()
	if err != nil {
		return 0, 0, err
	}
	size = int64(length)
	if size < 0 || m.left >= 0 && size > m.left {
		return 0, 0, fmt.Errorf("invalid protobuf: field %d is longer than what holds it", number)
	}
	if m.left >= 0 {
		m.left -= size
	}
	return number, size, nil
}

// varint reads a number of at most ten bytes.
func (m *message) varint() (uint64, error) {
	var v uint64
	for shift := 0; shift < 70; shift += 7 {
		if m.left == 0 {
			return 0, io.ErrUnexpectedEOF
		}
		b, err := m.in.ReadByte()
		if err != nil {
			return 0, truncated(err)
		}
		if m.left > 0 {
			m.left--
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, errors.New("invalid protobuf: a number is too long")
}

// bytes reads the content of a field into a buffer that is used again.
func (m *message) bytes(size int64, buf *[]byte) ([]byte, error) {
	if size > maxItem {
		return nil, fmt.Errorf("an object of %d bytes is too large", size)
	}
	if int64(cap(*buf)) < size {
		*buf = make([]byte, size+size/2)
	}
	raw := (*buf)[:size]
	_, err := io.ReadFull(m.in, raw)
	return raw, truncated(err)
}

func (m *message) skip(size int64) error {
	_, err := io.CopyN(io.Discard, m.in, size)
	return truncated(err)
}

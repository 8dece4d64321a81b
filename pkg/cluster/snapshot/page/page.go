// Package page reads one page of a list of an API server as it arrives, object by object: a page is never held as a whole,
// however large it is. API servers that serve a list from their cache give all of it as one page.
package page

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bufferSize is how much is read from the connection at a time.
const bufferSize = 64 << 10

// Item is one object of a page, encoded. Its bytes are valid only until the next one is read.
type Item struct {
	// Raw is the object, in protobuf (without an envelope) or in JSON.
	Raw      []byte
	Protobuf bool
}

// Read calls f with each object of a page in JSON or protobuf, and returns the metadata of the list. A page that ends in the
// middle is io.ErrUnexpectedEOF.
func Read(in io.Reader, f func(Item) error) (metav1.ListMeta, error) {
	buffered := bufio.NewReaderSize(in, bufferSize)
	start, err := buffered.Peek(len(magic))
	if err != nil && len(start) == 0 {
		return metav1.ListMeta{}, fmt.Errorf("read list: %w", truncated(err))
	}
	var meta metav1.ListMeta
	if bytes.Equal(start, magic) {
		meta, err = readProtobuf(buffered, f)
	} else {
		meta, err = readJSON(buffered, f)
	}
	if err != nil {
		return meta, fmt.Errorf("read list: %w", truncated(err))
	}
	return meta, nil
}

func readJSON(in io.Reader, f func(Item) error) (meta metav1.ListMeta, err error) {
	decoder := json.NewDecoder(in)
	if err := expect(decoder, '{'); err != nil {
		return meta, err
	}
	kind, itemized := "", false
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return meta, err
		}
		switch key {
		case "metadata":
			err = decoder.Decode(&meta)
		case "items":
			itemized, err = true, readItems(decoder, f)
		case "kind":
			err = decoder.Decode(&kind)
		default:
			err = decoder.Decode(&json.RawMessage{})
		}
		if err != nil {
			return meta, err
		}
	}
	if err := expect(decoder, '}'); err != nil {
		return meta, err
	}
	return meta, isList(kind, itemized)
}

// isList refuses what a server, or one in between, sends with a code of success, but is no list: it must not pass for an empty one.
func isList(kind string, itemized bool) error {
	switch {
	case kind == "":
		return errors.New("the server's answer is no object of Kubernetes")
	case !strings.HasSuffix(kind, "List"):
		return fmt.Errorf("the server's answer is no list, but of kind %.64q", kind)
	case !itemized:
		return fmt.Errorf("the server's answer of kind %.64s has no items", kind)
	}
	return nil
}

// readItems reads the objects of a list, which may be null.
func readItems(decoder *json.Decoder, f func(Item) error) error {
	open, err := decoder.Token()
	if err != nil || open == nil {
		return err
	}
	if open != json.Delim('[') {
		return fmt.Errorf("invalid list: items are %v", open)
	}
	var raw json.RawMessage
	for decoder.More() {
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		if err := f(Item{Raw: raw}); err != nil {
			return err
		}
	}
	return expect(decoder, ']')
}

func expect(decoder *json.Decoder, want json.Delim) error {
	got, err := decoder.Token()
	if err == nil && got != want {
		err = fmt.Errorf("invalid JSON: %v where %v should be", got, want)
	}
	return err
}

func truncated(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

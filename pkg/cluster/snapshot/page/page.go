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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot/prune"
)

// bufferSize is how much is read from the connection at a time.
const bufferSize = 64 << 10

// Item is one object of a page, encoded. Its bytes are valid only until the next one is read.
type Item struct {
	// Raw is the object, in protobuf (without an envelope) or in JSON.
	Raw      []byte
	Protobuf bool
}

// Read calls f with each object of a page in JSON or protobuf, and returns the metadata of the list. From objects in JSON
// the fields are left out. A page that ends in the middle is io.ErrUnexpectedEOF.
func Read(in io.Reader, without prune.Fields, f func(Item) error) (metav1.ListMeta, error) {
	buffered := bufio.NewReaderSize(in, bufferSize)
	start, err := buffered.Peek(len(magic))
	if err != nil && len(start) == 0 {
		return metav1.ListMeta{}, fmt.Errorf("read list: %w", truncated(err))
	}
	var meta metav1.ListMeta
	if bytes.Equal(start, magic) {
		meta, err = readProtobuf(buffered, f)
	} else {
		meta, err = readJSON(buffered, without, f)
	}
	if err != nil {
		return meta, fmt.Errorf("read list: %w", err)
	}
	return meta, nil
}

func readJSON(in *bufio.Reader, without prune.Fields, f func(Item) error) (meta metav1.ListMeta, err error) {
	s := prune.NewScanner(in)
	err = s.Object(func(key string) error {
		switch key {
		case "metadata":
			raw, err := s.Value(nil)
			if err != nil {
				return err
			}
			return json.Unmarshal(raw, &meta)
		case "items":
			return s.Array(func() error {
				raw, err := s.Value(without)
				if err != nil {
					return err
				}
				return f(Item{Raw: raw})
			})
		}
		return s.Skip()
	})
	return meta, err
}

func truncated(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

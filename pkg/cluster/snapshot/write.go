package snapshot

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/cli/localfile"
	"github.com/gangctl/gangctl/pkg/submit/redact"
)

// Save writes the snapshot to a file, redacted; a path that ends in .gz is compressed. The file appears whole or not at
// all, unless the path is a device, a pipe or a link.
func (s *Snapshot) Save(path string) error { return s.save(path, true) }

// SaveNew is Save to a file that is not there; see [localfile.ErrTaken].
func (s *Snapshot) SaveNew(path string) error { return s.save(path, false) }

func (s *Snapshot) save(path string, overwrite bool) error {
	return localfile.Write(path, overwrite, func(out io.Writer) error { return s.saveTo(out, strings.HasSuffix(path, ".gz")) })
}

func (s *Snapshot) saveTo(f io.Writer, compress bool) error {
	if !compress {
		return s.Write(f)
	}
	z := gzip.NewWriter(f)
	if err := s.Write(z); err != nil {
		return err
	}
	return z.Close()
}

// readable is how many objects a snapshot has at most to be written for people to read. YAML takes twenty times as long to write
// as JSON: a minute for 50,000 pods.
const readable = 2000

// Write writes a stream without what must not leave the cluster: Secrets, managedFields, and what package redact takes out of
// objects. It is YAML, or JSON with one object a line for a large snapshot.
func (s *Snapshot) Write(out io.Writer) error {
	w := &stream{Writer: bufio.NewWriter(out), yaml: s.count() <= readable}
	h := header{APIVersion: APIVersion, Kind: Kind, Server: s.Server, Caller: s.Caller, Denied: s.Denied, Probes: s.Probes, Unanswered: s.Unanswered}
	if !s.At.IsZero() {
		h.CapturedAt = s.At.UTC().Format(time.RFC3339)
	}
	if err := w.document(h); err != nil {
		return err
	}
	for _, k := range kinds {
		err := k.each(s, func(obj runtime.Object) error {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
			if err != nil {
				return err
			}
			content["apiVersion"] = schema.GroupVersion{Group: k.Group, Version: k.version}.String()
			content["kind"] = k.Kind
			return w.object(content)
		})
		if err != nil {
			return err
		}
	}
	for _, gk := range slices.SortedFunc(maps.Keys(s.Custom), func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) }) {
		if gk == (schema.GroupKind{Kind: "Secret"}) {
			continue
		}
		for _, u := range s.Custom[gk] {
			if err := w.object((&unstructured.Unstructured{Object: u.Object}).DeepCopy().Object); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

// count is the number of objects.
func (s *Snapshot) count() int {
	n := 0
	for _, k := range kinds {
		n += k.count(s)
	}
	for _, list := range s.Custom {
		n += len(list)
	}
	return n
}

// stream is the writer of a snapshot, in YAML or JSON.
type stream struct {
	*bufio.Writer
	yaml bool
}

func (w *stream) object(content map[string]any) error {
	redact.Object(content)
	return w.document(content)
}

func (w *stream) document(value any) error {
	if !w.yaml {
		return json.NewEncoder(w).Encode(value) // which ends the line
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if text, err = yaml.JSONToYAML(escapeControls(text)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "---\n%s", text)
	return err
}

// escapeControls escapes the characters in JSON that YAML must not have as they are. Annotations and messages may have any, and one of them is no reason
// to save nothing.
func escapeControls(text []byte) []byte {
	forbidden := func(r rune) bool {
		return r >= 0x7f && r <= 0x9f || r == 0xfeff || r == 0xfffe || r == 0xffff
	}
	if bytes.IndexFunc(text, forbidden) < 0 {
		return text
	}
	var escaped bytes.Buffer
	for _, r := range string(text) {
		if forbidden(r) {
			fmt.Fprintf(&escaped, `\u%04x`, r)
			continue
		}
		escaped.WriteRune(r)
	}
	return escaped.Bytes()
}

package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/localfile"
	"github.com/gangctl/gangctl/pkg/cluster/document"
)

// The header of a snapshot file.
const (
	APIVersion = "gangctl.dev/v1alpha1"
	Kind       = "Snapshot"
)

// header is the first document of a saved snapshot. Every field may be missing.
type header struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	CapturedAt string       `json:"capturedAt,omitempty"`
	Server     Server       `json:"server,omitzero"`
	Caller     string       `json:"caller,omitempty"`
	Denied     []Denial     `json:"denied,omitempty"`
	Probes     []Probe      `json:"probes,omitempty"`
	Unanswered []Unanswered `json:"unanswered,omitempty"`
}

// Open reads a snapshot from a file; "-" is in. One that is compressed with gzip is decompressed. It ends with ctx, as users may name a pipe into which
// nothing is written. Errors name the file, the document's number and a line.
func Open(ctx context.Context, path string, in io.Reader) (*Snapshot, error) {
	f, err := localfile.OpenUntil(ctx, path, in)
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	defer f.Close()
	s, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("read snapshot %s: %w", localfile.Name(path), err)
	}
	return s, nil
}

// Read reads a stream of YAML or JSON documents. Kinds that gangctl does not know are kept. A document that is no object of Kubernetes
// is skipped, unless it is the last: that may have been cut off.
func Read(in io.Reader) (*Snapshot, error) { return readUpTo(in, maxSize) }

// readUpTo is Read for files up to a size.
func readUpTo(in io.Reader, limit int64) (*Snapshot, error) {
	data, err := localfile.Text(in, limit)
	if err != nil {
		return nil, err
	}
	docs, err := document.Split(data)
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return nil, errors.New("document 1, line 1: the file holds no objects")
	}
	s := &Snapshot{Custom: map[schema.GroupKind][]*unstructured.Unstructured{}, Partial: true}
	for i, d := range docs {
		err := s.add(d, d.JSON, "")
		if errors.Is(err, errNoObject) && i < len(docs)-1 {
			s.Skipped = append(s.Skipped, skipped(d))
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	s.Partial = s.Partial && len(s.Nodes) == 0
	if s.At.IsZero() {
		s.At = newest(data)
	}
	s.Finish()
	return s, nil
}

// errNoObject is that a document lacks what every object has.
var errNoObject = errors.New("the file may be truncated")

// skipped names a document that is no object by its place, and its kind if it has one.
func skipped(d document.Document) string {
	var t typeMeta
	if err := json.Unmarshal(d.JSON, &t); err != nil || t.Kind == "" {
		return fmt.Sprintf("document %d, line %d, is no object of Kubernetes, and is skipped", d.Number, d.Line)
	}
	kind := t.Kind
	if len(kind) > maxKind {
		kind = kind[:maxKind] + "…"
	}
	return fmt.Sprintf("document %d, line %d, is a %q without a name, and is skipped", d.Number, d.Line, kind)
}

// maxKind is how much of the kind of an unknown document is shown.
const maxKind = 63

// maxSize is how large a snapshot may be, in bytes and decompressed: 50,000 pods of 5 KiB are a quarter of it.
const maxSize = 1 << 30

// typeMeta distinguishes a list, a header and an object.
type typeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   *struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Items *[]json.RawMessage `json:"items"`
}

// add takes one object, or the objects of a list. item is the object's place in a list, for errors.
func (s *Snapshot) add(d document.Document, raw []byte, item string) error {
	var t typeMeta
	if err := json.Unmarshal(raw, &t); err != nil {
		return d.Errorf(0, "%sno object of Kubernetes: %w", item, errNoObject)
	}
	gvk := schema.FromAPIVersionAndKind(t.APIVersion, t.Kind)
	switch {
	case t.Kind == "" || t.APIVersion == "":
		return d.Errorf(0, "%sapiVersion or kind is missing: %w", item, errNoObject)
	case t.Kind == Kind && gvk.Group == "gangctl.dev":
		return s.addHeader(d, raw)
	case t.Items != nil && strings.HasSuffix(t.Kind, "List"):
		return s.addList(d, gvk, *t.Items)
	case t.Metadata == nil || t.Metadata.Name == "":
		return d.Errorf(0, "%s%s has no metadata.name: %w", item, t.Kind, errNoObject)
	}
	if err := s.addObject(gvk, raw); err != nil {
		return d.Errorf(0, "%s%s %s: %w", item, t.Kind, t.Metadata.Name, err)
	}
	return nil
}

func (s *Snapshot) addHeader(d document.Document, raw []byte) error {
	var h header
	if err := json.Unmarshal(raw, &h); err != nil {
		return d.Errorf(0, "header: %w", err)
	}
	if h.CapturedAt != "" {
		at, err := time.Parse(time.RFC3339, h.CapturedAt)
		if err != nil {
			return d.Errorf(0, "header: capturedAt: %w", err)
		}
		s.At = at
	}
	s.Partial = false
	s.Server, s.Caller, s.Denied, s.Probes = h.Server, h.Caller, append(s.Denied, h.Denied...), append(s.Probes, h.Probes...)
	s.Unanswered = append(s.Unanswered, h.Unanswered...)
	return nil
}

// addList unrolls a list. The items of a PodList need no kind of their own.
func (s *Snapshot) addList(d document.Document, list schema.GroupVersionKind, items []json.RawMessage) error {
	for i, raw := range items {
		where := fmt.Sprintf("item %d: ", i+1)
		if list.Kind != "List" {
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(raw, &fields); err != nil {
				return d.Errorf(0, "%sno object of Kubernetes", where)
			}
			if _, ok := fields["kind"]; !ok {
				fields["kind"], _ = json.Marshal(strings.TrimSuffix(list.Kind, "List")) // a string always marshals
				fields["apiVersion"], _ = json.Marshal(list.GroupVersion().String())
				raw, _ = json.Marshal(fields)
			}
		}
		if err := s.add(d, raw, where); err != nil {
			return err
		}
	}
	return nil
}

func (s *Snapshot) addObject(gvk schema.GroupVersionKind, raw []byte) error {
	if gvk.Group == "events.k8s.io" && gvk.Kind == "Event" {
		return s.addNewEvent(raw)
	}
	if k, ok := kindOf(gvk); ok {
		return k.decode(s, raw)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return err
	}
	s.Custom[gvk.GroupKind()] = append(s.Custom[gvk.GroupKind()], u)
	return nil
}

// Finish sorts what was added, so that the order of reading never shows.
func (s *Snapshot) Finish() {
	for _, k := range kinds {
		k.sort(s)
	}
	for kind, list := range s.Custom {
		s.Custom[kind] = sorted(list)
	}
}

// stamp matches `key: 2026-11-21T14:00:00Z` in YAML and JSON.
var stamp = regexp.MustCompile(`(\w+)["']?\s*:\s*["']?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)`)

// newest is the latest time in the text. A deletionTimestamp lies in the future.
func newest(data []byte) time.Time {
	var latest time.Time
	for _, m := range stamp.FindAllSubmatch(data, -1) {
		if bytes.Equal(m[1], []byte("deletionTimestamp")) {
			continue
		}
		if t, err := time.Parse(time.RFC3339, string(m[2])); err == nil && t.After(latest) {
			latest = t
		}
	}
	return latest
}

// addNewEvent reads an event of events.k8s.io, which is the same object under other field names.
func (s *Snapshot) addNewEvent(raw []byte) error {
	var e eventsv1.Event
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	old := &corev1.Event{
		ObjectMeta: e.ObjectMeta, InvolvedObject: e.Regarding, Related: e.Related, Reason: e.Reason, Message: e.Note, Type: e.Type,
		EventTime: e.EventTime, Action: e.Action, ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
		Source: e.DeprecatedSource, FirstTimestamp: e.DeprecatedFirstTimestamp, LastTimestamp: e.DeprecatedLastTimestamp,
		Count: e.DeprecatedCount,
	}
	if e.Series != nil {
		old.Series = &corev1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	s.Events = append(s.Events, old)
	return nil
}

package snapshot

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const twoNodes = `apiVersion: gangctl.dev/v1alpha1
kind: Snapshot
capturedAt: "2026-11-21T14:00:00Z"
server: {version: v1.37.1, resources: [tfjobs.kubeflow.org/v1]}
denied:
- resource: pods
  exceptNamespaces: [team]
probes:
- {kind: Pod, namespace: team, name: x-worker-0, code: 403, reason: Forbidden, message: refused}
unanswered:
- {kind: Pod, namespace: team, name: x-ps-0, message: "create Pod team/x-ps-0: etcdserver: leader changed"}
---
# a comment alone is no document
---
apiVersion: v1
kind: Node
metadata: {name: b}
---
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: 4}}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
`

func TestReadYAML(t *testing.T) {
	s, err := Read(strings.NewReader(twoNodes))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Nodes) != 2 || s.Nodes[0].Name != "a" || s.Nodes[1].Name != "b" {
		t.Errorf("nodes are not sorted: %v", s.Nodes)
	}
	if q := s.Nodes[0].Status.Allocatable["cpu"]; q.Value() != 4 {
		t.Errorf("cpu is %s", q.String())
	}
	if want := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC); !s.At.Equal(want) {
		t.Errorf("at is %v", s.At)
	}
	if s.CanList("pods", "") || !s.CanList("pods", "team") || s.CanList("pods", "other") || !s.CanList("nodes", "") {
		t.Error("denied lists are not kept")
	}
	if len(s.Probes) != 1 || s.Probes[0].Accepted() {
		t.Errorf("probes: %v", s.Probes)
	}
	if len(s.Custom[schema.GroupKind{Group: "example.com", Kind: "Widget"}]) != 1 {
		t.Error("an unknown kind is not kept")
	}
	tfjobs, widgets := schema.GroupResource{Group: "kubeflow.org", Resource: "tfjobs"}, schema.GroupResource{Group: "example.com", Resource: "widgets"}
	if !s.Serves(tfjobs, "TFJob") || s.Serves(widgets, "Widget") {
		t.Error("discovery does not count")
	}
}

func TestReadShapes(t *testing.T) {
	tests := map[string]string{
		"list":           `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}]}`,
		"typed list":     `{"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "a"}}]}`,
		"json stream":    `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}} {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}`,
		"yaml list":      "kind: List\napiVersion: v1\nitems:\n- kind: Node\n  apiVersion: v1\n  metadata: {name: a}\n",
		"same twice":     "kind: Node\napiVersion: v1\nmetadata: {name: a, resourceVersion: '1'}\n---\nkind: Node\napiVersion: v1\nmetadata: {name: a, resourceVersion: '20', labels: {new: 'yes'}}\n",
		"other order":    "kind: Node\napiVersion: v1\nmetadata: {name: a, resourceVersion: '20', labels: {new: 'yes'}}\n---\nkind: Node\napiVersion: v1\nmetadata: {name: a, resourceVersion: '9'}\n",
		"ends with dots": "kind: Node\napiVersion: v1\nmetadata: {name: a}\n...\n",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := Read(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Nodes) != 1 || s.Nodes[0].Name != "a" {
				t.Fatalf("nodes: %v", s.Nodes)
			}
			if strings.Contains(text, "new") && s.Nodes[0].Labels["new"] != "yes" {
				t.Error("the older of two objects stayed")
			}
		})
	}
}

// What is no object is skipped and named, with no more of its kind than anybody wants to read.
func TestReadSkips(t *testing.T) {
	node := "kind: Node\napiVersion: v1\nmetadata: {name: a}\n"
	s, err := Read(strings.NewReader("replicas: 3\n---\n- a list\n---\nwords\n---\nkind: " + strings.Repeat("K", 100) + "\napiVersion: v1\n---\n" + node))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"document 1, line 1, is no object of Kubernetes, and is skipped", "document 2, line 3, is no object of Kubernetes, and is skipped",
		"document 3, line 5, is no object of Kubernetes, and is skipped", `document 4, line 7, is a "` + strings.Repeat("K", 63) + `…" without a name, and is skipped`}
	if !slices.Equal(s.Skipped, want) || len(s.Nodes) != 1 || !slices.Equal(s.Clone().Skipped, want) {
		t.Errorf("got %q", s.Skipped)
	}
}

func TestReadEvents(t *testing.T) {
	s, err := Read(strings.NewReader(`{"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e", "namespace": "team"}, "note": "no room", "reason": "FailedScheduling",
		"regarding": {"kind": "Pod", "name": "p"}, "reportingController": "gang", "series": {"count": 3, "lastObservedTime": "2026-11-21T13:00:00.000000Z"}}`))
	if err != nil {
		t.Fatal(err)
	}
	e := s.Events[0]
	if e.Message != "no room" || e.InvolvedObject.Name != "p" || e.ReportingController != "gang" || e.Series.Count != 3 {
		t.Errorf("got %+v", e)
	}
}

func TestReadWithoutHeader(t *testing.T) {
	s, err := Read(strings.NewReader("kind: Pod\napiVersion: v1\nmetadata: {name: p, creationTimestamp: '2026-11-21T13:00:00Z', deletionTimestamp: '2026-11-21T15:00:00Z'}\nstatus: {startTime: '2026-11-21T13:30:00Z'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2026, 11, 21, 13, 30, 0, 0, time.UTC); !s.At.Equal(want) {
		t.Errorf("now is %v, want the newest time that is not in the future", s.At)
	}
	if s.Serves(schema.GroupResource{Group: "kubeflow.org", Resource: "tfjobs"}, "TFJob") {
		t.Error("no TFJob is there, and no discovery")
	}
}

func TestReadErrors(t *testing.T) {
	node := "kind: Node\napiVersion: v1\nmetadata: {name: a}\n"
	tests := map[string]struct{ text, want string }{
		"empty":          {"", "document 1, line 1: the file holds no objects"},
		"only comments":  {"# nothing\n---\n", "document 1, line 1: the file holds no objects"},
		"no kind":        {node + "---\nmetadata: {name: b}\n", "document 2, line 5: apiVersion or kind is missing: the file may be truncated"},
		"no name":        {node + "---\nkind: Pod\napiVersion: v1\n", "document 2, line 5: Pod has no metadata.name: the file may be truncated"},
		"bad yaml":       {node + "---\nkind: Pod\n  x: [\n", "document 2, line 6: invalid YAML"},
		"not an object":  {"- 1\n", "document 1, line 1: no object of Kubernetes"},
		"wrong type":     {node + "---\nkind: Pod\napiVersion: v1\nmetadata: {name: p}\nspec: {priority: high}\n", "document 2, line 5: Pod p: json: cannot unmarshal"},
		"truncated json": {"{\"apiVersion\": \"v1\",\n\"kind\": \"Node\",\n", "document 1, line 2: invalid JSON: unexpected EOF"},
		"second of json": {"{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"a\"}}\n{\"kind\": }", "document 2, line 2: invalid JSON"},
		"bad item":       {`{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Node"}]}`, "document 1, line 1: item 1: Node has no metadata.name"},
		"bad header":     {"apiVersion: gangctl.dev/v1alpha1\nkind: Snapshot\ncapturedAt: yesterday\n", "document 1, line 1: header: capturedAt"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tt.text))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(twoNodes)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, path := range []string{write("s.yaml", []byte(twoNodes)), write("s.yaml.gz", packed.Bytes())} {
		if s, err := Open(t.Context(), path, nil); err != nil || len(s.Nodes) != 2 {
			t.Errorf("%s: %v", path, err)
		}
	}
	for name, in := range map[string]io.Reader{"standard input": strings.NewReader(twoNodes), "compressed": bytes.NewReader(packed.Bytes())} {
		if s, err := Open(t.Context(), "-", in); err != nil || len(s.Nodes) != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, path := range []string{filepath.Join(dir, "absent"), dir, "/dev/zero", write("cut.gz", packed.Bytes()[:packed.Len()/2]), write("no.gz", []byte("x"))} {
		if _, err := Open(t.Context(), path, nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

// A file that is too large is refused before all of it is in memory.
func TestTooLarge(t *testing.T) {
	const limit = 1 << 20
	if _, err := readUpTo(strings.NewReader(strings.Repeat("#", limit+1)), limit); err == nil || err.Error() != "it has more than 1 MiB" {
		t.Errorf("got %v", err)
	}
	if s, err := readUpTo(strings.NewReader(twoNodes), int64(len(twoNodes))); err != nil || len(s.Nodes) != 2 {
		t.Errorf("a file of exactly the size: %v", err)
	}
}

// A file that somebody has put together may lack the nodes; one that has a header has those that there are.
func TestPartial(t *testing.T) {
	const pod, node, header = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: team}\n", "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n", "apiVersion: gangctl.dev/v1alpha1\nkind: Snapshot\n"
	for text, want := range map[string]bool{pod: true, pod + "---\n" + node: false, header + "---\n" + pod: false} {
		s, err := Read(strings.NewReader(text))
		if err != nil || s.Partial != want {
			t.Errorf("%q: partial %t, want %t; %v", text, s.Partial, want, err)
		}
	}
}

package snapshot

import (
	"bytes"
	"strings"
	"testing"
)

const file = `apiVersion: gangctl.dev/v1alpha1
kind: Snapshot
capturedAt: "2026-11-21T14:00:00Z"
server: {version: v1.34.2}
denied:
- resource: nodes
- resource: pods
  exceptNamespaces: [team]
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata:
    name: a
    namespace: team
    managedFields: [{manager: kubelet}]
  spec:
    containers:
    - name: main
      env: [{name: PASSWORD, value: s3cr3t}]
- {apiVersion: v1, kind: Node, metadata: {name: n1}}
---
apiVersion: v1
kind: Secret
metadata: {name: token, namespace: team}
data: {password: czNjcjN0}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: team}
data: {url: hidden-url}
---
apiVersion: example.com/v1
kind: Unheard
metadata: {name: of, namespace: team}
`

func read(t *testing.T, text string) *Snapshot {
	t.Helper()
	s, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRead(t *testing.T) {
	s := read(t, file)
	if len(s.Pods) != 1 || len(s.Nodes) != 1 || s.Pods[0].Name != "a" {
		t.Errorf("%d pods and %d nodes, want 1 and 1: a List is unrolled", len(s.Pods), len(s.Nodes))
	}
	if got := s.At.UTC().Format("15:04"); got != "14:00" {
		t.Errorf("captured at %s, want 14:00", got)
	}
	for _, tt := range []struct {
		resource, namespace string
		want                bool
	}{{"nodes", "", false}, {"pods", "team", true}, {"pods", "other", false}, {"services", "other", true}} {
		if got := s.CanList(tt.resource, tt.namespace); got != tt.want {
			t.Errorf("CanList(%s, %q) = %v, want %v", tt.resource, tt.namespace, got, tt.want)
		}
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	header, rest, _ := strings.Cut(file, "---\n")
	documents := strings.Split(rest, "---\n")
	for i, j := 0, len(documents)-1; i < j; i, j = i+1, j-1 {
		documents[i], documents[j] = documents[j], documents[i]
	}
	var a, b bytes.Buffer
	if err := read(t, file).Write(&a); err != nil {
		t.Fatal(err)
	}
	if err := read(t, strings.Join(append(documents, header), "---\n")).Write(&b); err != nil {
		t.Fatal(err)
	}
	if a.String() != b.String() {
		t.Errorf("written in file order:\n%s\nin another:\n%s", a.String(), b.String())
	}
}

func FuzzRead(f *testing.F) {
	f.Add(file)
	f.Add(`{"kind":"List","items":[{}]}`)
	f.Add("---\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		if err := s.Write(&bytes.Buffer{}); err != nil {
			t.Errorf("what was read cannot be written: %v", err)
		}
	})
}

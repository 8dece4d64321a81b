package snapshot

import (
	"bytes"
	"os"
	"path/filepath"
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

func TestWhatIsSavedHidesNothingButSecrets(t *testing.T) {
	for _, name := range []string{"snapshot.yaml", "snapshot.yaml.gz"} {
		path := filepath.Join(t.TempDir(), name)
		if err := read(t, file).Save(path); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := s.Write(&text); err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"s3cr3t", "czNjcjN0", "hidden-url", "managedFields"} {
			if strings.Contains(text.String(), secret) {
				t.Errorf("%s holds %q:\n%s", name, secret, text.String())
			}
		}
		if len(s.Pods) != 1 || len(s.Nodes) != 1 || s.CanList("nodes", "") {
			t.Errorf("%s lost something:\n%s", name, text.String())
		}
	}
}

func TestBrokenFiles(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"empty", "", []string{"document 1", "no objects"}},
		{"not YAML", "apiVersion: v1\nkind: [Node\n", []string{"document 1"}},
		{"the second document", "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\nkind: {\n", []string{"document 2", "line"}},
		{"truncated JSON", `{"apiVersion":"v1","kind":"Node","metadata":{"name"`, []string{"document 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tt.text))
			if err == nil {
				t.Fatal("read without an error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v: lacks %q", err, want)
				}
			}
		})
	}
	path := filepath.Join(t.TempDir(), "snapshot.yaml.gz")
	if err := os.WriteFile(path, []byte("plain"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, nil); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a .gz that is none: %v, want an error that names it", err)
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

package snapshot

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const secrets = `kind: Pod
apiVersion: v1
metadata:
  name: p
  namespace: team
  annotations: {kubectl.kubernetes.io/last-applied-configuration: leaked, keep: "1"}
  managedFields: [{manager: leaked}]
spec:
  containers:
  - name: c
    env: [{name: TOKEN, value: leaked}, {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}]
---
kind: Secret
apiVersion: v1
metadata: {name: leaked}
---
kind: ConfigMap
apiVersion: v1
metadata: {name: cm}
data: {a: leaked}
binaryData: {b: bGVha2Vk}
---
kind: TFJob
apiVersion: kubeflow.org/v1
metadata: {name: j, namespace: team}
spec: {tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: tensorflow, env: [{name: A, value: leaked}]}]}}}}}
`

func TestWriteRedacts(t *testing.T) {
	s, err := Read(strings.NewReader(secrets))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := s.Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"leaked", "bGVha2Vk", "managedFields"} {
		if strings.Contains(out.String(), bad) {
			t.Errorf("%s is in\n%s", bad, out.String())
		}
	}
	for _, good := range []string{"name: TOKEN", "secretKeyRef", "keep:", "name: cm", "kind: TFJob"} {
		if !strings.Contains(out.String(), good) {
			t.Errorf("%s is not in\n%s", good, out.String())
		}
	}
	if s.Pods[0].Spec.Containers[0].Env[0].Value != "leaked" {
		t.Error("writing changed the snapshot")
	}
}

func TestSaveAndOpen(t *testing.T) {
	first, err := Read(strings.NewReader(twoNodes))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"s.yaml", "s.yaml.gz"} {
		path := filepath.Join(t.TempDir(), name)
		if err := first.Save(path); err != nil {
			t.Fatal(err)
		}
		second, err := Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range second.Nodes {
			second.Nodes[i].TypeMeta = first.Nodes[i].TypeMeta // written, so that kubectl reads it too
		}
		if diff := cmp.Diff(first.Nodes, second.Nodes); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(first.Server, second.Server); diff != "" || !first.At.Equal(second.At) || len(second.Denied) != 1 || len(second.Probes) != 1 || len(second.Unanswered) != 1 {
			t.Errorf("the header differs: %s", diff)
		}
	}
}

// Any user may write characters that YAML must not have as they are.
func TestSaveControlCharacters(t *testing.T) {
	s, err := Read(strings.NewReader(twoNodes))
	if err != nil {
		t.Fatal(err)
	}
	const note = "del \x7f c1 \u0091 bom \ufeff next \u0085"
	s.Nodes[0].Annotations = map[string]string{"note": note}
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Nodes[0].Annotations["note"]; got != note {
		t.Errorf("got %q, want %q", got, note)
	}
}

// A link keeps leading to its file, and a device stays one: only a regular file is replaced.
func TestSaveThroughALink(t *testing.T) {
	s, err := Read(strings.NewReader(twoNodes))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	target, link := filepath.Join(dir, "s.yaml"), filepath.Join(dir, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, os.DevNull} {
		before, _ := os.Lstat(path)
		if err := s.Save(path); err != nil {
			t.Fatal(err)
		}
		if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s is another file now: %v, %v", path, after, err)
		}
	}
	if again, err := Open(t.Context(), target, nil); err != nil || len(again.Nodes) != 2 {
		t.Errorf("got %v", err)
	}
}

func TestSaveLeavesNothingHalfMade(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(target, "x"), 0o700); err != nil { // a directory cannot be replaced
		t.Fatal(err)
	}
	if err := (&Snapshot{}).Save(target); err == nil {
		t.Fatal("a directory was replaced")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	if err := (&Snapshot{}).Save(filepath.Join(dir, "absent", "s.yaml")); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("got %v", err)
	}
}

func TestCloneSharesNothingThatChanges(t *testing.T) {
	s, err := Read(strings.NewReader(secrets))
	if err != nil {
		t.Fatal(err)
	}
	c := s.Clone()
	c.Pods = append(c.Pods[:0], c.Pods[1:]...)
	for kind := range c.Custom {
		c.Custom[kind] = nil
	}
	if len(s.Pods) != 1 || len(s.Custom) != 3 {
		t.Error("the original changed")
	}
	for kind, list := range s.Custom {
		if len(list) != 1 {
			t.Errorf("%v: %d objects", kind, len(list))
		}
	}
}

// A large snapshot is JSON, an object a line, and reads as it was.
func TestWriteLarge(t *testing.T) {
	s := &Snapshot{At: time.Unix(1000, 0).UTC(), Server: Server{Version: "v1"}}
	for i := range readable + 1 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("p%05d", i), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
		p.Spec.Containers = []corev1.Container{{Name: "c", Env: []corev1.EnvVar{{Name: "TOKEN", Value: "secret"}}}}
		s.Pods = append(s.Pods, p)
	}
	var out bytes.Buffer
	if err := s.Write(&out); err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(out.Bytes(), []byte("\n")); lines != len(s.Pods)+1 || bytes.Contains(out.Bytes(), []byte("secret")) || out.Bytes()[0] != '{' {
		t.Errorf("%d lines, beginning with %.80s", lines, out.Bytes())
	}
	got, err := Read(&out)
	if err != nil || len(got.Pods) != len(s.Pods) || got.Pods[7].Name != "p00007" || got.Pods[7].ManagedFields != nil || !got.At.Equal(s.At) || got.Server.Version != "v1" {
		t.Errorf("got %d pods, %v", len(got.Pods), err)
	}
}

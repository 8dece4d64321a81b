package snapshot

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Save writes the snapshot to a file, redacted; a path that ends in .gz is compressed. The file appears whole or not at
// all.
func (s *Snapshot) Save(path string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("save snapshot %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("save snapshot %s: %w", path, errors.Join(err, os.Remove(f.Name())))
		}
	}()
	if err := s.saveTo(f, strings.HasSuffix(path, ".gz")); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
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

// Write writes a YAML stream without what must not leave the cluster: Secrets, the data of ConfigMaps, values of
// environment variables, managedFields and the last-applied annotation.
func (s *Snapshot) Write(out io.Writer) error {
	w := bufio.NewWriter(out)
	h := header{APIVersion: APIVersion, Kind: Kind, Server: s.Server, Caller: s.Caller, Denied: s.Denied, Probes: s.Probes}
	if !s.At.IsZero() {
		h.CapturedAt = s.At.UTC().Format(time.RFC3339)
	}
	if err := writeDocument(w, h); err != nil {
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
			return writeObject(w, content)
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
			if err := writeObject(w, (&unstructured.Unstructured{Object: u.Object}).DeepCopy().Object); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

func writeObject(w io.Writer, content map[string]any) error {
	if content["kind"] == "ConfigMap" {
		delete(content, "data")
		delete(content, "binaryData")
	}
	redact(content)
	return writeDocument(w, content)
}

// redact removes what is secret or of no use, wherever it is: pod templates occur in many kinds.
func redact(value any) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "managedFields")
		if annotations, ok := v["annotations"].(map[string]any); ok {
			delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		}
		if env, ok := v["env"].([]any); ok {
			for _, e := range env {
				if variable, ok := e.(map[string]any); ok {
					delete(variable, "value")
				}
			}
		}
		for _, child := range v {
			redact(child)
		}
	case []any:
		for _, child := range v {
			redact(child)
		}
	}
}

func writeDocument(w io.Writer, value any) error {
	text, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "---\n%s", text)
	return err
}

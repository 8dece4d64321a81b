// Package golden compares what a test made with files that people have looked at. `go test PACKAGE -update` writes them again.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// update is a flag of each test program that imports the package.
var update = flag.Bool("update", false, "write the golden files")

// Update reports whether files are to be written instead of compared.
func Update() bool { return *update }

// Compare fails the test unless the file at path holds what the test made.
func Compare(t testing.TB, path, got string) {
	t.Helper()
	if Update() {
		Write(t, path, got)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: run with -update to accept (-want +got):\n%s", path, diff)
	}
}

// Write writes a file, and the folders that it is in.
func Write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil { //nolint:gosec // it is in the repository, for everyone to read
		t.Fatal(err)
	}
}

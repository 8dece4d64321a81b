// Package overlay makes Kubernetes' integration tests create our scheduler. Nothing of Kubernetes is kept here: the one file of theirs that
// creates a scheduler is read from the module cache when the tests run, and the compiler is given a changed copy in a temporary place.
package overlay

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
)

const (
	// Version is that of Kubernetes.
	Version = "v1.37.1"
	// Util is the file that creates schedulers, in the module k8s.io/kubernetes.
	Util = "test/integration/util/util.go"
	// hash is that of the file in the version that was read by a person. In another version, what is replaced has to be read again.
	hash = "da571604cdbb22d4f4d0b74326c1c0cba9832407b3198209309980462f0a92f5"
	// created is how often the file creates a scheduler.
	created = 2

	kubernetes = "k8s.io/kubernetes"
	theirs     = kubernetes + "/pkg/scheduler"
	ours       = "github.com/gangctl/gangctl/test/upstream/ours"
)

// Overlay is how the Go command is called to compile our scheduler into the tests.
type Overlay struct {
	Flags []string // of its commands that compile
	Env   []string // of its process, beyond that of ours
}

// Module is a module that the tests are compiled from, in the module cache.
type Module struct{ Path, Dir string }

// Write writes an overlay to a directory. The Go command replaces no file in its module cache. So it is given another, which stays empty, and a
// go.mod by which each module is the directory that it has in the real one: what was compiled from there need not be compiled again.
func Write(dir string, modules []Module) (Overlay, error) {
	files, replaced := map[string][]byte{}, map[string]string{} // contents by the name in dir; names in dir by the file that they replace
	definition, err := os.ReadFile("go.mod")
	if err != nil {
		return Overlay{}, fmt.Errorf("read module: %w", err)
	}
	if files["go.sum"], err = os.ReadFile("go.sum"); err != nil {
		return Overlay{}, fmt.Errorf("read module: %w", err)
	}
	for i, m := range modules {
		definition = fmt.Appendf(definition, "\nreplace %s => %s\n", m.Path, m.Dir)
		if m.Path == kubernetes {
			if files["util.go"], err = changed(m.Dir); err != nil {
				return Overlay{}, err
			}
			replaced[filepath.Join(m.Dir, Util)] = "util.go"
		}
		if _, err := os.Stat(filepath.Join(m.Dir, "go.mod")); errors.Is(err, os.ErrNotExist) { // one from before there were modules
			name := fmt.Sprintf("old%d.mod", i)
			files[name], replaced[filepath.Join(m.Dir, "go.mod")] = fmt.Appendf(nil, "module %s\n", m.Path), name
		}
	}
	if files["util.go"] == nil {
		return Overlay{}, fmt.Errorf("the tests are not in the module %s", kubernetes)
	}
	files["go.mod"] = definition
	for file, name := range replaced {
		replaced[file] = filepath.Join(dir, name)
	}
	if files["overlay.json"], err = json.Marshal(map[string]map[string]string{"Replace": replaced}); err != nil {
		return Overlay{}, fmt.Errorf("write overlay: %w", err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return Overlay{}, fmt.Errorf("write overlay: %w", err)
		}
	}
	return Overlay{
		Flags: []string{"-modfile", filepath.Join(dir, "go.mod"), "-overlay", filepath.Join(dir, "overlay.json")},
		Env:   []string{"GOMODCACHE=" + filepath.Join(dir, "modcache"), "GOPROXY=off", "GOWORK=off", "GOFLAGS="},
	}, nil
}

// changed returns the file of a module directory of Kubernetes that creates schedulers, with ours.
func changed(module string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(module, Util))
	if err != nil {
		return nil, fmt.Errorf("read Kubernetes' tests: %w", err)
	}
	if sum := sha256.Sum256(source); hex.EncodeToString(sum[:]) != hash {
		return nil, fmt.Errorf("%s of %s is another than that of Kubernetes %s: its hash is %x", Util, module, Version, sum)
	}
	result, err := replace(source)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", Util, module, err)
	}
	return result, nil
}

// replace has a Go file call our New where it calls that of kube-scheduler. All else stays as it is, to the byte.
func replace(source []byte) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	name, err := importedAs(file, theirs)
	if err != nil {
		return nil, err
	}
	var calls []int // offsets of the package's name
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if fun, ok := call.Fun.(*ast.SelectorExpr); ok && fun.Sel.Name == "New" {
			if pkg, ok := fun.X.(*ast.Ident); ok && pkg.Name == name {
				calls = append(calls, files.Position(pkg.Pos()).Offset)
			}
		}
		return true
	})
	if len(calls) != created {
		return nil, fmt.Errorf("%d calls of %s.New, not %d", len(calls), name, created)
	}
	var changed bytes.Buffer
	at := files.Position(file.Name.End()).Offset
	changed.Write(source[:at])
	fmt.Fprintf(&changed, "; import gangctl %q", ours) // on the same line, so that all others keep their numbers
	for _, call := range calls {
		changed.Write(source[at:call])
		changed.WriteString("gangctl")
		at = call + len(name)
	}
	changed.Write(source[at:])
	return changed.Bytes(), nil
}

// importedAs returns the name under which a file imports a package.
func importedAs(file *ast.File, path string) (string, error) {
	for _, spec := range file.Imports {
		if imported, err := strconv.Unquote(spec.Path.Value); err == nil && imported == path {
			if spec.Name != nil {
				return spec.Name.Name, nil
			}
			return filepath.Base(path), nil
		}
	}
	return "", fmt.Errorf("package %s is not imported", path)
}

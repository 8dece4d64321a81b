// Package arrow holds the rules of which package may import which. The flow of
// data is one way, and a rule that no test checks does not last.
package arrow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/gangctl/gangctl"

type pkg struct {
	ImportPath string
	Name       string
	// ForTest is the package of which this is a variant, or the tests.
	ForTest string
	Dir     string
	GoFiles []string
	Imports []string
	Deps    []string
}

// load runs `go list` once for all tests: it takes seconds. What another process reads does not count for the cache of test results, so this one
// reads the folders, too: it would pass for ever.
var load = sync.OnceValues(func() ([]pkg, error) {
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin") {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("walk through the module: %w", err)
	}
	cmd := exec.Command("go", "list", "-test", "-json=ImportPath,Name,ForTest,Dir,GoFiles,Imports,Deps", "./...")
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	var all []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, p)
	}
})

// list returns the packages of this module at or below a directory, without tests.
func list(t *testing.T, dir string) []pkg {
	t.Helper()
	all := listWithTests(t)
	found := slices.DeleteFunc(slices.Clone(all), func(p pkg) bool {
		return p.ForTest != "" || strings.HasSuffix(p.ImportPath, ".test") || dir != "" && !under(p.ImportPath, dir)
	})
	if len(found) == 0 {
		t.Fatalf("no packages below %q", dir)
	}
	return found
}

// listWithTests returns all packages of this module, those that tests are compiled to as well.
func listWithTests(t *testing.T) []pkg {
	t.Helper()
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// under reports whether path is the package dir of this module or below it.
func under(path, dir string) bool {
	return path == module+"/"+dir || strings.HasPrefix(path, module+"/"+dir+"/")
}

func TestImports(t *testing.T) {
	const ofPlacement = "what the placement stage finds of one idea is found without the others; what all need is in package node"
	rules := []struct {
		from   string
		never  []string
		except string // a package that may be imported all the same
		reason string
	}{
		{"pkg", []string{"cmd", "scheduler", "sandbox", "test"}, "", "libraries know nothing of the programs made of them"},
		{"scheduler", []string{"pkg/cmd", "cmd", "sandbox", "test"}, "", "the scheduler runs without a terminal"},
		{"sandbox", []string{"pkg/cmd", "cmd", "test"}, "", "the sandbox serves the commands, not the other way round"},
		{"install", []string{"pkg", "cmd", "scheduler", "sandbox", "test"}, "pkg/setup/rbac", "manifests are data, with the rules that one writer makes"},
		{"pkg/diagnose/stages/placement/node", []string{"pkg/diagnose/stages"}, "", ofPlacement},
		{"pkg/diagnose/stages/placement/volume", []string{"pkg/diagnose/stages"}, "pkg/diagnose/stages/placement/node", ofPlacement},
		{"pkg/diagnose/stages/placement/noderule", []string{"pkg/diagnose/stages"}, "", ofPlacement},
		{"pkg/diagnose/stages/placement/topology", []string{"pkg/diagnose/stages"}, "", ofPlacement},
		{"pkg/diagnose/stages/placement/device", []string{"pkg/diagnose/stages"}, "pkg/diagnose/stages/placement/node", ofPlacement},
	}
	for _, p := range list(t, "") {
		for _, rule := range rules {
			if !under(p.ImportPath, rule.from) {
				continue
			}
			for _, dep := range p.Deps {
				for _, dir := range rule.never {
					if under(dep, dir) && (rule.except == "" || !under(dep, rule.except)) {
						t.Errorf("%s depends on %s: %s", p.ImportPath, dep, rule.reason)
					}
				}
			}
		}
	}
}

// What is done in one place only, so that all that is read and written agrees.
func TestOneHome(t *testing.T) {
	for imported, home := range map[string]string{
		"k8s.io/apimachinery/pkg/util/duration": "pkg/diagnose/phrase", // how ages are written
		"k8s.io/component-helpers/resource":     "pkg/gang/request",    // how requests are summed
	} {
		used := false
		for _, p := range list(t, "") {
			switch uses := slices.Contains(p.Imports, imported); {
			case under(p.ImportPath, home):
				used = used || uses
			case uses:
				t.Errorf("%s imports %s: call what %s has, or add to it", p.ImportPath, imported, home)
			}
		}
		if !used {
			t.Errorf("%s does not import %s", home, imported)
		}
	}
}

// pureTrees are pure as a whole, whatever the docs of their packages have.
var pureTrees = []string{"pkg/gang", "pkg/placement", "pkg/diagnose"}

// promisesPure matches a package doc that promises it: values in, values out.
var promisesPure = regexp.MustCompile(`\b(?:is|are)\s+pure\b`)

// isPure reports whether a package must not do I/O: by its place in the tree, or by its own doc.
func isPure(t *testing.T, p pkg) bool {
	t.Helper()
	if slices.ContainsFunc(pureTrees, func(dir string) bool { return under(p.ImportPath, dir) }) {
		return true
	}
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if promisesPure.MatchString(file.Doc.Text()) {
			return true
		}
	}
	return false
}

// doesIO reports whether a package of the standard library or of client-go talks to other processes or servers.
func doesIO(path string) bool {
	switch path {
	case "os/exec", "os/signal", "net", "net/http", "net/rpc", "net/smtp":
		return true
	case "k8s.io/client-go/kubernetes/scheme": // types and codecs, no client
		return false
	}
	for _, client := range []string{"kubernetes", "dynamic", "metadata", "rest", "discovery", "restmapper", "transport", "tools/clientcmd", "tools/portforward", "tools/remotecommand"} {
		if dir := "k8s.io/client-go/" + client; path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// findIO returns the chain of imports, within this module, from a package to the first one that does I/O; nil if there is none.
// Imports of third parties are not followed: k8s.io/api itself links package net, and never calls it.
func findIO(start string, module map[string]pkg) []string {
	cameFrom := map[string]string{start: ""}
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		for _, imported := range module[queue[0]].Imports {
			if _, seen := cameFrom[imported]; seen {
				continue
			}
			cameFrom[imported] = queue[0]
			if doesIO(imported) {
				var chain []string
				for at := imported; at != ""; at = cameFrom[at] {
					chain = append(chain, at)
				}
				slices.Reverse(chain)
				return chain
			}
			if _, ours := module[imported]; ours {
				queue = append(queue, imported)
			}
		}
	}
	return nil
}

// What reads a gang, places it, explains it and renders it are functions of values, so that any answer can be replayed from a file.
// The promise stands in package docs, and holds for what a package reaches as well as for what it imports itself. Only files may be
// opened by a package that it reaches: package snapshot has the file format, and opens it.
func TestPurePackagesDoNoIO(t *testing.T) {
	module := map[string]pkg{}
	for _, p := range list(t, "") {
		module[p.ImportPath] = p
	}
	pure := 0
	for _, p := range module {
		if p.Name == "main" || !isPure(t, p) { // a program that generates code writes it to a file
			continue
		}
		pure++
		if chain := findIO(p.ImportPath, module); chain != nil {
			t.Errorf("%s is pure, but does I/O by way of %s", p.ImportPath, strings.Join(chain, " > "))
		}
		if slices.Contains(p.Imports, "os") {
			t.Errorf("%s is pure, but imports os", p.ImportPath)
		}
	}
	if pure < 30 {
		t.Errorf("%d packages are pure, want 30 or more: do their docs no longer say so?", pure)
	}
}

func TestFindIO(t *testing.T) {
	module := map[string]pkg{
		"a": {Imports: []string{"strings", "b", "k8s.io/client-go/kubernetes/scheme"}},
		"b": {Imports: []string{"a", "c", "k8s.io/api/core/v1"}},
		"c": {Imports: []string{"os", "k8s.io/client-go/dynamic/dynamicinformer"}},
		"d": {Imports: []string{"net/url", "d"}},
	}
	if got, want := findIO("a", module), []string{"a", "b", "c", "k8s.io/client-go/dynamic/dynamicinformer"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := findIO("d", module); got != nil {
		t.Errorf("got %q for a package that does no I/O", got)
	}
}

// linked returns a dependency that is one of some packages, or below one; empty if there is none.
func linked(p pkg, dirs ...string) string {
	for _, dep := range p.Deps {
		if slices.ContainsFunc(dirs, func(dir string) bool { return dep == dir || strings.HasPrefix(dep, dir+"/") }) {
			return dep
		}
	}
	return ""
}

// A test that links a control plane takes half a minute to link, so only the package that runs one does, and its program. gangctl
// is without simulated nodes as well.
func TestOnlyTheSandboxLinksAControlPlane(t *testing.T) {
	servers := []string{"k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/pkg/controlplane", "go.etcd.io/etcd/server"}
	for _, p := range listWithTests(t) {
		path, _, _ := strings.Cut(strings.TrimSuffix(p.ImportPath, ".test"), " ")
		if under(path, "cmd/gangctl-sandbox") || under(path, "sandbox/controlplane") {
			continue
		}
		if dep := linked(p, servers...); dep != "" {
			t.Errorf("%s links %s", p.ImportPath, dep)
		}
		if dep := linked(p, "sigs.k8s.io/kwok"); dep != "" && under(path, "cmd/gangctl") {
			t.Errorf("%s links %s", p.ImportPath, dep)
		}
	}
}

// With the package plugin in it the linker keeps all that could be called by
// name: a third more on disk, and in memory.
func TestGangctlLoadsNoPlugins(t *testing.T) {
	for _, p := range list(t, "cmd/gangctl") {
		if slices.Contains(p.Deps, "plugin") {
			t.Errorf("%s links plugin; see who does: go list -deps -json ./cmd/gangctl", p.ImportPath)
		}
	}
}

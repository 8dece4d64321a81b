// Package arrow holds the rules of which package may import which. The flow of
// data is one way, and a rule that nobody checks does not last.
package arrow

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/gangctl/gangctl"

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// list asks the go command about packages of this module.
func list(t *testing.T, pattern string) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", pattern)
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", pattern, err, stderr.String())
	}
	var pkgs []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) == 0 {
		t.Fatalf("go list %s: no packages", pattern)
	}
	return pkgs
}

// under reports whether path is the package dir of this module or below it.
func under(path, dir string) bool {
	return path == module+"/"+dir || strings.HasPrefix(path, module+"/"+dir+"/")
}

func TestImports(t *testing.T) {
	rules := []struct {
		from   string
		never  []string
		reason string
	}{
		{"pkg", []string{"cmd", "scheduler", "sandbox", "test"}, "libraries know nothing of the programs made of them"},
		{"scheduler", []string{"pkg/cmd", "cmd", "sandbox", "test"}, "the scheduler runs without a terminal"},
		{"sandbox", []string{"pkg/cmd", "cmd", "test"}, "the sandbox serves the commands, not the other way round"},
		{"install", []string{"pkg", "cmd", "scheduler", "sandbox", "test"}, "manifests are data"},
	}
	for _, p := range list(t, "./...") {
		for _, rule := range rules {
			if !under(p.ImportPath, rule.from) {
				continue
			}
			for _, imported := range p.Imports {
				for _, dir := range rule.never {
					if under(imported, dir) {
						t.Errorf("%s imports %s: %s", p.ImportPath, imported, rule.reason)
					}
				}
			}
		}
	}
}

// What explains and what renders are functions of values, so that any answer
// can be replayed from a file.
func TestPureCore(t *testing.T) {
	pure := []string{"pkg/gang", "pkg/submit/render", "pkg/placement", "pkg/diagnose"}
	impure := []string{"os", "os/exec", "net", "net/http", "k8s.io/client-go/kubernetes", "k8s.io/client-go/dynamic", "k8s.io/client-go/rest"}
	for _, p := range list(t, "./pkg/...") {
		if !slices.ContainsFunc(pure, func(dir string) bool { return under(p.ImportPath, dir) }) {
			continue
		}
		for _, imported := range p.Imports {
			for _, bad := range impure {
				if imported == bad {
					t.Errorf("%s imports %s, but takes values and returns values", p.ImportPath, bad)
				}
			}
		}
	}
}

func TestOnlyTheSandboxLinksAControlPlane(t *testing.T) {
	for _, p := range list(t, "./cmd/gangctl") {
		for _, dep := range p.Deps {
			for _, server := range []string{"k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/pkg/controlplane", "go.etcd.io/etcd/server", "sigs.k8s.io/kwok"} {
				if dep == server || strings.HasPrefix(dep, server+"/") {
					t.Errorf("%s links %s", p.ImportPath, dep)
				}
			}
		}
	}
}

// With the package plugin in it the linker keeps all that could be called by
// name: a third more on disk, and in memory.
func TestGangctlLoadsNoPlugins(t *testing.T) {
	for _, p := range list(t, "./cmd/gangctl") {
		if slices.Contains(p.Deps, "plugin") {
			t.Errorf("%s links plugin; see who does: go list -deps -json ./cmd/gangctl", p.ImportPath)
		}
	}
}

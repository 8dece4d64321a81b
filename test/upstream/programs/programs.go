// Package programs compiles Kubernetes' own tests, byte for byte as the module k8s.io/kubernetes has them, with our scheduler in the place of
// kube-scheduler or as they are.
package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gangctl/gangctl/test/upstream/overlay"
)

// Tests is the package below which all of these tests are.
const Tests = "k8s.io/kubernetes/test/integration/"

// Compiler compiles packages of tests into programs.
type Compiler struct {
	dir     string
	stock   bool            // kube-scheduler is tested
	overlay overlay.Overlay // empty for kube-scheduler
}

// NewCompiler returns a compiler of packages below Tests. What it makes is in a directory, with the etcd that tests start. With stock, the tests stay
// as they are, and test kube-scheduler.
func NewCompiler(ctx context.Context, dir string, stock bool, packages []string) (c Compiler, err error) {
	if dir == "" {
		return c, errors.New("-dir: no directory is given")
	}
	c = Compiler{stock: stock}
	if c.dir, err = filepath.Abs(dir); err != nil {
		return c, err
	}
	if err := os.MkdirAll(c.dir, 0o750); err != nil {
		return c, err
	}
	if _, err := goCommand(ctx, nil, "build", "-ldflags", "-s -w", "-o", filepath.Join(c.dir, "etcd"), "go.etcd.io/etcd/server/v3"); err != nil || stock {
		return c, err
	}
	modules, err := modulesOf(ctx, packages)
	if err != nil {
		return c, err
	}
	c.overlay, err = overlay.Write(c.dir, modules)
	return c, err
}

// modulesOf lists the modules in the module cache from which packages below Tests and our scheduler are compiled.
func modulesOf(ctx context.Context, packages []string) ([]overlay.Module, error) {
	list := []string{"list", "-deps", "-test", "-f", "{{with .Module}}{{if .Version}}{{.Path}} {{.Dir}}{{end}}{{end}}", "./ours"}
	for _, pkg := range packages {
		list = append(list, Tests+pkg)
	}
	lines, err := goCommand(ctx, nil, list...)
	if err != nil {
		return nil, err
	}
	cache, err := goCommand(ctx, nil, "env", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	known := map[overlay.Module]bool{}
	for line := range strings.Lines(lines) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(dir, strings.TrimSpace(cache)) {
			known[overlay.Module{Path: path, Dir: dir}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(known), func(a, b overlay.Module) int { return strings.Compare(a.Path, b.Path) }), nil
}

// Program is a package of tests, compiled.
type Program struct {
	// Path is the program. What it prints belongs in the file of the same name that ends in .log.
	Path string
	// Source is the directory of the package in the module cache, which has the files that its tests read.
	Source string
	dir    string
}

// Compile compiles a package below Tests.
func (c Compiler) Compile(ctx context.Context, pkg string) (Program, error) {
	fmt.Fprintln(os.Stderr, "compile", pkg)
	name := strings.ReplaceAll(pkg, "/", "-")
	if c.stock {
		name += "-stock"
	}
	p := Program{Path: filepath.Join(c.dir, name+".test"), dir: c.dir}
	source, err := goCommand(ctx, nil, "list", "-f", "{{.Dir}}", Tests+pkg)
	if err != nil {
		return p, err
	}
	p.Source = strings.TrimSpace(source)
	build := append([]string{"test", "-c", "-vet=off", "-ldflags", "-s -w", "-o", p.Path}, c.overlay.Flags...)
	_, err = goCommand(ctx, c.overlay.Env, append(build, Tests+pkg)...)
	return p, err
}

// Log creates the file for what a program prints.
func (p Program) Log() (*os.File, error) {
	return os.Create(strings.TrimSuffix(p.Path, ".test") + ".log")
}

// Command returns a command that runs the program, or another that starts it, with its files and those of its etcd in a temporary directory. A
// process that ends early leaves its etcd behind, which is in its group: end ends all of the group.
func (p Program) Command(ctx context.Context, temporary string, args ...string) (cmd *exec.Cmd, end func() error) {
	cmd = exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "PATH="+p.dir+string(os.PathListSeparator)+os.Getenv("PATH"), "TMPDIR="+temporary)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd, cmd.Cancel
}

// goCommand runs the Go command with more environment, and returns what it prints.
func goCommand(ctx context.Context, env []string, args ...string) (string, error) {
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &problems, append(os.Environ(), env...)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, problems.String())
	}
	return out.String(), nil
}

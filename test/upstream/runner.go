package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gangctl/gangctl/test/upstream/overlay"
	"github.com/gangctl/gangctl/test/upstream/results"
)

// runner runs suites.
type runner struct {
	dir     string // for what is made
	stock   bool   // against kube-scheduler
	pattern string
	overlay overlay.Overlay // empty for kube-scheduler
}

// prepare makes all that the suites have in common.
func (r *runner) prepare(ctx context.Context, suites []string) (err error) {
	if r.dir == "" {
		return errors.New("-dir: no directory is given")
	}
	if r.dir, err = filepath.Abs(r.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(r.dir, 0o750); err != nil {
		return err
	}
	// Tests start an etcd of the PATH.
	if _, err := goCommand(ctx, nil, "build", "-ldflags", "-s -w", "-o", filepath.Join(r.dir, "etcd"), "go.etcd.io/etcd/server/v3"); err != nil {
		return err
	}
	if r.stock {
		return nil
	}
	modules, err := modulesOf(ctx, suites)
	if err != nil {
		return err
	}
	r.overlay, err = overlay.Write(r.dir, modules)
	return err
}

// modulesOf lists the modules in the module cache from which suites and our scheduler are compiled.
func modulesOf(ctx context.Context, suites []string) ([]overlay.Module, error) {
	list := []string{"list", "-deps", "-test", "-f", "{{with .Module}}{{if .Version}}{{.Path}} {{.Dir}}{{end}}{{end}}", "./ours"}
	for _, suite := range suites {
		list = append(list, tests+suite)
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

// test compiles and runs one suite.
func (r *runner) test(ctx context.Context, suite string) ([]results.Result, error) {
	name := strings.ReplaceAll(suite, "/", "-")
	if r.stock {
		name += "-stock"
	}
	binary := filepath.Join(r.dir, name+".test")
	fmt.Fprintln(os.Stderr, "compile", suite)
	build := append([]string{"test", "-c", "-vet=off", "-ldflags", "-s -w", "-o", binary}, r.overlay.Flags...)
	if _, err := goCommand(ctx, r.overlay.Env, append(build, tests+suite)...); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(r.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	fmt.Fprintln(os.Stderr, "run", suite, "- see", log.Name())
	return r.repeat(ctx, suite, binary, log)
}

// patience is how often a suite is begun again after its process ended, without a test that ended meanwhile. On a machine that is busy an API
// server that does not start in time ends the process, and with it all tests that were still to run.
const patience = 5

// repeat runs a suite until each test has a result.
func (r *runner) repeat(ctx context.Context, suite, binary string, log io.Writer) (all []results.Result, err error) {
	for left, ended := patience, []string(nil); left > 0; left-- {
		found, err := r.once(ctx, suite, binary, ended, log)
		all = append(all, found...)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", suite, err)
		}
		if !results.Interrupted(found) {
			break
		}
		if now := results.Ended(all); len(now) > len(ended) {
			left, ended = patience+1, now
		}
	}
	return all, nil
}

// once runs the tests of a suite but those that have ended before.
func (r *runner) once(ctx context.Context, suite, binary string, ended []string, log io.Writer) ([]results.Result, error) {
	args := []string{"tool", "test2json", "-p", suite, binary, "-test.v=test2json", "-test.timeout=90m", "-test.run=" + r.pattern}
	if len(ended) > 0 {
		args = append(args, "-test.skip="+results.Pattern(ended))
	}
	temporary, err := os.MkdirTemp("", "upstream")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary) //nolint:errcheck // it is temporary
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "PATH="+r.dir+string(os.PathListSeparator)+os.Getenv("PATH"), "TMPDIR="+temporary)
	cmd.Stderr = log
	// A process that ends early leaves its files and its etcd behind, which is in its group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endAll := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = endAll
	events, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer endAll() //nolint:errcheck // most often nothing is left
	found, err := read(events, suite, log)
	if waited := cmd.Wait(); err == nil && len(found) == 0 && len(ended) == 0 {
		err = waited // a test that fails is a result, and none at all is not
	}
	return found, err
}

// event is a line of `go test -json`.
type event struct{ Action, Test, Output string }

// read reads the results of a suite, and copies to a log what the tests print.
func read(events io.Reader, suite string, log io.Writer) ([]results.Result, error) {
	var found []results.Result
	reported := map[string]bool{} // tests that failed by themselves, and not because the process ended or no API server came up
	without := map[string]bool{}  // tests that got no API server in time
	lines := json.NewDecoder(events)
	for {
		var e event
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		if e.Action == "output" {
			line := strings.TrimSpace(e.Output)
			reported[e.Test] = reported[e.Test] || strings.HasPrefix(line, "--- FAIL: "+e.Test) && !without[e.Test]
			without[e.Test] = without[e.Test] || strings.HasPrefix(line, "test_server.go:") && strings.HasSuffix(line, context.DeadlineExceeded.Error())
			if _, err := io.WriteString(log, e.Output); err != nil {
				return nil, err
			}
		}
		if outcome, ended := results.OutcomeOf(e.Action); ended && e.Test != "" && (outcome != results.Failed || reported[e.Test]) {
			fmt.Fprintf(os.Stderr, "%s %s %s\n", suite, e.Action, e.Test)
			found = append(found, results.Result{Suite: suite, Test: e.Test, Outcome: outcome})
		} else if e.Action == "run" {
			found = append(found, results.Result{Suite: suite, Test: e.Test, Outcome: results.Begun})
		}
	}
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

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gangctl/gangctl/test/upstream/programs"
	"github.com/gangctl/gangctl/test/upstream/results"
)

// runner runs suites.
type runner struct {
	compiler programs.Compiler
	pattern  string // of the tests to run
}

// test compiles and runs one suite.
func (r runner) test(ctx context.Context, suite string) ([]results.Result, error) {
	program, err := r.compiler.Compile(ctx, tests+suite)
	if err != nil {
		return nil, err
	}
	log, err := program.Log()
	if err != nil {
		return nil, err
	}
	defer log.Close()
	fmt.Fprintln(os.Stderr, "run", suite, "- see", log.Name())
	return r.repeat(ctx, suite, program, log)
}

// patience is how often a suite is begun again after its process ended, without a test that ended meanwhile. On a machine that is busy an API
// server that does not start in time ends the process, and with it all tests that were still to run.
const patience = 5

// repeat runs a suite until each test has a result.
func (r runner) repeat(ctx context.Context, suite string, program programs.Program, log io.Writer) (all []results.Result, err error) {
	for left, ended := patience, []string(nil); left > 0; left-- {
		found, err := r.once(ctx, suite, program, ended, log)
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
func (r runner) once(ctx context.Context, suite string, program programs.Program, ended []string, log io.Writer) ([]results.Result, error) {
	args := []string{"go", "tool", "test2json", "-p", suite, program.Path, "-test.v=test2json", "-test.timeout=90m", "-test.run=" + r.pattern}
	if len(ended) > 0 {
		args = append(args, "-test.skip="+results.Pattern(ended))
	}
	temporary, err := os.MkdirTemp("", "upstream")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary) //nolint:errcheck // it is temporary
	cmd, end := program.Command(ctx, temporary, args...)
	cmd.Stderr = log
	events, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer end() //nolint:errcheck // most often nothing is left
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

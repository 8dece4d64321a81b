package main

import (
	"strings"
	"testing"

	"github.com/gangctl/gangctl/test/upstream/results"
)

// A test whose process ends, or that gets no API server, has no result; test2json reports both as failed.
func TestRead(t *testing.T) {
	const events = `
{"Action":"run","Test":"TestX"}
{"Action":"run","Test":"TestX/passes"}
{"Action":"output","Test":"TestX/passes","Output":"    --- PASS: TestX/passes (1s)\n"}
{"Action":"pass","Test":"TestX/passes"}
{"Action":"run","Test":"TestX/fails"}
{"Action":"output","Test":"TestX/fails","Output":"    x_test.go:1: step 4 failed: context deadline exceeded\n"}
{"Action":"output","Test":"TestX/fails","Output":"    --- FAIL: TestX/fails (1s)\n"}
{"Action":"fail","Test":"TestX/fails"}
{"Action":"run","Test":"TestX/without"}
{"Action":"output","Test":"TestX/without","Output":"    test_server.go:259: context deadline exceeded\n"}
{"Action":"output","Test":"TestX/without","Output":"    --- FAIL: TestX/without (1s)\n"}
{"Action":"fail","Test":"TestX/without"}
{"Action":"run","Test":"TestX/ends"}
{"Action":"output","Test":"TestX/ends","Output":"F1125 hooks.go:203] PostStartHook failed\n"}
{"Action":"fail","Test":"TestX/ends"}
{"Action":"fail"}
`
	var log strings.Builder
	found, err := read(strings.NewReader(events), "suite", &log)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(results.Ended(found), " "), "TestX/passes TestX/fails"; got != want || !results.Interrupted(found) {
		t.Errorf("ended are %s, want %s; interrupted: %v", got, want, results.Interrupted(found))
	}
	if !strings.Contains(log.String(), "step 4 failed") {
		t.Errorf("the log has %q", log.String())
	}
	if _, err := read(strings.NewReader("no JSON"), "suite", &log); err == nil {
		t.Error("what is no event was read")
	}
}

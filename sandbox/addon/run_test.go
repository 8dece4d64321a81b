package addon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A controller runs with a folder for temporary files of its own, and ends with the context; one that ends by itself is an error.
func TestRun(t *testing.T) {
	home := t.TempDir()
	program := filepath.Join(home, "program")
	write := func(text string) {
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(`printf '%s %s' "$TMPDIR" "$1" > "$TMPDIR/started.part" && mv "$TMPDIR/started.part" "$TMPDIR/started"; exec sleep 60`)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, []string{home, program, "--flag"}) }()
	deadline := time.After(30 * time.Second)
	for {
		if text, err := os.ReadFile(filepath.Join(home, "started")); err == nil {
			if string(text) != home+" --flag" {
				t.Errorf("got %s", text)
			}
			break
		}
		select {
		case err := <-done:
			t.Fatal(err)
		case <-deadline:
			t.Fatal("it does not start")
		case <-time.After(10 * time.Millisecond):
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("one that was ended: %v", err)
	}
	write("exit 3")
	if err := Run(t.Context(), []string{home, program}); err == nil || !strings.Contains(err.Error(), program+": exit status 3") {
		t.Errorf("got %v", err)
	}
	write("exit 0")
	if err := Run(t.Context(), []string{home, program}); err == nil || !strings.Contains(err.Error(), "it ended by itself") {
		t.Errorf("got %v", err)
	}
	if err := Run(t.Context(), nil); err == nil {
		t.Error("runs without a parent")
	}
}

package prerequisite

import (
	"fmt"
	"runtime"
	"testing"
)

// recorder is a test that notes how it was ended.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper() {}

func (r *recorder) Skip(args ...any) { r.end("skipped: " + fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.end("failed: " + fmt.Sprintf(format, args...))
}

func (r *recorder) end(how string) {
	r.ended = how
	runtime.Goexit()
}

func TestProgram(t *testing.T) {
	for _, tt := range []struct{ program, ci, ended string }{
		{"go", "", ""},
		{"go", "1", ""},
		{"no-such-program", "", "skipped: no-such-program is not installed"},
		{"no-such-program", "1", "failed: no-such-program is not installed, and GANGCTL_CI is set"},
	} {
		t.Setenv(CIEnv, tt.ci)
		r, path, done := &recorder{TB: t}, "", make(chan struct{})
		go func() {
			defer close(done)
			path = Program(r, tt.program)
		}()
		if <-done; r.ended != tt.ended || (path == "") != (tt.ended != "") {
			t.Errorf("%s=%q, %s: path %q, ended %q; want %q", CIEnv, tt.ci, tt.program, path, r.ended, tt.ended)
		}
	}
}

package iostreams

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// answers is a writer that fails with one error after the other; nil is no failure.
type answers []error

func (a *answers) Write(p []byte) (int, error) {
	err := (*a)[0]
	*a = (*a)[1:]
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func TestOutErr(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
	pipe := &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
	tests := []struct {
		name   string
		writes answers
		want   string
	}{
		{"all is well", answers{nil, nil}, ""},
		{"full, and later no more", answers{nil, full, nil}, "write standard output: no space left on device"},
		{"the first counts", answers{full, errors.New("other")}, "write standard output: no space left on device"},
		{"the reader went away", answers{pipe}, ""},
		{"no file", answers{errors.New("closed")}, "write standard output: closed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _, _, _ := Test(clocktesting.NewFakeClock(time.Time{}))
			writes := tt.writes
			s.SetOut(&writes)
			for _, want := range tt.writes {
				if _, err := fmt.Fprintln(s.Out, "x"); (err != nil) != (want != nil) {
					t.Errorf("the writer got %v, want %v", err, want)
				}
			}
			if got := s.OutErr(); (got == nil) != (tt.want == "") || got != nil && got.Error() != tt.want {
				t.Errorf("got %v, want %q", got, tt.want)
			}
		})
	}
}

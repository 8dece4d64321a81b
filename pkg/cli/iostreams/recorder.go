package iostreams

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"syscall"
)

// OutErr is the first error of writing to Out, or nil. A reader that went away, such as head(1), is none: it has what it needs. Who prints
// need not check every line then: what is lost shows here.
func (s *IOStreams) OutErr() error {
	r, ok := s.VerbatimOut().(*recorder)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// recorder passes on what is written, and keeps the first error.
type recorder struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

// Write implements io.Writer.
func (r *recorder) Write(p []byte) (int, error) {
	n, err := r.w.Write(p)
	if err == nil {
		return n, nil
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err // the name of the file is the system's, and means less than ours
	}
	err = fmt.Errorf("write standard output: %w", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil && !errors.Is(err, syscall.EPIPE) {
		r.err = err
	}
	return n, err
}

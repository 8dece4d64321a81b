package kubetest

import (
	"bytes"
	"sync"
)

// Screen is a buffer that can be read while a command writes to it.
type Screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to what is shown.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// String is all that was written.
func (s *Screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

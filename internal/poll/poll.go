// Package poll waits in tests for what other goroutines do. No test sleeps and hopes.
package poll

import (
	"testing"
	"time"
)

const (
	// patience is how long a test waits: on a busy machine, too, nothing takes that long that is going to happen.
	patience = 30 * time.Second
	// pause is the time between two looks.
	pause = 2 * time.Millisecond
)

// Until returns when done does, and fails the test if that takes too long. what is what is waited for.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

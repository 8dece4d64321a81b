package e2e

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// rests waits until what is seen has not changed for a while.
func rests(t *testing.T, during time.Duration, see func() string) {
	t.Helper()
	last, since := see(), time.Now()
	eventually(t, "nothing changes for "+during.String(), func(context.Context) bool {
		if seen := see(); seen != last {
			last, since = seen, time.Now()
		}
		return time.Since(since) > during
	})
}

// eventually polls until done, and fails the test if that takes too long.
func eventually(t *testing.T, what string, done func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, stepTimeout, true, func(ctx context.Context) (bool, error) {
		return done(ctx), nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

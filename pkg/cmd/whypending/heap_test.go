package whypending

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// percent is what the runtime is set to.
func percent() int {
	set := debug.SetGCPercent(usual)
	debug.SetGCPercent(set)
	return set
}

func TestSparing(t *testing.T) {
	const first = leastGrowth * 100 / runtimeOwn
	before := debug.SetGCPercent(usual)
	defer debug.SetGCPercent(before)
	undo := sparing()
	if got := percent(); got != first {
		t.Errorf("at first: %d", got)
	}
	// With a small heap in use the next look comes after leastGrowth: far more than the heap, less than at first.
	held := make([]byte, 8<<20)
	for deadline := time.Now().Add(time.Minute); percent() == first; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("nothing changes after a cycle")
		}
	}
	if got := percent(); got < 50 || got >= first {
		t.Errorf("after a cycle: %d", got)
	}
	runtime.KeepAlive(held)
	undo()
	runtime.GC()
	if got := percent(); got != usual {
		t.Errorf("undone: %d", got)
	}
}

func TestSparingLeavesWhatIsSet(t *testing.T) {
	before := debug.SetGCPercent(37)
	defer debug.SetGCPercent(before)
	undo := sparing()
	defer undo()
	if got := percent(); got != 37 {
		t.Errorf("got %d", got)
	}
}

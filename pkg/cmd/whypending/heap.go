package whypending

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// usual is the share of the heap in use by which it may grow before garbage is looked for, unless somebody said otherwise.
	usual = 100
	// leastGrowth and growth are by how much the heap may grow from one look to the next: so many bytes, or that part of what
	// is in use if it is more. Early looks cost little, because there is little to look at, and keep what is read together:
	// memory that garbage leaves between objects that stay is hardly ever of use again.
	leastGrowth = 16 << 20
	growth      = 8
	// runtimeOwn is the size of the heap of which the first percentage is.
	runtimeOwn = 4 << 20
)

// sparing makes the garbage collector suit a command that reads one large snapshot and keeps it. By default the heap may
// double before garbage is looked for: often while the snapshot is small and grows, though hardly any of it is garbage, and too
// late when it is large. It returns what undoes it. What the user set with GOGC stays.
func sparing() (undo func()) {
	if set := debug.SetGCPercent(leastGrowth * 100 / runtimeOwn); set != usual {
		debug.SetGCPercent(set)
		return func() {}
	}
	stop := make(chan struct{})
	afterEachCycle(stop, func() {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		giveBack() // what one phase needs of the program the next does not
		inUse := max(1, live[0].Value.Uint64())
		debug.SetGCPercent(int(max(leastGrowth, inUse/growth) * 100 / inUse))
	})
	return func() {
		close(stop)
		debug.SetGCPercent(usual)
	}
}

// afterEachCycle calls f whenever the garbage collector has finished, until stop closes.
func afterEachCycle(stop <-chan struct{}, f func()) {
	type mark struct{ _ *byte }
	runtime.AddCleanup(&mark{}, func(struct{}) {
		select {
		case <-stop:
		default:
			f()
			afterEachCycle(stop, f)
		}
	}, struct{}{})
}

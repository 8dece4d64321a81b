//go:build unix

package explainer

import (
	"syscall"
	"time"
)

// Used is the processor time that this process has used.
func Used() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return time.Duration(time.Now().UnixNano()) // as if it had worked all the time
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

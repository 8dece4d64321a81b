package controlplane

import (
	"io"
	"os"
	"syscall"
	"time"

	"github.com/gangctl/gangctl/sandbox/component"
)

// followParent blocks until the lifeline closes; then the process asks itself to
// end, and makes sure. A pipe tells of the parent's end on every system, even
// when the parent is killed.
func followParent(lifeline io.Reader) {
	_, _ = io.Copy(io.Discard, lifeline)
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return
	}
	_ = self.Signal(syscall.SIGTERM)
	<-time.After(component.Grace)
	_ = self.Kill()
}

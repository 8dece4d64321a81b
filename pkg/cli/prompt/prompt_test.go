package prompt

import (
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
)

// A pipe answers nothing: a prompt all the same is an error.
func TestNoTerminal(t *testing.T) {
	io, in, _, errOut := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	in.WriteString("yes\n")
	p := New(io)
	if p.Available() {
		t.Error("a pipe is taken for a terminal")
	}
	if _, err := p.Input("name?"); err == nil || !strings.Contains(err.Error(), "cannot prompt") {
		t.Errorf("got %v", err)
	}
	if yes, err := p.Confirm("sure?"); err == nil || yes {
		t.Errorf("got %v, %v", yes, err)
	}
	if errOut.Len() > 0 || in.Len() == 0 {
		t.Error("something was prompted, or read")
	}
}

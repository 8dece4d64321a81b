package enginetest

import (
	"errors"
	"strings"
	"testing"
)

func TestEngine(t *testing.T) {
	c := Start(t, nil)
	c.Create(Node("n1", 2), Node("n2", 1))
	c.Group("a", 3, 0)
	c.FailBindings("a-2", 1, errors.New("the server says no"))
	c.Create(Pod("a-0", "a"), Pod("a-1", "a"))
	c.Create(Pod("single", "", CPUs(3)))
	c.Wait("a pod that fits nowhere reports it", func() bool { return strings.Contains(c.Condition("single"), "Insufficient cpu") })
	if n := c.Placed("a-0", "a-1"); n != 0 {
		t.Errorf("%d members of an incomplete gang are placed", n)
	}
	c.Create(Pod("a-2", "a"))
	c.WaitPlaced("a-0", "a-1", "a-2")
	c.Delete("a-0")
	c.Wait("a-0 is gone", func() bool { return c.NodeOf("a-0") == "" })
}

package ladder

import (
	"fmt"

	"github.com/gangctl/gangctl/pkg/explain/world"
)

// running adds what is worth a remark in a gang that runs.
func (c *climb) running() {
	g := c.g
	if n := g.Total() - g.Count(world.Up, world.Succeeded); n > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d of %d members are not up; the gang needs %d", n, g.Total(), g.Min))
	}
}

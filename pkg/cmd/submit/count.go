package submit

import (
	"fmt"
	"strconv"
)

// optionalCount is a count that is unset until it is given, so that 0 can be asked for.
type optionalCount struct {
	p    *int64
	high int64
}

func (c *optionalCount) String() string {
	if c.p == nil || *c.p == unset {
		return ""
	}
	return strconv.FormatInt(*c.p, 10)
}

func (c *optionalCount) Type() string { return "int" }

func (c *optionalCount) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > c.high {
		return fmt.Errorf("must be a whole number from 0 to %d", c.high)
	}
	*c.p = n
	return nil
}

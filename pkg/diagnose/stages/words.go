package stages

import (
	"fmt"
	"strings"
)

func fraction(n, of int32) string { return fmt.Sprintf("%d/%d", n, of) }

// joinAnd reads like: a, b and c.
func joinAnd(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

package flagvalue

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
)

// leastBytes is less than any program takes: what is below is a slip, as 400m for 400Mi, which is 0.4 bytes.
const leastBytes = 1 << 20

// Bytes adds a flag that takes a quantity of memory, or disk, of which a container takes 1Mi at least.
func Bytes(flags *pflag.FlagSet, p **resource.Quantity, name, usage string) {
	flags.Var(&bytes{quantity{p: p}}, name, usage)
}

type bytes struct{ quantity }

// Set implements pflag.Value.
func (b *bytes) Set(s string) error {
	before := *b.p
	if err := b.quantity.Set(s); err != nil {
		return err
	}
	if (*b.p).CmpInt64(leastBytes) < 0 {
		*b.p = before
		return fmt.Errorf("must be at least 1Mi, such as 16Gi%s", slip(s))
	}
	return nil
}

// slip is what is easily overlooked about a quantity that is too small.
func slip(s string) string {
	switch {
	case strings.HasSuffix(s, "m"):
		return ": m is thousandths, and Mi are mebibytes"
	case strings.Trim(s, "+.0123456789") == "":
		return ": a number alone is bytes"
	}
	return ""
}

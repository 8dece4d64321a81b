// Package flagvalue holds the flag types that gangctl's commands share. Each refuses a bad value while the command line
// is read, so that the error names the flag, the value and what is allowed.
package flagvalue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Enum adds a flag that takes one of the allowed values, and completes them. The flags are a set of cmd's.
func Enum[T ~string](cmd *cobra.Command, flags *pflag.FlagSet, p *T, name string, value T, usage string, allowed ...T) *pflag.Flag {
	return EnumP(cmd, flags, p, name, "", value, usage, allowed...)
}

// EnumP is Enum with a shorthand letter.
func EnumP[T ~string](cmd *cobra.Command, flags *pflag.FlagSet, p *T, name, shorthand string, value T, usage string, allowed ...T) *pflag.Flag {
	*p = value
	v := &enum[T]{p: p, allowed: allowed}
	flag := flags.VarPF(v, name, shorthand, usage+": "+v.list("|"))
	values := make([]cobra.Completion, len(allowed))
	for i, a := range allowed {
		values[i] = string(a)
	}
	// Fails only for a flag that does not exist or is registered twice: a mistake in the program, seen by every test.
	if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
	return flag
}

type enum[T ~string] struct {
	p       *T
	allowed []T
}

func (e *enum[T]) String() string { return string(*e.p) }

func (e *enum[T]) Type() string { return "string" }

func (e *enum[T]) Set(s string) error {
	if !slices.Contains(e.allowed, T(s)) {
		return fmt.Errorf("must be one of %s", e.list(", "))
	}
	*e.p = T(s)
	return nil
}

func (e *enum[T]) list(separator string) string {
	values := make([]string, len(e.allowed))
	for i, a := range e.allowed {
		values[i] = string(a)
	}
	return strings.Join(values, separator)
}

// Count adds a flag that takes a whole number from low to high.
func Count[T int32 | int64](flags *pflag.FlagSet, p *T, name string, value, low, high T, usage string) {
	*p = value
	flags.Var(&count[T]{p: p, low: low, high: high}, name, usage)
}

type count[T int32 | int64] struct {
	p         *T
	low, high T
}

func (c *count[T]) String() string { return strconv.FormatInt(int64(*c.p), 10) }

func (c *count[T]) Type() string { return "int" }

func (c *count[T]) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < int64(c.low) || n > int64(c.high) {
		return fmt.Errorf("must be a whole number from %d to %d", c.low, c.high)
	}
	*c.p = T(n)
	return nil
}

// CPUs adds a flag that takes a Kubernetes quantity of CPUs, greater than zero; *p stays nil while the flag is not given.
func CPUs(flags *pflag.FlagSet, p **resource.Quantity, name, usage string) {
	flags.Var(&cpus{quantity{p: p}}, name, usage)
}

// mostCPUs is more than any node has: what is above is an amount of memory.
const mostCPUs = 1_000_000

type cpus struct{ quantity }

// Set implements pflag.Value.
func (c *cpus) Set(s string) error {
	before := *c.p
	if err := c.quantity.Set(s); err != nil {
		return err
	}
	if (*c.p).CmpInt64(mostCPUs) > 0 {
		*c.p = before
		return fmt.Errorf("must be at most %d CPUs, such as 500m or 4", mostCPUs)
	}
	return nil
}

// mostQuantity is more than any node has of anything, and the sum of the members of the largest gang is still a number that Kubernetes has.
const mostQuantity = "128Ti"

type quantity struct{ p **resource.Quantity }

func (q *quantity) String() string {
	if *q.p == nil {
		return ""
	}
	return (*q.p).String()
}

func (q *quantity) Type() string { return "quantity" }

func (q *quantity) Set(s string) error {
	parsed, err := resource.ParseQuantity(s)
	if err != nil || parsed.Sign() <= 0 {
		return fmt.Errorf("must be a quantity greater than zero, such as 500m, 4 or 16Gi")
	}
	if most := resource.MustParse(mostQuantity); parsed.Cmp(most) > 0 { // which Kubernetes cuts at the largest number that it has, and sums wrongly
		return fmt.Errorf("must be a quantity up to %s", mostQuantity)
	}
	*q.p = &parsed
	return nil
}

// Checked is a flag whose value is more than what Set takes: the command that has the flag checks it when all flags are read.
type Checked interface {
	// Check is the error of that command for the value, whatever the other flags are.
	Check() error
}

// Check makes flags of a set Checked, those of the names that are there. check looks at what they have set.
func Check(flags *pflag.FlagSet, check func() error, names ...string) {
	for _, name := range names {
		flag := flags.Lookup(name)
		if flag == nil {
			continue
		}
		if flag.DefValue == "[]" || flag.DefValue == "0s" {
			flag.DefValue = "" // which the help leaves out, too: it knows the empty values of pflag by their type
		}
		list, ok := flag.Value.(pflag.SliceValue)
		if !ok {
			flag.Value = checked{flag.Value, check}
			continue
		}
		flag.Value = checkedList{flag.Value, list, check}
	}
}

type checked struct {
	pflag.Value
	check func() error
}

// Check implements [Checked].
func (c checked) Check() error { return c.check() }

type checkedList struct {
	pflag.Value
	pflag.SliceValue
	check func() error
}

// Check implements [Checked].
func (c checkedList) Check() error { return c.check() }

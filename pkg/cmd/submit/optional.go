package submit

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// maxRetries is the largest number of retries that is taken for an intention.
const maxRetries = 1000

// optional is a value that may not have been given.
type optional[T any] struct{ p *T }

// value reads one into an optional.
type value[T any] struct {
	to     *optional[T]
	parse  func(string) (T, error)
	format func(T) string
	kind   string
}

func (v value[T]) String() string {
	if v.to == nil || v.to.p == nil {
		return ""
	}
	return v.format(*v.to.p)
}

func (v value[T]) Type() string { return v.kind }

func (v value[T]) Set(s string) error {
	parsed, err := v.parse(s)
	if err != nil {
		return err
	}
	v.to.p = &parsed
	return nil
}

// count reads a whole number from 0 on.
func count(to *optional[int32], high int32) value[int32] {
	return value[int32]{to: to, kind: "int", format: func(n int32) string { return strconv.Itoa(int(n)) }, parse: func(s string) (int32, error) {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n < 0 || n > int64(high) {
			return 0, fmt.Errorf("must be a whole number from 0 to %d", high)
		}
		return int32(n), nil //nolint:gosec // it was parsed with 32 bits
	}}
}

// seconds reads a duration of whole seconds, which is all that jobs know.
func seconds(to *optional[time.Duration], low time.Duration) value[time.Duration] {
	return value[time.Duration]{to: to, kind: "duration", format: time.Duration.String, parse: func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if err != nil || d < low || d%time.Second != 0 || d/time.Second > math.MaxInt32 {
			return 0, fmt.Errorf("must be a duration of whole seconds from %s on, such as 90s, 30m or 12h", low)
		}
		return d, nil
	}}
}

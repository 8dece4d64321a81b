package request

import (
	"math"
	"math/bits"
)

// Sum adds amounts, none of which is negative. What an int64 cannot hold is its largest value: users may write any amount.
func Sum(amounts ...int64) int64 {
	var sum int64
	for _, n := range amounts {
		if sum > math.MaxInt64-max(n, 0) {
			return math.MaxInt64
		}
		sum += max(n, 0)
	}
	return sum
}

// Times is what n members request together of which each requests amount, with the limit of [Sum].
func Times(amount int64, n int32) int64 {
	high, low := bits.Mul64(uint64(max(amount, 0)), uint64(max(n, 0)))
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}

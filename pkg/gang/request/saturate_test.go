package request

import (
	"math"
	"testing"
)

func TestSaturation(t *testing.T) {
	for _, tt := range []struct{ got, want int64 }{
		{Sum(), 0}, {Sum(1, 2, -5), 3}, {Sum(math.MaxInt64, 1), math.MaxInt64}, {Sum(math.MaxInt64-1, 1), math.MaxInt64},
		{Times(8, 3), 24}, {Times(-1, 3), 0}, {Times(3, -1), 0}, {Times(math.MaxInt64, 2), math.MaxInt64}, {Times(1<<40, math.MaxInt32), math.MaxInt64},
		{Times(2, math.MaxInt32), 2 * math.MaxInt32},
	} {
		if tt.got != tt.want {
			t.Errorf("got %d, want %d", tt.got, tt.want)
		}
	}
}

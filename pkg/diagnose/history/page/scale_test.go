package page

import (
	"testing"
	"time"
)

// Times are what users write into objects, up to the year 9999.
func TestTicksOfAnyTime(t *testing.T) {
	from := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	for _, to := range []time.Time{from, from.Add(time.Hour), from.AddDate(200, 0, 0), from.AddDate(292, 0, 0), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)} {
		if n := len(newScale(from, to).ticks()); n < 2 || n > maxTicks {
			t.Errorf("%d ticks until %s", n, to)
		}
	}
}

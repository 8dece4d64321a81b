package page

import (
	"time"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
)

const (
	// maxTicks is how many labels an axis has room for on a telephone.
	maxTicks = 6
	// least is the shortest stretch that is shown: below a second, times are not distinguished.
	least = time.Second
)

// steps are the distances between ticks that people can reckon with.
var steps = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour}

// scale maps moments to percents of a width.
type scale struct {
	from, to time.Time
}

func newScale(from, to time.Time) scale {
	if to.Sub(from) < least {
		to = from.Add(least)
	}
	return scale{from, to}
}

// at is where a moment is, in percent; one outside is at the edge.
func (s scale) at(t time.Time) float64 {
	share := float64(t.Sub(s.from)) / float64(s.to.Sub(s.from))
	return 100 * min(1, max(0, share))
}

// has reports whether a moment is inside.
func (s scale) has(t time.Time) bool { return !t.Before(s.from) && !t.After(s.to) }

// tick is a mark on the axis.
type tick struct {
	Left  float64
	Label string
}

// ticks are those of the axis: how long after its beginning.
func (s scale) ticks() []tick {
	length := s.to.Sub(s.from)
	step := steps[len(steps)-1]
	for _, candidate := range steps {
		if length/candidate < maxTicks {
			step = candidate
			break
		}
	}
	for length/step >= maxTicks {
		step *= 2
	}
	var all []tick
	for i := range length/step + 1 { // the sum of steps would wrap where the length is that of 292 years, which it is for all longer ones
		at := i * step
		all = append(all, tick{s.at(s.from.Add(at)), "+" + span(at)})
	}
	return all
}

// span is a duration as text.
func span(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	return phrase.Age(d)
}

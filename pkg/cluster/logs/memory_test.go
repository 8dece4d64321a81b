package logs

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// A log that is read again from before its newest line gives each line once, also those that are the same to the nanosecond, and
// those that came in disorder.
func TestMemory(t *testing.T) {
	type line struct {
		at   time.Time
		text string
	}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		var log []line
		at := noon
		for i := range 200 {
			at = at.Add(time.Duration(r.IntN(3)) * 300 * time.Millisecond)
			l := line{at.Add(-time.Duration(r.IntN(2)) * 400 * time.Millisecond), fmt.Sprint("line ", i%3)}
			log = append(log, l)
			if r.IntN(5) == 0 {
				log = append(log, l)
			}
		}
		m, got, end := newMemory(), 0, 0
		want := map[line]int{}
		given := map[line]int{}
		for end < len(log) {
			end = min(len(log), end+r.IntN(40))
			since := m.since()
			p := m.begin(since)
			for _, l := range log[:end] {
				if since != nil && l.at.Before(since.Time) {
					continue
				}
				if p.isNew(l.at, l.text) {
					given[l]++
					got++
				}
			}
			p.end()
		}
		for _, l := range log {
			want[l]++
		}
		if got != len(log) || fmt.Sprint(given) != fmt.Sprint(want) {
			t.Fatalf("seed %d: %d lines of %d", seed, got, len(log))
		}
		if len(m.seen) > 80 || len(m.seen) != len(m.keys) {
			t.Errorf("seed %d: %d lines are remembered", seed, len(m.seen))
		}
	}
}

// A reading of the run before is slow, while the run that is gets ahead by more than is remembered: no line comes twice.
func TestMemoryOfASlowReading(t *testing.T) {
	m := newMemory()
	line := func(p *pass, seconds int) bool {
		return p.isNew(noon.Add(time.Duration(seconds)*time.Second), fmt.Sprint("line ", seconds))
	}
	first := m.begin(nil)
	for i := range 30 {
		line(first, i)
	}
	first.end()
	before, now := m.begin(m.since()), m.begin(m.since())
	for i := 30; i < 90; i++ {
		if !line(now, i) {
			t.Errorf("line %d does not come", i)
		}
	}
	for i := 19; i < 30; i++ {
		if line(before, i) {
			t.Errorf("line %d comes again", i)
		}
	}
	before.end()
	line(now, 90)
	if len(m.seen) > 20 {
		t.Errorf("%d lines are remembered when the reading has ended", len(m.seen))
	}
}

func TestSplit(t *testing.T) {
	for raw, want := range map[string]string{
		"2026-11-21T12:00:00.123456789Z a  b": "2026-11-21T12:00:00.123456789Z|a  b",
		"2026-11-21T12:00:00Z ":               "2026-11-21T12:00:00Z|",
		"2026-11-21T12:00:00Z":                "2026-11-21T12:00:00Z|",
		"no time here":                        "|no time here",
		"":                                    "|",
	} {
		stamp, at, text := split(raw)
		if got := stamp + "|" + text; got != want || at.IsZero() != (stamp == "") {
			t.Errorf("%q: got %q at %s", raw, got, at)
		}
	}
}

package explainer

import (
	"time"

	"k8s.io/utils/clock"
)

const (
	// window and allowance bound the explainer: it works for no longer than the allowance in any window. That is less than 5 % of one core,
	// with what the garbage of its work costs.
	window    = 10 * time.Second
	allowance = 400 * time.Millisecond
)

// pace spreads work over time. Work is the processor time that the process uses meanwhile, which others may use a part of, but no more than the
// time that passes: waiting for the API server is no work.
type pace struct {
	clock clock.WithTicker
	cpu   func() time.Duration
	spent []spell // of the last window, the oldest first
}

// spell is work that was done.
type spell struct {
	end  time.Time
	took time.Duration
}

// left is how much work may be done now.
func (p *pace) left() time.Duration {
	return allowance - p.worked(p.clock.Now())
}

// until is how long it takes before work of such a size may be done.
func (p *pace) until(size time.Duration) time.Duration {
	now := p.clock.Now()
	sum := p.worked(now)
	for _, s := range p.spent {
		if sum == 0 || sum+size <= allowance {
			break
		}
		sum -= s.took
		if sum == 0 || sum+size <= allowance {
			return s.end.Add(window).Sub(now)
		}
	}
	return 0
}

// worked is how much was done in the window before a moment. What is older is forgotten.
func (p *pace) worked(now time.Time) (sum time.Duration) {
	for len(p.spent) > 0 && now.Sub(p.spent[0].end) >= window {
		p.spent = p.spent[1:]
	}
	for _, s := range p.spent {
		sum += s.took
	}
	return sum
}

// longest is how many windows all gangs rest at most after one piece of work. What took longer than that is worth is for its gang to make
// up for, alone: see restOf.
const longest = 2

// spread is how long work takes at the pace.
func spread(work time.Duration) time.Duration {
	return time.Duration(float64(work) / float64(allowance) * float64(window))
}

// measure does work, and counts it. Work that took longer than the allowance is counted for as many windows as it fills, so that the share
// stays what it is over a longer time, but for no more than the longest rest.
func (p *pace) measure(work func()) time.Duration {
	start, used := p.clock.Now(), p.cpu()
	work()
	end := p.clock.Now()
	took := min(end.Sub(start), p.cpu()-used)
	for at, rest := end, min(took, longest*allowance); rest > 0; at, rest = at.Add(window), rest-allowance {
		p.spent = append(p.spent, spell{end: at, took: min(rest, allowance)})
	}
	return took
}

// restOf is how long a gang is not explained again whose answer took so long, for its share to stay what it is: none where others have
// rested for it.
func restOf(took time.Duration) time.Duration {
	if took <= longest*allowance {
		return 0
	}
	return spread(took)
}

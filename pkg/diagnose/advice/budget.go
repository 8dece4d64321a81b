package advice

import (
	"slices"
	"time"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/placement"
)

// budget is the time that a search has. Parts of it get a share, so that one that finds no end leaves some to the others.
type budget struct {
	now func() time.Time
	// stopped is true once the caller's context has ended; nil never is.
	stopped func() bool
	// end is when the part that runs has to stop; zero means never.
	end time.Time
	// hurried is true once something was not tried because the time was up, partial if it was because there was too much.
	hurried, partial bool
	// cut are the kinds that were not searched for to the end.
	cut []answer.ActionKind
}

// spent reports whether there is no time left to try one more thing.
func (b *budget) spent() bool {
	if !b.end.IsZero() && !b.now().Before(b.end) || b.stopped != nil && b.stopped() {
		b.hurried = true
	}
	return b.hurried
}

// left is the time that one search for a placement may take: what it takes by default, or what is left if that is less.
func (b *budget) left(usual time.Duration) time.Duration {
	if usual == 0 {
		usual = placement.DefaultBudget
	}
	if b.end.IsZero() {
		return usual
	}
	return max(time.Millisecond, min(usual, b.end.Sub(b.now())))
}

// part runs a part of the search for a kind of action in half of the time that is left.
func (b *budget) part(kind answer.ActionKind, search func()) { b.within(kind, 2, search) }

// within is part with one of some equal shares of the time that is left: the last part needs to leave none.
func (b *budget) within(kind answer.ActionKind, shares int, search func()) {
	whole := b.end
	b.end = b.share(shares).end
	b.hurried, b.partial = false, false
	if !b.spent() {
		search()
	}
	if (b.hurried || b.partial) && !slices.Contains(b.cut, kind) {
		b.cut = append(b.cut, kind)
	}
	b.end, b.hurried, b.partial = whole, false, false
}

// share is a budget with one of some equal shares of the time that is left.
func (b *budget) share(shares int) budget {
	c := budget{now: b.now, stopped: b.stopped, end: b.end}
	if !b.end.IsZero() {
		now := b.now()
		c.end = now.Add(b.end.Sub(now) / time.Duration(shares))
	}
	return c
}

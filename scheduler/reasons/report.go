package reasons

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// PerMinute is how often users of a gang are notified within a minute, at most.
	// Each time costs a condition of every member that waits, an event and, where
	// the gang's object has conditions, a status.
	PerMinute = 4
	// minute is the period of PerMinute.
	minute = time.Minute
	// numbersDelay is how long a report stands before one that differs in numbers
	// alone replaces it.
	numbersDelay = 15 * time.Second
)

// Limiter bounds how often something is reported: PerMinute times in any minute.
type Limiter struct {
	times []time.Time // of the newest reports, oldest first
}

// Wait returns for how long the next report has to be delayed; zero if it may be
// made now.
func (l *Limiter) Wait(now time.Time) time.Duration {
	if len(l.times) < PerMinute {
		return 0
	}
	return max(0, l.times[0].Add(minute).Sub(now))
}

// Record counts a report.
func (l *Limiter) Record(now time.Time) {
	if l.times = append(l.times, now); len(l.times) > PerMinute {
		l.times = l.times[1:]
	}
}

// Idle reports whether there was no report within a minute, so that the limiter
// can be dropped.
func (l *Limiter) Idle(now time.Time) bool { return now.Sub(l.last()) >= minute }

// last returns the time of the newest report; zero if there was none.
func (l *Limiter) last() time.Time {
	if len(l.times) == 0 {
		return time.Time{}
	}
	return l.times[len(l.times)-1]
}

// report is the last notification to the users of a gang.
type report struct {
	reason  Reason
	limiter Limiter
	// fresh means that no event was made of it yet.
	fresh bool
	// cleared means that the gang does not wait any more.
	cleared bool
}

// Report returns what to report on a gang that waits for a reason now. It is an
// older reason if there is nothing new, or if users were notified too often; the
// new one may then be reported after again. known means that the gang's members
// carry the reason already, as after a restart of the scheduler.
func (s *Store) Report(group types.NamespacedName, reason Reason, known bool) (reported Reason, again time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	s.dropIdle(now)
	r := s.reported[group]
	switch {
	case r == nil:
		r = &report{}
		s.reported[group] = r
	case !r.cleared && r.reason.equalText(&reason):
		return r.reason, 0
	}
	if wait := r.wait(now, &reason); wait > 0 {
		if r.cleared { // the members' conditions are not current any more, so the newest reason costs no more than an old one
			r.reason, r.fresh, r.cleared = reason, false, false
		}
		return r.reason, wait
	}
	r.reason, r.fresh, r.cleared = reason, !reason.AboveMin && !known, false
	if known {
		return reason, 0
	}
	r.limiter.Record(now)
	s.explanations.WithLabelValues(string(reason.Finding.Code)).Inc()
	return reason, 0
}

// wait returns for how long a reason has to be delayed.
func (r *report) wait(now time.Time, reason *Reason) time.Duration {
	wait := r.limiter.Wait(now)
	if !r.cleared && r.reason.Finding.Code == reason.Finding.Code {
		wait = max(wait, r.limiter.last().Add(numbersDelay).Sub(now))
	}
	return wait
}

// TakeReport returns what was reported on a gang that waits; ok is false where that
// is nothing. fresh is true for the first caller after a new report, which makes an
// event of it.
func (s *Store) TakeReport(group types.NamespacedName) (reason Reason, fresh, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reported[group]
	if r == nil || r.cleared {
		return Reason{}, false, false
	}
	fresh, r.fresh = r.fresh, false
	return r.reason, fresh, true
}

// LastReported returns what was reported on a gang that waits; ok is false where
// that is nothing. A fresh report stays fresh for [Store.TakeReport].
func (s *Store) LastReported(group types.NamespacedName) (reason Reason, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.reported[group]; r != nil && !r.cleared {
		return r.reason, true
	}
	return Reason{}, false
}

// dropIdle drops the reports on gangs that do not wait, when their limiter is idle, once a minute.
// The lock is held.
func (s *Store) dropIdle(now time.Time) {
	if now.Sub(s.dropped) < minute {
		return
	}
	s.dropped = now
	for group, r := range s.reported {
		if r.cleared && now.Sub(r.limiter.last()) > minute {
			delete(s.reported, group)
		}
	}
}

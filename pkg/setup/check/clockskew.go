package check

import (
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
)

const (
	// askew is how far clocks may differ before ages that gangctl prints are wrong by more than people overlook.
	askew = 5 * time.Second
	// maxSkew is where a scheduler that lives is taken for dead, or the other way round.
	maxSkew = time.Minute
)

// callerClock compares the two clocks by a request whose answer carries the time. The server's time is in whole seconds, rounded down.
func callerClock(f *Facts) []Finding {
	if f.ServerTime.IsZero() {
		return []Finding{warnf("the API server does not report its time")}
	}
	var off time.Duration
	direction := "behind"
	switch latest := f.ServerTime.Add(time.Second); {
	case f.ServerTime.After(f.AnsweredAt):
		off = f.ServerTime.Sub(f.AnsweredAt)
	case latest.Before(f.QueriedAt):
		off, direction = f.QueriedAt.Sub(latest), "ahead of"
	}
	text := fmt.Sprintf("your clock is %s %s the API server's", phrase.Age(off), direction)
	switch {
	case off > maxSkew:
		return []Finding{failf("%s: schedulers that live look dead, or dead ones alive", text).hint("set your clock (NTP)")}
	case off > askew:
		return []Finding{warnf("%s: ages that gangctl prints are wrong by as much", text).hint("set your clock (NTP)")}
	}
	return []Finding{okf("they differ by less than %s", phrase.Age(askew))}
}

// componentClocks: a lease that was renewed in the future was written by a component whose clock is ahead. A clock that is behind cannot be
// distinguished from a late renewal.
func componentClocks(f *Facts) []Finding {
	now := f.View.Now
	if !f.ServerTime.IsZero() {
		now = f.ServerTime.Add(f.View.Now.Sub(f.QueriedAt) + time.Second)
	}
	ahead := map[string]time.Duration{}
	look := func(l *coordinationv1.Lease, who string) {
		if l.Spec.RenewTime != nil && l.Spec.RenewTime.Sub(now) > askew {
			ahead[who] = l.Spec.RenewTime.Sub(now)
		}
	}
	for _, l := range f.NodeLeases {
		look(l, "node "+l.Name)
	}
	for _, l := range f.View.Snap.Leases {
		holder := ""
		if l.Spec.HolderIdentity != nil {
			holder, _, _ = strings.Cut(*l.Spec.HolderIdentity, "_")
		}
		look(l, fmt.Sprintf("holder %s of lease %s/%s", holder, l.Namespace, l.Name))
	}
	var findings []Finding
	for _, who := range sortedKeys(ahead) {
		findings = append(findings, warnf("%s is %s ahead", who, phrase.Age(ahead[who])).hint("set its clock (NTP)"))
	}
	if len(findings) == 0 {
		findings = append(findings, okf("%s checked", phrase.Count(len(f.NodeLeases)+len(f.View.Snap.Leases), "lease")))
	}
	return findings
}

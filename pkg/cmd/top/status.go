package top

import (
	"fmt"
	"slices"
	"time"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/wrap"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
)

// status is the line above a frame that is redrawn.
type status struct {
	what What
	// at is as of when the frame is true.
	at, now time.Time
	// notes are what is the matter with it.
	notes []string
	keys  bool
}

// status is that of this moment. A frame is as old as what is the longest out of date of it: it is true now only if every watch
// stands, and brought nothing since the view was made.
func (w *watching) status(now time.Time) status {
	s := status{what: w.o.What, at: now, now: now, keys: w.screen != nil}
	lost := w.mirror.Lost()
	if w.screen == nil || w.trouble != "" || len(lost) > 0 || w.mirror.Changes() != w.seen {
		s.at = w.view.at
	}
	if w.trouble != "" {
		s.notes = append(s.notes, w.trouble)
	}
	if len(lost) > 0 {
		if s.at.After(lost[0].Since) {
			s.at = lost[0].Since
		}
		s.notes = append(s.notes, unheard(lost, now))
	}
	if polled := w.mirror.Polled(); len(polled) > 0 {
		s.notes = append(s.notes, fmt.Sprintf("note: you may not watch %s: listed again every few seconds", phrase.Names(polled)))
	}
	return s
}

// unheard lists of what nothing is heard, since when, and why.
func unheard(lost []collect.Loss, now time.Time) string {
	var names []string
	for _, l := range lost {
		names = append(names, l.Resource)
	}
	slices.Sort(names)
	l := lost[0]
	return fmt.Sprintf("note: nothing heard of %s for %s: %s; trying again", phrase.Names(names), age(now.Sub(l.Since).Seconds()), failure.From(l.Err).Message)
}

// watchFrame is a frame with its status.
func watchFrame(v *view, l layout, s status) []string {
	head := fmt.Sprintf("gangctl top %s  %s", s.what, s.at.UTC().Format(time.RFC3339))
	if s.keys {
		how := "live"
		if old := s.now.Sub(s.at); old >= time.Second {
			how = age(old.Seconds()) + " ago"
		}
		head += fmt.Sprintf("  (%s, q quits)", how)
	}
	lines := []string{wrap.Cut(head, l.width)}
	for _, note := range slices.Concat(s.notes, v.notes) {
		lines = append(lines, fold(note, l.width)...)
	}
	lines = append(lines, "")
	if v.empty != "" {
		return append(lines, v.empty)
	}
	return append(lines, v.frame(l)...)
}

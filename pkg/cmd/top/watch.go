package top

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/iostreams"
)

// ctrlC is what a terminal sends for it while it is ours.
const ctrlC = 3

// looked is what one look at the cluster came to.
type looked struct {
	view *view
	err  error
}

// watch looks again and again. On a terminal it redraws the screen, which is restored however the watch ends; elsewhere it prints
// one frame after the other. The first look must succeed; trouble later is told in the frame, and the next look tried in time.
func (o *Options) watch(ctx context.Context, namespace string) error {
	first, err := o.look(ctx, namespace)
	if err != nil {
		return err
	}
	w := &watching{o: o, view: first, at: o.IO.Clock.Now()}
	screen, err := o.IO.TakeScreen()
	if err != nil {
		return failure.Errorf("take over the terminal: %w", err).WithHint("print frames instead: gangctl top %s -w | cat", o.What)
	}
	if screen != nil {
		defer screen.Restore()
		w.screen = screen
	}
	return w.run(ctx, namespace)
}

// watching is a watch that goes on.
type watching struct {
	o       *Options
	screen  *iostreams.Screen
	view    *view
	at      time.Time
	trouble string
	letters letters
}

func (w *watching) run(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ticker := w.o.IO.Clock.NewTicker(time.Second)
	defer ticker.Stop()
	results := make(chan looked, 1)
	looking, due := false, w.at.Add(w.o.Interval)
	if err := w.show(true); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return &failure.Error{Code: failure.CodeInterrupted}
		case key := <-w.screen.Keys():
			switch key {
			case 'q', 'Q':
				return nil
			case ctrlC:
				return &failure.Error{Code: failure.CodeInterrupted}
			}
		case r := <-results:
			looking = false
			w.take(r)
			if err := w.show(true); err != nil {
				return err
			}
		case <-ticker.C():
			if now := w.o.IO.Clock.Now(); !looking && !now.Before(due) {
				looking, due = true, now.Add(w.o.Interval)
				go func() {
					v, err := w.o.look(ctx, namespace)
					results <- looked{v, err}
				}()
			}
			if err := w.show(false); err != nil {
				return err
			}
		}
	}
}

// take notes what a look came to.
func (w *watching) take(r looked) {
	if r.err != nil {
		w.trouble = failure.From(r.err).Message
		return
	}
	w.view, w.at, w.trouble = r.view, w.o.IO.Clock.Now(), ""
}

// show draws the frame of this moment. Into a pipe goes only what is news.
func (w *watching) show(news bool) error {
	if w.screen == nil && !news {
		return nil
	}
	l := w.o.layout(w.view, w.letters)
	w.letters = l.letters
	lines := watchFrame(w.view, l, status{what: w.o.What, at: w.at, now: w.o.IO.Clock.Now(), interval: w.o.Interval, trouble: w.trouble, keys: w.screen != nil})
	if w.screen != nil {
		w.screen.Draw(lines)
		return w.o.IO.OutErr()
	}
	_, err := fmt.Fprintln(w.o.IO.Out, strings.Join(lines, "\n")+"\n")
	return err
}

// status is the line above a frame that is redrawn.
type status struct {
	what     What
	at, now  time.Time
	interval time.Duration
	trouble  string
	keys     bool
}

// watchFrame is a frame with its status line.
func watchFrame(v *view, l layout, s status) []string {
	head := fmt.Sprintf("gangctl top %s  %s", s.what, s.at.UTC().Format(time.RFC3339))
	if s.keys {
		head += fmt.Sprintf("  (%s ago, every %s, q quits)", age(s.now.Sub(s.at).Seconds()), s.interval)
	}
	lines := []string{cut(head, l.width)}
	if s.trouble != "" {
		lines = append(lines, wrap("note: "+s.trouble+"; trying again", l.width)...)
	}
	if v.note != "" {
		lines = append(lines, wrap(v.note, l.width)...)
	}
	lines = append(lines, "")
	if v.empty != "" {
		return append(lines, v.empty)
	}
	return append(lines, v.frame(l)...)
}

package list

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/wrap"
)

// ctrlC is the byte that a terminal sends for Ctrl-C while it is ours.
const ctrlC = 3

// frame is what a list prints, with its notes, and how it failed.
type frame struct {
	text, notes string
	err         error
}

// watch lists again and again. On a terminal it redraws the screen, which is restored however the watch ends; elsewhere it prints one table after
// the other. The first list must succeed; trouble later is shown above what was seen last.
func (o *Options) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shown := o.look(ctx)
	if shown.err != nil && shown.text == "" {
		return shown.err
	}
	screen, err := o.IO.TakeScreen()
	if err != nil {
		return failure.Errorf("take over the terminal: %w", err).WithHint("print tables instead: gangctl list -w | cat")
	}
	if screen != nil {
		defer screen.Restore()
	}
	if err := o.show(screen, shown); err != nil {
		return err
	}
	ticker := o.IO.Clock.NewTicker(o.Interval)
	defer ticker.Stop()
	frames, looking := make(chan frame, 1), false
	for {
		select {
		case <-ctx.Done():
			return &failure.Error{Code: failure.CodeInterrupted}
		case key := <-screen.Keys():
			switch key {
			case 'q', 'Q':
				return nil
			case ctrlC:
				return &failure.Error{Code: failure.CodeInterrupted}
			}
		case <-ticker.C():
			if !looking {
				looking = true
				go func() { frames <- o.look(ctx) }()
			}
		case f := <-frames:
			looking = false
			if f.err != nil && f.text == "" {
				f.text = shown.text
			}
			shown = f
			if err := o.show(screen, shown); err != nil {
				return err
			}
		}
	}
}

// look lists once, into a frame.
func (o *Options) look(ctx context.Context) frame {
	var text, notes strings.Builder
	once, streams := *o, *o.IO
	streams.Out, streams.ErrOut = &text, &notes
	once.IO = &streams
	err := once.list(ctx, nil, func() {})
	return frame{text.String(), notes.String(), err}
}

// show draws a frame, or prints it into a pipe.
func (o *Options) show(screen *iostreams.Screen, f frame) error {
	notes := f.notes
	if f.err != nil {
		notes += fmt.Sprintf("note: %s; trying again\n", failure.From(f.err).Message)
	}
	if screen == nil {
		fmt.Fprint(o.IO.ErrOut, notes)
		_, err := fmt.Fprintln(o.IO.Out, f.text)
		return err
	}
	lines := []string{fmt.Sprintf("gangctl list  %s  (q quits)", o.IO.Clock.Now().UTC().Format(time.RFC3339))}
	for line := range strings.Lines(notes + "\n" + f.text) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	for i := range lines {
		lines[i] = wrap.Cut(lines[i], o.IO.Width())
	}
	screen.Draw(lines)
	return o.IO.OutErr()
}

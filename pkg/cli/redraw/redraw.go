// Package redraw shows what a command sees again and again, until its user ends that.
package redraw

import (
	"context"
	"time"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
)

// ctrlC is the byte that a terminal sends for Ctrl-C while it is ours.
const ctrlC = 3

// Watch is something that is shown frame by frame: on a terminal in place, on a screen that is restored however the watch ends, and elsewhere, where
// the screen is nil, one after the other.
type Watch[Frame any] struct {
	// Piped is the hint for a terminal that cannot be taken over.
	Piped string
	// Look makes a frame. Keys are read meanwhile, and it is not called again before it has returned.
	Look func(context.Context) Frame
	// Show shows a frame.
	Show func(*iostreams.Screen, Frame) error
	// Tick is called at every interval, and reports whether to look, unless that goes on.
	Tick  func(now time.Time) (look bool, err error)
	Every time.Duration
}

// Run shows frames, the first of which was made, until q is pressed. Ctrl-C, and the end of ctx, are failures.
func (w Watch[Frame]) Run(ctx context.Context, io *iostreams.IOStreams, first Frame) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	screen, err := io.TakeScreen()
	if err != nil {
		return failure.Errorf("take over the terminal: %w", err).WithHint("%s", w.Piped)
	}
	if screen != nil {
		defer screen.Restore()
	}
	if err := w.Show(screen, first); err != nil {
		return err
	}
	ticker := io.Clock.NewTicker(w.Every)
	defer ticker.Stop()
	frames, looking := make(chan Frame, 1), false
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
		case f := <-frames:
			looking = false
			if err := w.Show(screen, f); err != nil {
				return err
			}
		case <-ticker.C():
			due, err := w.Tick(io.Clock.Now())
			if err != nil {
				return err
			}
			if due && !looking {
				looking = true
				go func() { frames <- w.Look(ctx) }()
			}
		}
	}
}

// Trouble is the line above a frame, of what kept the next one from being made.
func Trouble(err error) string {
	return "note: " + failure.From(err).Message + "; trying again"
}

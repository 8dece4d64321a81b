package list

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/redraw"
	"github.com/gangctl/gangctl/pkg/cli/wrap"
)

// frame is what a list prints, with its notes, and how it failed.
type frame struct {
	text, notes string
	err         error
}

// watch lists again and again. The first list must succeed; trouble later is shown above what was seen last.
func (o *Options) watch(ctx context.Context) error {
	shown := o.look(ctx)
	if shown.err != nil && shown.text == "" {
		return shown.err
	}
	return redraw.Watch[frame]{
		Piped: "print tables instead: gangctl list -w | cat",
		Every: o.Interval,
		Tick:  func(time.Time) (bool, error) { return true, nil },
		Look:  o.look,
		Show: func(screen *iostreams.Screen, f frame) error {
			if f.err != nil && f.text == "" {
				f.text = shown.text
			}
			shown = f
			return o.show(screen, f)
		},
	}.Run(ctx, o.IO, shown)
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
		notes += redraw.Trouble(f.err) + "\n"
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

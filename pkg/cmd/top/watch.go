package top

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/redraw"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
)

// restFactor is how many times as long as a view took to make is rested before the next: a large cluster changes all the time, and a watch
// must not take more than a twentieth of a core for it, with what comes in meanwhile and the collection of garbage on another core.
const restFactor = 24

// looked is the outcome of one look at the mirror.
type looked struct {
	view *view
	err  error
	// changes is how much had changed when it began.
	changes uint64
	took    time.Duration
}

// watch follows the cluster. The first look must succeed; trouble later is shown in the frame.
func (o *Options) watch(ctx context.Context, namespace string) error {
	client, err := o.Client()
	if err != nil {
		return err
	}
	mirror, err := collect.NewMirror(ctx, client, o.reads(namespace))
	if err != nil {
		return err
	}
	defer mirror.Close()
	w := &watching{o: o, namespace: namespace, mirror: mirror, gauge: o.gauge(client, namespace)}
	first := w.look(ctx)
	if first.err != nil {
		return first.err
	}
	return redraw.Watch[looked]{
		Piped: fmt.Sprintf("print frames instead: gangctl top %s -w | cat", o.What),
		Every: time.Second,
		Tick:  func(now time.Time) (bool, error) { return w.due(now), w.show(false) },
		Look:  w.look,
		Show: func(screen *iostreams.Screen, r looked) error {
			w.screen = screen
			w.take(r)
			return w.show(true)
		},
	}.Run(ctx, o.IO, first)
}

// watching is a watch that goes on.
type watching struct {
	o         *Options
	namespace string
	mirror    *collect.Mirror
	gauge     *gauge
	screen    *iostreams.Screen
	view      *view
	// seen is how much had changed when the view was made; earliest and latest are when the next one is made: as soon as something
	// has changed, and in any case.
	seen             uint64
	earliest, latest time.Time
	trouble          string
	letters          letters
}

// due reports whether it is time for another view. Into a pipe goes one in each interval, whether something has changed or not.
func (w *watching) due(now time.Time) bool {
	return !now.Before(w.latest) || w.screen != nil && w.mirror.Changes() != w.seen && !now.Before(w.earliest)
}

// look makes a view of what is known now. What is measured is read before: to wait for it is no work.
func (w *watching) look(ctx context.Context) looked {
	w.gauge.read(ctx, w.o.IO.Clock.Now())
	begin := w.o.IO.Clock.Now()
	r := looked{changes: w.mirror.Changes()}
	s, err := w.mirror.Snapshot()
	if err == nil {
		r.view, err = w.o.view(ctx, s, w.namespace, w.gauge)
	}
	r.err, r.took = err, w.o.IO.Clock.Since(begin)
	return r
}

// take notes what a look came to.
func (w *watching) take(r looked) {
	now := w.o.IO.Clock.Now()
	w.seen, w.earliest, w.latest = r.changes, now.Add(restFactor*r.took), now.Add(max(w.o.Interval, restFactor*r.took))
	if r.err != nil {
		w.trouble = redraw.Trouble(r.err)
		return
	}
	w.view, w.trouble = r.view, ""
}

// show draws the frame of this moment. Into a pipe goes only what is news.
func (w *watching) show(news bool) error {
	if w.screen == nil && !news {
		return nil
	}
	l := w.o.layout(w.view, w.letters)
	w.letters = l.letters
	lines := watchFrame(w.view, l, w.status(w.o.IO.Clock.Now()))
	if w.screen != nil {
		w.screen.Draw(lines)
		return w.o.IO.OutErr()
	}
	_, err := fmt.Fprintln(w.o.IO.Out, strings.Join(lines, "\n")+"\n")
	return err
}

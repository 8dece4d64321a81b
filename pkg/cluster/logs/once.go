package logs

import (
	"container/heap"
	"context"
	"errors"
	"io"

	"k8s.io/client-go/kubernetes"
)

// Once reads what containers have printed so far. With as many connections as sources, lines come in the order of their times;
// otherwise one source comes after the other. What cannot be read of one does not keep back the others.
type Once struct {
	Client     kubernetes.Interface
	Sink       Sink
	Request    Request
	MaxStreams int
}

// Read reads the sources' logs. The errors are those of single sources, in their order.
func (o Once) Read(ctx context.Context, sources []Source) []error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opened := o.open(ctx, sources)
	if o.Merges(len(sources)) {
		return o.merge(sources, opened)
	}
	var errs []error
	for i := range opened {
		s := <-opened[i].ready
		for s.advance() {
			o.Sink.Line(s.line)
		}
		s.finish()
		if s.err != nil {
			errs = append(errs, opOf(sources[i]).Wrap(s.err))
		}
	}
	return errs
}

// Merges reports whether the lines of so many sources come in the order of their times.
func (o Once) Merges(sources int) bool { return sources <= o.MaxStreams }

// openLog is a log that is being opened.
type openLog struct {
	source Source
	order  int
	ready  chan *openLog
	stream *stream
	err    error // why it could not be opened, or read to its end
	line   Line
	free   func()
}

// open sends the requests, as many at a time as there are connections, in the order of the sources.
func (o Once) open(ctx context.Context, sources []Source) []*openLog {
	slots := make(chan struct{}, max(1, o.MaxStreams))
	logs := make([]*openLog, len(sources))
	for i, source := range sources {
		logs[i] = &openLog{source: source, order: i, ready: make(chan *openLog, 1), free: func() { <-slots }}
	}
	go func() {
		for _, s := range logs {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				s.err = ctx.Err()
				s.free = func() {}
				s.ready <- s
				continue
			}
			go func() {
				s.stream, s.err = open(ctx, o.Client, s.source.Pod.Namespace, s.source.Pod.Name, o.Request.options(s.source.Container))
				if s.err == nil {
					s.stream.rest = true
				}
				s.ready <- s
			}()
		}
	}()
	return logs
}

// advance reads the next line, and reports whether there is one. Only what was opened has an end: an io.EOF before it is a connection that was
// closed without an answer.
func (s *openLog) advance() bool {
	if s.err != nil {
		return false
	}
	stamp, at, text, err := s.stream.next()
	s.line = Line{Source: s.source, Stamp: stamp, Time: at, Text: text}
	if !errors.Is(err, io.EOF) {
		s.err = err
	}
	return err == nil
}

func (s *openLog) finish() {
	if s.stream != nil {
		s.stream.close()
	}
	s.free()
}

// merge gives lines on in the order of their times, and of the sources for the same time.
func (o Once) merge(sources []Source, opened []*openLog) []error {
	var next byTime
	for i := range opened {
		if s := <-opened[i].ready; s.advance() {
			next = append(next, s)
		} else {
			s.finish()
		}
	}
	heap.Init(&next)
	for len(next) > 0 {
		s := next[0]
		o.Sink.Line(s.line)
		if s.advance() {
			heap.Fix(&next, 0)
			continue
		}
		heap.Pop(&next)
		s.finish()
	}
	var errs []error
	for i, s := range opened {
		if s.err != nil {
			errs = append(errs, opOf(sources[i]).Wrap(s.err))
		}
	}
	return errs
}

// byTime implements heap.Interface.
type byTime []*openLog

func (h byTime) Len() int      { return len(h) }
func (h byTime) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h byTime) Less(i, j int) bool {
	if a, b := h[i].line.Time, h[j].line.Time; !a.Equal(b) {
		return a.Before(b)
	}
	return h[i].order < h[j].order
}

// Push implements heap.Interface.
func (h *byTime) Push(x any) { *h = append(*h, x.(*openLog)) }

// Pop implements heap.Interface.
func (h *byTime) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

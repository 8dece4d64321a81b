package podlog

import (
	"iter"
	"net/http"
	"time"
)

// writer writes the lines that a query selects.
type writer struct {
	w       http.ResponseWriter
	query   query
	written int64
	err     error
}

// past writes the lines up to now, of which the query may want only the last
// ones, and returns how many there are.
func (w *writer) past(lines iter.Seq[Line], now time.Time) int {
	var all []Line
	for line := range lines {
		if line.Time.After(now) {
			break
		}
		all = append(all, line)
	}
	desired := all
	for len(desired) > 0 && desired[0].Time.Before(w.query.since) {
		desired = desired[1:]
	}
	if n := w.query.tail; n >= 0 && int64(len(desired)) > n {
		desired = desired[int64(len(desired))-n:]
	}
	for _, line := range desired {
		w.line(line)
	}
	return len(all)
}

// rest writes everything but the first lines.
func (w *writer) rest(lines iter.Seq[Line], skip int) {
	i := 0
	for line := range lines {
		if i++; i > skip {
			w.line(line)
		}
	}
}

func (w *writer) line(line Line) {
	text := line.Text + "\n"
	if w.query.timestamps {
		text = line.Time.UTC().Format(time.RFC3339Nano) + " " + text
	}
	if limit := w.query.limit; limit >= 0 {
		text = text[:min(int64(len(text)), limit-w.written)]
	}
	if w.err == nil && text != "" {
		_, w.err = w.w.Write([]byte(text))
	}
	w.written += int64(len(text))
}

// flush sends what was written and reports whether the reader wants more.
func (w *writer) flush() bool {
	if flusher, ok := w.w.(http.Flusher); ok {
		flusher.Flush()
	}
	return w.err == nil && (w.query.limit < 0 || w.written < w.query.limit)
}

package collect

import (
	"errors"
	"testing"
	"time"
)

// A kind of which nothing was to report for long is as old as the server's last sign of life before its watch broke, not older, and
// grows no younger while the server lives and the watch does not.
func TestLossIsAsOldAsTheBreak(t *testing.T) {
	start := time.Unix(1000, 0)
	m := &Mirror{c: &collector{o: Options{Now: func() time.Time { return start.Add(time.Minute) }}}, alive: start.Add(20 * time.Second)}
	f := newFeed(m, resource{})
	f.heard = start
	if l := f.loss(); l != nil {
		t.Fatalf("got %+v", l)
	}
	f.lose(errors.New("gone"))
	m.live(nil, start.Add(50*time.Second))
	f.lose(errors.New("still gone"))
	if l := f.loss(); l == nil || !l.Since.Equal(start.Add(20*time.Second)) || l.Err.Error() != "still gone" {
		t.Errorf("got %+v", l)
	}
	f.hear()
	if l := f.loss(); l != nil {
		t.Errorf("got %+v", l)
	}
}

package logs

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gangctl/gangctl/pkg/cluster/container"
)

// restarts looks after restarts while a log is followed: the request may have met the run after the one that was meant.
func (r *reader) restarts(ctx context.Context) {
	for r.wait(ctx) {
		r.sweep(ctx)
	}
}

// sweep reads what is left of the run before, if the container was restarted since it was last looked at.
func (r *reader) sweep(ctx context.Context) {
	r.sweeping.Lock()
	defer r.sweeping.Unlock()
	s := container.Status(r.state(), r.source.Container)
	if !container.Started(s) {
		return
	}
	if r.known < 0 || s.RestartCount <= r.known {
		r.known = max(r.known, s.RestartCount)
		return
	}
	if more := s.RestartCount - r.known; more > 1 {
		r.f.Sink.Note(r.source, fmt.Sprintf("restarted %d times between two looks: lines of the runs between may be missing", more))
	}
	if r.drained.Load() < s.RestartCount-1 {
		if s.State.Waiting == nil && !r.previous(ctx) {
			return // ctx has ended: the next sweep reads it
		}
		if last := s.LastTerminationState.Terminated; last != nil {
			r.f.Sink.Note(r.source, container.Exit(last)+", and was restarted")
		}
	}
	r.known = s.RestartCount
}

// previous reads the run before to its end. It is false if ctx ends first.
func (r *reader) previous(ctx context.Context) bool {
	p := &patience{}
	for {
		_, err := r.read(ctx, p, Request{Previous: true}, false, true)
		switch {
		case err == nil:
			return true
		case apierrors.IsBadRequest(err), apierrors.IsNotFound(err):
			r.f.Sink.Note(r.source, "restarted, and the end of its log is gone")
			return true
		case !r.carryOn(ctx, p, err):
			return false
		}
	}
}

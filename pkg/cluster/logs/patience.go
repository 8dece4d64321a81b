package logs

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// shortPause and longPause are between two tries; each is twice as long as the one before.
const (
	shortPause = 200 * time.Millisecond
	longPause  = 5 * time.Second
)

// patience is how one who tries again waits between tries.
type patience struct {
	pause    time.Duration
	reported bool
}

func (p *patience) reset() { *p = patience{} }

func (p *patience) next() time.Duration {
	p.pause = min(max(2*p.pause, shortPause), longPause)
	return p.pause
}

// carryOn decides after a request whether to go on. A missing right ends everything; all else is trouble that passes.
func (r *reader) carryOn(ctx context.Context, p *patience, err error) bool {
	switch {
	case ctx.Err() != nil:
		return false
	case err == nil:
		return true
	case apierrors.IsForbidden(err), failure.Unauthenticated(err):
		r.f.fail(opOf(r.source).Wrap(err))
		return false
	}
	if !p.reported && !apierrors.IsBadRequest(err) && !apierrors.IsNotFound(err) { // those are about a container that changes
		p.reported = true
		r.f.trouble(r.source, reason(err))
	}
	return r.rest(ctx, p.next())
}

// trouble reports that a log broke off. An answer is about one member; a connection that is lost is lost for all, and reported once.
func (f *Follower) trouble(source Source, err error) {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		f.Sink.Note(source, fmt.Sprintf("the log broke off (%v); reading on as soon as it can be reached", err))
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.Clock.Now(); now.Sub(f.lostReported) > longPause {
		f.lostReported = now
		f.Sink.Lost(err)
	}
}

// reason leaves the request out of an error of the network.
func reason(err error) error {
	var status apierrors.APIStatus
	for !errors.As(err, &status) {
		next := errors.Unwrap(err)
		if next == nil {
			break
		}
		err = next
	}
	return err
}

// opOf is the request for the log of a member, for errors.
func opOf(source Source) failure.Op {
	return failure.Op{Verb: "get", Resource: corev1.SchemeGroupVersion.WithResource("pods/log"), Kind: "log of pod", Namespace: source.Pod.Namespace, Name: source.Pod.Name}
}

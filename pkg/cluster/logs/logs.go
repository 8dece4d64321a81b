// Package logs reads what the members of a gang print, each line once: across containers that are restarted, pods that are
// replaced, and connections and API servers that go away and come back.
//
// Every request sets timestamps. After a break a log is read again from a little before the newest line, and
// the lines that were there are left out: those of the same time and text, as often as they were seen. Nothing rests on clocks
// of the machines that print or read.
package logs

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Source is a container whose log is read.
type Source struct {
	// Role and Index are its place in the gang.
	Role  string
	Index int
	// Order is the place of the role among the roles.
	Order int
	// Pod is as it was when it was last looked at.
	Pod       *corev1.Pod
	Container string
}

// Name is ROLE-INDEX.
func (s Source) Name() string { return fmt.Sprintf("%s-%d", s.Role, s.Index) }

// Line is one line of a log, without its end.
type Line struct {
	Source Source
	// Stamp is the time as the server wrote it (RFC 3339 with nanoseconds), and Time the parsed one.
	Stamp string
	Time  time.Time
	Text  string
}

// Sink takes what was read. Its methods are called from several goroutines, and must not mix up what they are given.
type Sink interface {
	// Line takes a line.
	Line(Line)
	// Note takes a remark that is no part of any log, about a source; its name is not in the text.
	Note(source Source, text string)
	// Lost reports that connections are lost, once for all of them; what they missed is read as soon as there are new ones.
	Lost(err error)
}

// Request is the part of a log to read at first.
type Request struct {
	// Previous is the run of the container before this one.
	Previous bool
	// Since is how old the oldest line may be; 0 for any age.
	Since time.Duration
	// Tail is the number of last lines to read; nil for all.
	Tail *int64
}

// options are those of the API for a request.
func (r Request) options(container string) *corev1.PodLogOptions {
	o := &corev1.PodLogOptions{Container: container, Timestamps: true, Previous: r.Previous, TailLines: r.Tail}
	if r.Since > 0 {
		seconds := int64(max(r.Since, time.Second).Seconds())
		o.SinceSeconds = &seconds
	}
	return o
}

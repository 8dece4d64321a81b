package events

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	jobevents "github.com/gangctl/gangctl/pkg/cluster/events"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Of returns the events of a job, its gang and its pods, those that are gone included; the latest is the last.
func Of(ctx context.Context, client *kube.Client, job *gang.Job, pods []*corev1.Pod) ([]corev1.Event, error) {
	all, err := list(ctx, client, job.Meta.Namespace)
	if err != nil {
		return nil, err
	}
	return (&Options{}).pick(all, job, pods), nil
}

// Print prints events as the table of `gangctl events`.
func Print(io *iostreams.IOStreams, events []corev1.Event) error {
	return (&Options{IO: io}).printTable(events)
}

// Last is when an event happened the last time.
func Last(e *corev1.Event) time.Time { return jobevents.Last(e) }

// Count is how often an event happened.
func Count(e *corev1.Event) int32 { return jobevents.Count(e) }

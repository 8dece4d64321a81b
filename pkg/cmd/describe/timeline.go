package describe

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/container"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

// step is one in the life of a job.
type step struct {
	name string
	// at is zero for one that has not happened, or whose evidence is gone.
	at time.Time
}

// timeline is when the job was submitted, when the last of its pods was created, got its node and began to run, and when
// the job ended. What only pods record is not known of a member whose pod is gone.
func timeline(job *gang.Job, s summary.Summary) []step {
	end := step{name: "done"}
	if s.State == gang.Failed {
		end.name = "failed"
	}
	if job.End != nil {
		end.at = job.End.At
	}
	return []step{
		{"submitted", job.Meta.CreationTimestamp.Time},
		{"created", whole(s, func(p *corev1.Pod) time.Time { return p.CreationTimestamp.Time })},
		{"scheduled", whole(s, gang.PlacedAt)},
		{"running", whole(s, started)},
		end,
	}
}

// whole is when the last member came so far; zero while one has not.
func whole(s summary.Summary, when func(*corev1.Pod) time.Time) time.Time {
	var last time.Time
	for _, m := range s.Rows {
		if m.Pod == nil {
			return time.Time{}
		}
		at := when(m.Pod)
		if at.IsZero() {
			return time.Time{}
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}

// started is when the last container of a pod began to run; after a restart it is when it began again.
func started(p *corev1.Pod) time.Time {
	var last time.Time
	for _, c := range p.Status.ContainerStatuses {
		at, _ := container.Run(&c)
		if at.IsZero() {
			return time.Time{}
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}

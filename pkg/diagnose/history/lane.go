package history

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/container"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Lane is one member and what it went through.
type Lane struct {
	Member string     `json:"member"`
	Role   string     `json:"role"`
	Index  int        `json:"index"`
	Pod    string     `json:"pod,omitempty"`
	Node   string     `json:"node,omitempty"`
	State  gang.State `json:"state"`
	// Devices is how many GPUs it requests.
	Devices  int64 `json:"gpus"`
	Restarts int32 `json:"restarts"`
	// Phases follow each other; Marks are moments.
	Phases []Phase `json:"phases"`
	Marks  []Mark  `json:"marks,omitempty"`
}

// PhaseKind is the stable name of a phase in the life of a member.
type PhaseKind string

// The phases.
const (
	Absent   PhaseKind = "absent"   // there is no pod
	Pending  PhaseKind = "pending"  // the pod waits for a node
	Starting PhaseKind = "starting" // it has a node; its containers are made ready to run
	Unready  PhaseKind = "unready"  // it runs, but is not ready
	Running  PhaseKind = "running"  // it runs
	Down     PhaseKind = "down"     // its container has ended and waits to be started again
)

// Phase is a stretch of time in the life of a member.
type Phase struct {
	Kind PhaseKind `json:"phase"`
	From time.Time `json:"from"`
	// To is nil while it goes on.
	To *time.Time `json:"to,omitempty"`
	// Note has details; usually empty.
	Note string `json:"note,omitempty"`
}

// MarkKind is the stable name of a kind of moment.
type MarkKind string

// The moments.
const (
	Done      MarkKind = "succeeded"
	Died      MarkKind = "failed"
	Restarted MarkKind = "restarted"
	Replaced  MarkKind = "replaced" // by another pod
	Leaving   MarkKind = "leaving"  // it is being deleted
)

// Mark is a moment in the life of a member.
type Mark struct {
	Kind MarkKind  `json:"mark"`
	At   time.Time `json:"at"`
	Note string    `json:"note,omitempty"`
}

// lanes are those of all members.
func lanes(w *view.View, g *gang.Gang, events []*corev1.Event) []Lane {
	all := make([]Lane, 0, len(g.Members))
	before := earlier(g, events)
	for _, m := range g.Members {
		role := g.RoleByName(m.Role)
		l := Lane{Member: m.Name(), Role: strings.ToLower(m.Role), Index: m.Index, State: m.State}
		if role != nil {
			l.Devices = devices(role.Template.Spec)
		}
		d := &draft{lane: &l, at: g.Meta.CreationTimestamp.Time}
		for _, pod := range before[podName(g, m)] {
			d.past(pod)
		}
		switch {
		case m.Pod != nil:
			l.Pod, l.Node = m.Pod.Name, m.Pod.Spec.NodeName
			main := ""
			if role != nil {
				main = role.Main
			}
			d.pod(m.Pod, main)
		case g.End == nil:
			d.phase(Absent, w.Now, true)
		}
		all = append(all, l)
	}
	return all
}

// draft draws up a lane from left to right.
type draft struct {
	lane *Lane
	// at is how far it has come.
	at time.Time
}

// phase adds a phase from where the lane has come to a moment; open if it goes on then. One that takes no time is left out.
func (d *draft) phase(kind PhaseKind, to time.Time, open bool) {
	if to.Before(d.at) || to.Equal(d.at) && !open {
		return
	}
	p := Phase{Kind: kind, From: d.at.UTC()}
	if !open {
		p.To = known(to)
	}
	d.lane.Phases = append(d.lane.Phases, p)
	d.at = to
}

func (d *draft) mark(kind MarkKind, at time.Time, note string) {
	if at.IsZero() {
		at = d.at
	}
	d.lane.Marks = append(d.lane.Marks, Mark{kind, at.UTC(), note})
}

// pod adds the pod of now.
func (d *draft) pod(p *corev1.Pod, main string) {
	d.phase(Absent, p.CreationTimestamp.Time, false)
	if p.DeletionTimestamp != nil {
		at := p.DeletionTimestamp.Time
		if grace := p.DeletionGracePeriodSeconds; grace != nil {
			at = at.Add(-time.Duration(*grace) * time.Second)
		}
		d.mark(Leaving, at, "it is being deleted")
	}
	bound := placedAt(p)
	if p.Spec.NodeName == "" {
		d.last(Pending, p)
		return
	}
	d.phase(Pending, bound, false)
	s := status(p, main)
	if !container.Started(s) {
		d.last(Starting, p)
		return
	}
	d.lane.Restarts += s.RestartCount
	if before := s.LastTerminationState.Terminated; before != nil {
		d.phase(Starting, before.StartedAt.Time, false)
		d.phase(Running, before.FinishedAt.Time, false)
		d.mark(Restarted, before.FinishedAt.Time, restartNote(s, before))
		if s.State.Waiting != nil {
			d.last(Down, p)
			return
		}
	}
	d.now(p, s)
}

// now adds the present run of a container.
func (d *draft) now(p *corev1.Pod, s *corev1.ContainerStatus) {
	started, ended := container.Run(s)
	if s.LastTerminationState.Terminated != nil {
		d.phase(Down, started, false)
	} else {
		d.phase(Starting, started, false)
	}
	if t := s.State.Terminated; t != nil {
		d.phase(Running, ended, false)
		kind := Done
		if t.ExitCode != 0 {
			kind = Died
		}
		d.mark(kind, ended, container.Exit(t))
		return
	}
	ready, since := readiness(p)
	switch {
	case ready:
		d.phase(Unready, since, false)
		d.last(Running, p)
	default:
		d.phase(Running, since, false) // until it was ready no more, where that came later than the start
		d.last(Unready, p)
	}
}

// last adds the phase in which the pod is; it ends where the pod has.
func (d *draft) last(kind PhaseKind, p *corev1.Pod) {
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		d.mark(Done, time.Time{}, "when is not known")
	case corev1.PodFailed:
		d.mark(Died, disrupted(p), gang.Explained(p.Status.Reason, p.Status.Message))
	default:
		d.phase(kind, d.at, true)
		d.lane.Phases[len(d.lane.Phases)-1].Note = waits(p)
	}
}

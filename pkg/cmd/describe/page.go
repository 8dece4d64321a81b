package describe

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/occurrence"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/summary"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
	"github.com/gangctl/gangctl/pkg/submit/redact"
)

// apiVersion is that of a page; it only grows.
const apiVersion = "gangctl.describe/v1"

// page is the output of describe, for programs.
type page struct {
	APIVersion string   `json:"apiVersion"`
	Job        jobRef   `json:"job"`
	State      string   `json:"state"`
	Reason     string   `json:"reason,omitempty"`
	Ready      int      `json:"ready"`
	Total      int      `json:"members"`
	Gang       *gangRef `json:"gang,omitempty"`
	Scheduler  string   `json:"scheduler"`
	GPUs       int64    `json:"gpus"`
	Roles      []role   `json:"roles"`
	Timeline   []moment `json:"timeline"`
	Pods       []member `json:"pods"`
	// Events is null where they could not be read.
	Events []event `json:"events"`
	// Progress is how far the job has come, by its own account; absent if it reports nothing.
	Progress *gang.Progress `json:"progress,omitempty"`
	// Command is the command line that submitted the job, and Changed whether its spec is another by now; null if unknown.
	Command string `json:"command,omitempty"`
	Changed *bool  `json:"changed"`
}

type jobRef struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       string    `json:"uid,omitempty"`
	Created   time.Time `json:"created"`
}

type gangRef struct {
	Dialect   string `json:"dialect"`
	Name      string `json:"name"`
	MinMember int    `json:"minMember"`
}

type role struct {
	Name     string            `json:"name"`
	Replicas int32             `json:"replicas"`
	Restart  string            `json:"restartPolicy,omitempty"`
	Image    string            `json:"image,omitempty"`
	Command  []string          `json:"command,omitempty"`
	Requests map[string]string `json:"requests,omitempty"`
}

type moment struct {
	Step string `json:"step"`
	// At is null for a step that has not been taken, or of which nothing is known.
	At *time.Time `json:"at"`
	// Seconds is how long it took from the step before that is known.
	Seconds *float64 `json:"seconds,omitempty"`
}

type member struct {
	Name   string `json:"name"`
	Pod    string `json:"pod,omitempty"`
	State  string `json:"state"`
	Node   string `json:"node,omitempty"`
	GPUs   int64  `json:"gpus"`
	Reason string `json:"reason,omitempty"`
}

type event struct {
	At      time.Time `json:"at"`
	Type    string    `json:"type"`
	Object  string    `json:"object"`
	Reason  string    `json:"reason"`
	Count   int32     `json:"count"`
	Message string    `json:"message"`
}

func newPage(job *gang.Job, s summary.Summary, happened []corev1.Event) page {
	p := page{APIVersion: apiVersion, State: string(s.State), Reason: s.Reason, Ready: s.Ready, Total: s.Total, Scheduler: s.Scheduler, GPUs: s.GPUs,
		Job:   jobRef{job.Kind.Kind, job.Meta.Namespace, job.Meta.Name, string(job.Meta.UID), job.Meta.CreationTimestamp.UTC()},
		Roles: roles(job), Timeline: []moment{}, Pods: []member{}, Events: []event{}, Progress: job.Progress, Command: redact.CommandLine(provenance.CommandLine(job.Object))}
	if changed, known := provenance.Changed(job.Object); known {
		p.Changed = &changed
	}
	if s.Dialect != "" {
		p.Gang = &gangRef{string(s.Dialect), s.Group, s.MinAvailable}
	}
	var before time.Time
	for _, t := range timeline(job, s) {
		m := moment{Step: t.name}
		if !t.at.IsZero() {
			at := t.at.UTC()
			m.At = &at
			if !before.IsZero() {
				took := max(0, t.at.Sub(before)).Seconds()
				m.Seconds = &took
			}
			before = t.at
		}
		p.Timeline = append(p.Timeline, m)
	}
	for _, m := range s.Rows {
		one := member{Name: m.Name(), State: string(m.State), Node: m.Node(), GPUs: m.GPUs, Reason: m.Reason}
		if m.Pod != nil {
			one.Pod = m.Pod.Name
		}
		p.Pods = append(p.Pods, one)
	}
	for i := range happened {
		p.Events = append(p.Events, newEvent(&happened[i]))
	}
	return p
}

func newEvent(e *corev1.Event) event {
	return event{At: occurrence.Last(e).UTC(), Type: e.Type, Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, Reason: e.Reason, Count: occurrence.Count(e), Message: e.Message}
}

// Package history has the whole life of one gang as values: its identity, what its members went through and when, where they are,
// why it waits or waited, and what of that has expired. It is pure: a cluster view and the current answer in, a report out.
package history

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	jobevents "github.com/gangctl/gangctl/pkg/cluster/events"
	"github.com/gangctl/gangctl/pkg/cluster/occurrence"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
	"github.com/gangctl/gangctl/pkg/submit/redact"
)

// APIVersion is that of the JSON form, which only ever grows.
const APIVersion = "gangctl.report/v1"

// Report is the life of one gang so far.
type Report struct {
	APIVersion string `json:"apiVersion"`
	// At is the moment of the report: everything is as it was seen then.
	At time.Time `json:"at"`
	// Server is the version of the API server; empty if unknown.
	Server string `json:"server,omitempty"`
	Job    Job    `json:"job"`
	Roles  []Role `json:"roles"`
	// Steps are when the gang as a whole came how far.
	Steps []Step `json:"steps"`
	// Conditions are what the job's controller noted on it, the earliest first.
	Conditions []Condition `json:"conditions"`
	// Lanes are the members in the order of role and index.
	Lanes []Lane `json:"members"`
	// Nodes are where members are, and where there are accelerators; Left are how many further nodes there are.
	Nodes []Node `json:"nodes"`
	Left  int    `json:"nodesLeftOut,omitempty"`
	// Now is why-pending's answer at the moment of the report.
	Now *answer.Answer `json:"whyNow"`
	// Messages are those of the past about why the gang waits, the earliest first.
	Messages []Message `json:"messages"`
	// Events are those of the job, its gang and its pods, the earliest first.
	Events []Event `json:"events"`
	// Unseen is what could not be seen, a sentence each.
	Unseen []string `json:"unseen"`
}

// Job is the job as a whole.
type Job struct {
	Kind      string     `json:"kind"`
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	UID       string     `json:"uid,omitempty"`
	State     gang.State `json:"state"`
	Created   *time.Time `json:"created,omitempty"`
	// Ended is when it ended; nil while it has not, or where that is unknown. EndReason is how, as its controller reported it.
	Ended     *time.Time `json:"ended,omitempty"`
	EndReason string     `json:"endReason,omitempty"`
	// Ready members run or have succeeded; Min of Total are needed.
	Ready int32 `json:"ready"`
	Min   int32 `json:"minMember"`
	Total int32 `json:"total"`
	// GPUs is what all members request together.
	GPUs      int64  `json:"gpus"`
	Restarts  int32  `json:"restarts"`
	Dialect   string `json:"dialect,omitempty"`
	Queue     string `json:"queue,omitempty"`
	Scheduler string `json:"scheduler,omitempty"`
	// Command is the command line that submitted it, without the values of environment variables; empty if another program did.
	Command string `json:"command,omitempty"`
}

// Role is the image, the command and the requests of one kind of member.
type Role struct {
	Name     string              `json:"name"`
	Replicas int32               `json:"replicas"`
	Requests corev1.ResourceList `json:"requests"`
	Image    string              `json:"image,omitempty"`
	Command  []string            `json:"command,omitempty"`
}

// Build reports on a job of a cluster view; now is why-pending's answer about it.
func Build(w *view.View, j *gang.Job, now *answer.Answer) *Report {
	g := w.Gang(j)
	family := jobevents.NewFamily(g.Job, g.ExistingPods())
	events := jobevents.Pick(w.Snap.Events, family)
	r := &Report{APIVersion: APIVersion, At: w.Now.UTC(), Server: w.Snap.Server.Version, Now: now,
		Lanes: lanes(w, g, events), Conditions: conditions(w, g), Roles: roles(g)}
	r.Job = job(g, r.Lanes, w.Now)
	r.Steps = steps(g, r)
	r.Nodes, r.Left = nodes(w, g)
	r.Messages = messages(w, g, family, events)
	r.Events = eventsOf(events)
	r.Unseen = unseen(w, g, r, events)
	return r
}

func job(g *gang.Gang, lanes []Lane, at time.Time) Job {
	j := Job{Kind: g.Kind.Kind, Namespace: g.Meta.Namespace, Name: g.Meta.Name, UID: string(g.Meta.UID), State: gang.StateOf(g, at),
		Created: known(g.Meta.CreationTimestamp.Time), Ready: g.Count(gang.Running, gang.Succeeded), Min: g.Min, Total: g.Total(),
		Scheduler: g.Scheduler, Command: redact.CommandLine(g.Meta.Annotations[provenance.CommandAnnotation])}
	if g.Decl != nil {
		j.Dialect, j.Queue = string(g.Decl.Key.Dialect), g.Decl.Queue
	}
	if j.Queue == "" {
		j.Queue = g.Queue
	}
	if g.End != nil {
		j.Ended, j.EndReason = known(g.End.At), gang.Explained(g.End.Reason, g.End.Message)
	}
	for _, l := range lanes {
		j.GPUs += l.Devices
		j.Restarts += l.Restarts
	}
	return j
}

// known is a time, or nil for one that is not known.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Event is something that happened to the job, its gang or a pod.
type Event struct {
	First   *time.Time `json:"first,omitempty"`
	Last    *time.Time `json:"last,omitempty"`
	Warning bool       `json:"warning,omitempty"`
	Object  string     `json:"object"`
	Reason  string     `json:"reason"`
	Message string     `json:"message"`
	By      string     `json:"by,omitempty"`
	Count   int32      `json:"count"`
}

func eventsOf(events []*corev1.Event) []Event {
	all := make([]Event, 0, len(events))
	for _, e := range events {
		all = append(all, Event{First: known(occurrence.First(e)), Last: known(occurrence.Last(e)), Warning: e.Type == corev1.EventTypeWarning,
			Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, Reason: e.Reason, Message: e.Message, By: occurrence.By(e), Count: occurrence.Count(e)})
	}
	return all
}

// roles are the roles of the spec.
func roles(g *gang.Gang) []Role {
	all := make([]Role, 0, len(g.Roles))
	for _, r := range g.Roles {
		role := Role{Name: strings.ToLower(r.Name), Replicas: r.Replicas, Requests: request.OfTemplate(r.Template.Spec)}
		for _, c := range r.Template.Spec.Containers {
			if c.Name == r.Main {
				role.Image, role.Command = c.Image, redact.Args(slices.Concat(c.Command, c.Args))
			}
		}
		all = append(all, role)
	}
	return all
}

// devices is how many GPUs a pod requests.
func devices(spec corev1.PodSpec) int64 { return request.GPUs(request.OfTemplate(spec)) }

package stage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// Result is what a stage found.
type Result struct {
	// State is what the stage reports where it has no finding.
	State State
	// Findings are what stands in the way, in the order in which it was found.
	Findings []Finding
	// NoPods is true if the findings are why pods are missing.
	NoPods bool
	// Refused is how many members that the gang can do without are not made.
	Refused int64
	// Last is true if no later stage matters, whatever it would find.
	Last bool
	// Injected is what admission by a queue adds to the pods of a role that do not exist yet, by role.
	Injected map[string]cohort.Injected
	// Placement is what the search found on the cluster as it is, Ideal on the cluster at its best. Each is nil where it was not
	// searched.
	Placement, Ideal *placement.Result
	// Coming is the cluster with the nodes that are on their way, where the findings count these; nil where they do not.
	Coming *view.View
	// Matrices are the constraints of every node, by role of the request.
	Matrices map[string]placement.Matrix
	// Unreadable are constraints that no placement can be held to, because the objects behind them may not be read.
	Unreadable placement.Constraints
	// Ahead are gangs that come first.
	Ahead []Ahead
	// Unmodelled is what the gang specifies and no stage evaluates.
	Unmodelled []string
	// Notes are remarks that block nothing.
	Notes []string
	// Missing are rights that the stage would have needed, in the order in which it did. Their Stage and Lost are not set.
	Missing []answer.Right
}

// Ahead is a gang that comes first, and what is reported of it.
type Ahead struct {
	answer.Ahead
	Rival *gang.Job
}

// State is what a stage reports of itself where it has no finding: one of the states of an [answer.StageState], and a note.
type State struct{ Name, Note string }

// OK is the state of a stage that lets the gang pass.
func OK(note string) State { return State{answer.StateOK, note} }

// Unknown is the state of a stage that could not be evaluated.
func Unknown(note string) State { return State{answer.StateUnknown, note} }

// Skipped is the state of a stage that does not matter.
func Skipped(note string) State { return State{answer.StateSkipped, note} }

// Summary is the state of the stage in the answer, which follows from its findings if it has any.
func (r *Result) Summary(name answer.Stage) answer.StageState {
	s := answer.StageState{Name: name, State: r.State.Name, Note: r.State.Note}
	is := func(verdicts ...answer.Verdict) func(Finding) bool {
		return func(f Finding) bool { return slices.Contains(verdicts, f.Verdict) }
	}
	passing := is(answer.Waiting, answer.Starting, answer.FitsNow)
	switch {
	case !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Verdict != answer.FitsNow }): // that the gang fits stops nothing
	case slices.ContainsFunc(r.Findings, is(answer.Uncertain)):
		s.State = answer.StateUnknown
	case slices.ContainsFunc(r.Findings, func(f Finding) bool { return !passing(f) }):
		s.State = answer.StateBlocked
	default:
		s.State = answer.StateWaiting
	}
	return s
}

// Add records a finding. Its sentence may end in the message of another component, with a full stop.
func (r *Result) Add(f *Finding) {
	f.Message = line("%s", f.Message)
	if !strings.HasSuffix(f.Message, "..") {
		f.Message = strings.TrimSuffix(f.Message, ".")
	}
	r.Findings = append(r.Findings, *f)
}

// Note records a remark that blocks nothing.
func (r *Result) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Has reports whether this stage has found one of the codes.
func (r *Result) Has(codes ...answer.Code) bool { return has(r.Findings, codes) }

func has(findings []Finding, codes []answer.Code) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return slices.Contains(codes, f.Code) })
}

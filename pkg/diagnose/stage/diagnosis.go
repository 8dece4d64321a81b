package stage

import (
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Diagnosis is what all stages together found about a gang.
type Diagnosis struct {
	Gang *gang.Gang
	// Of is the job that was diagnosed, where the gang is that of several jobs together; nil otherwise.
	Of *gang.Job
	// Request is the placement that the members without a node need.
	Request view.PlacementRequest
	// Verdict, Who and Never follow from the primary finding, or from the absence of one.
	Verdict answer.Verdict
	Who     answer.Who
	Never   bool
	// Primary is the earliest finding that definitely blocks; nil if the gang runs or is done.
	Primary *Finding
	// Others are the remaining findings in order.
	Others []Finding
	// Behind is the diagnosis of the members that a gang which runs does without, whose findings are among Others; nil where nothing keeps them.
	Behind *Diagnosis
	// Helper is the diagnosis of pods that are no members, and that the gang waits for: its findings are about a part of the job. It is nil where there are none, or nothing keeps them.
	Helper *Diagnosis
	Stages []answer.StageState
	// Placement is what the search found on the cluster as it is, Ideal on the cluster at its best. Each is nil where it was not
	// searched.
	Placement, Ideal *placement.Result
	// Coming is the cluster with the nodes that are on their way, where the findings count these; nil where they do not.
	Coming *view.View
	// Cut reports that the search for causes ended for lack of time.
	Cut bool
	// Matrices are the constraints of every node, by role of the request.
	Matrices map[string]placement.Matrix
	// Ahead are gangs that come first.
	Ahead []Ahead
	// Unmodelled is what the gang specifies and no stage evaluates.
	Unmodelled []string
	// Notes are remarks that block nothing.
	Notes []string
	// Missing are rights that stages would have needed, those that may have changed the verdict first.
	Missing []answer.Right
	// Stalled reports whether another job idles, and does not end: see [Context.Stalled].
	Stalled func(*view.Consumer) bool
}

// Starts reports whether the gang starts without help and without waiting for something else to end.
func (d *Diagnosis) Starts() bool { return d.Verdict.Starts() }

// Findings are the primary finding and the others.
func (d *Diagnosis) Findings() []Finding {
	if d.Primary == nil {
		return d.Others
	}
	return append([]Finding{*d.Primary}, d.Others...)
}

package agreement

import (
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// Class is how gangctl's answer and the scheduler's outcome compare.
type Class string

// The classes.
const (
	// Agree: the same.
	Agree Class = "agree"
	// Missed: gangctl has a placement, which the scheduler accepts when it is shown it node by node, and did not find itself.
	Missed Class = "missed"
	// Unsure: gangctl reports that it does not know.
	Unsure Class = "unsure"
	// Wrong: gangctl is mistaken, or the scheduler is.
	Wrong Class = "wrong"
	// Suspect: gangctl has a placement and the scheduler none; which of the two is right is still to be found out.
	Suspect Class = "suspect"
)

// Moment is when gangctl was queried.
type Moment string

// The moments.
const (
	// Before the scheduler gets to see the gang: will it start?
	Before Moment = "before"
	// After everything has come to rest: does it run, and if not, why?
	After Moment = "after"
)

// Decision is one gang, compared once.
type Decision struct {
	Seed   uint64
	Gang   string
	Form   Form
	Hold   Hold
	Trap   bool
	Moment Moment

	Answer  *answer.Answer
	Outcome Outcome
	Class   Class
	// Why is the difference; empty where answer and outcome agree.
	Why string
	// Odd is set if both agree on whether the gang starts, and not on why it does not.
	Odd string
	// Target is the object that gangctl was queried about, as KIND/NAME.
	Target string
	// Snapshot is the file from which gangctl answers the same again; empty where both agree.
	Snapshot string
}

// Replay are the arguments with which gangctl answers the same again.
func (d Decision) Replay() []string {
	return []string{"why-pending", d.Target, "-n", d.Answer.Job.Namespace, "--from", d.Snapshot}
}

// Starts reports whether by this answer the gang starts by itself, now.
func Starts(a *answer.Answer) bool { return a.Verdict.Starts() }

// Judge compares an answer with the scheduler's final outcome for a gang with this minimum.
func Judge(a *answer.Answer, w Outcome, minimum int32) (Class, string) {
	started := w.Bound > 0 && int32(w.Bound) >= minimum
	switch {
	case w.Bound > 0 && !started:
		return Wrong, "the scheduler bound a part of the gang"
	case a.Verdict == answer.Uncertain:
		return Unsure, "gangctl found neither a placement nor a proof that there is none"
	case started && !Starts(a):
		return Wrong, "the scheduler placed it, gangctl reports that it cannot be placed"
	case !started && Starts(a):
		return Suspect, "gangctl has a placement, the scheduler has none"
	}
	return Agree, ""
}

// expected are the topics of which the scheduler's message about a waiting gang must have one, by the code of gangctl's reason.
// A code that is not here can be about anything.
var expected = map[answer.Code][]string{
	answer.SelectorNoMatch:    {"selector", "taint", "cordon"},
	answer.ResourceNotOffered: {"resource", "taint", "cordon", "selector"},
	answer.NodeNotReady:       {"taint", "cordon"},
	answer.TopologySpread:     {"spread"},
	answer.TopologyFragmented: {"affinity"},
	answer.VolumeZone:         {"volume"},
	answer.Fragmented:         {"resource"},
	answer.GPUUnhealthy:       {"resource"},
}

// incomplete are the codes for a gang that the scheduler cannot try.
var incomplete = []answer.Code{answer.BelowQuorum, answer.MinMemberTooHigh, answer.PodGroupMissing}

// Odd compares the reasons for a gang that does not start: what does not go together, or nothing. The scheduler stops at the first
// members that do not fit, so its message about a gang of different members may be about others than gangctl's reason.
func Odd(a *answer.Answer, w Outcome) string {
	if a.Primary == nil {
		return "the gang waits, and gangctl has no reason for it"
	}
	if a.Scheduler != nil && a.Scheduler.Agrees != nil && !*a.Scheduler.Agrees && !a.Scheduler.Stale {
		return "gangctl itself reports that the scheduler disagrees"
	}
	if slices.Contains(incomplete, a.Primary.Code) != (w.Waiting > 0) {
		return string(a.Primary.Code) + " is about members that are missing, or the scheduler's message is, and not both"
	}
	if w.plannedAsWhole() {
		return "" // the planner counts for the gang; its message does not name the rule that excludes a node
	}
	topics := w.Topics()
	want := expected[a.Primary.Code]
	if strings.HasPrefix(string(a.Primary.Code), "INSUFFICIENT_") {
		want = []string{"resource"}
	}
	oneKind := a.Nodes != nil && len(roles(a.Nodes.Rows)) == 1
	if oneKind && len(topics) > 0 && len(want) > 0 && !slices.ContainsFunc(want, func(t string) bool { return slices.Contains(topics, t) }) {
		return string(a.Primary.Code) + " is not what the scheduler reports: " + strings.Join(topics, ", ")
	}
	return ""
}

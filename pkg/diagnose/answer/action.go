package answer

import "time"

// Action is something that would make the gang start, or wait where waiting was useless. It is offered only after all stages were evaluated on a snapshot
// in which it was done.
type Action struct {
	// Number is what `gangctl why-pending NAME --apply` takes; 0 for what happens by itself.
	Number int        `json:"number,omitempty"`
	Kind   ActionKind `json:"kind"`
	// Change is what changes, by stable keys such as Worker.replicas.
	Change map[string]any `json:"change,omitempty"`
	// Text is the action as a sentence.
	Text string `json:"text"`
	// Cost describes what is lost; empty if nothing is.
	Cost string `json:"cost,omitempty"`
	// Devices is how many devices the gang has in all after an action with which it has fewer; 0 for all others.
	Devices int64 `json:"devices,omitempty"`
	// Verified is true if all stages passed. It is false where the gang specifies what none of them evaluates: see
	// [Confidence.Unmodelled]; and of a first step after which the gang waits, or something else is in its way: Text has what.
	Verified bool `json:"verified"`
	By       Who  `json:"by"`
	// Resize is the line of gangctl that does it as one operation; empty for what that cannot do.
	Resize string `json:"resize,omitempty"`
	// Command does it when it is pasted into a shell; one command a line. Where none can, How describes who has to do what.
	Command string   `json:"command,omitempty"`
	How     string   `json:"how,omitempty"`
	Nodes   []string `json:"nodes,omitempty"`
	// ETA is an estimate of when the gang would start at the earliest, only where every link of the chain has a declared limit
	// or enough runs before it; ETASource names them.
	ETA       *time.Time `json:"eta,omitempty"`
	ETASource string     `json:"etaSource,omitempty"`
	// Placement is where the members would go.
	Placement []Placed `json:"placement,omitempty"`
}

// LessCompute is the cost of actions with which the gang has fewer devices in all.
const LessCompute = "less compute"

// ActionKind is the stable name of a kind of action.
type ActionKind string

// The kinds of action.
const (
	Reshape  ActionKind = "reshape"  // the same devices on more, smaller members
	Fewer    ActionKind = "fewer"    // fewer members
	Trim     ActionKind = "trim"     // a smaller request
	Relax    ActionKind = "relax"    // one rule dropped or changed
	Wait     ActionKind = "wait"     // other jobs end
	Evict    ActionKind = "evict"    // another job or service is preempted, suspended, deleted or scaled down
	Move     ActionKind = "move"     // single pods make room and find it elsewhere
	Uncordon ActionKind = "uncordon" // nodes are opened
	Quota    ActionKind = "quota"    // a limit is raised
	AddNodes ActionKind = "addNodes" // nodes like an existing one are added
	Fix      ActionKind = "fix"      // something is repaired
)

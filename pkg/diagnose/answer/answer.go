// Package answer is the shape of the answer to "why is my gang pending?": values only, as JSON, YAML and text show them.
// The JSON form only ever grows.
package answer

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// APIVersion is that of the JSON form.
const APIVersion = "gangctl.why/v1"

// Answer is the answer for one gang.
type Answer struct {
	APIVersion string  `json:"apiVersion"`
	Job        Job     `json:"job"`
	Verdict    Verdict `json:"verdict"`
	// Who has to act.
	Who Who `json:"who"`
	// Never is true where a hard ceiling is exceeded.
	Never bool `json:"never"`
	// Exit is the exit code that goes with the verdict.
	Exit int `json:"exit"`
	// Headline is the sentence after the verdict on the first line of the text.
	Headline string `json:"headline"`
	// Primary is the earliest finding that definitely blocks; nil where nothing is to be explained.
	Primary *Finding `json:"primary"`
	// AlsoBlocking are the later ones, in the order of the stages.
	AlsoBlocking []Finding    `json:"alsoBlocking"`
	Stages       []StageState `json:"stages"`
	Gang         Gang         `json:"gang"`
	Nodes        *Nodes       `json:"nodes,omitempty"`
	Placement    []Placed     `json:"placement,omitempty"`
	// Ahead are the gangs that come first in a strictly ordered queue.
	Ahead   []Ahead  `json:"ahead,omitempty"`
	Unblock []Action `json:"unblock"`
	// Cut are the kinds of action for which there was no time to search to the end: there may be more of them, or better ones.
	Cut        []ActionKind `json:"cut,omitempty"`
	Holding    Holding      `json:"holding"`
	Scheduler  *Scheduler   `json:"scheduler,omitempty"`
	Confidence Confidence   `json:"confidence"`
	// Rights are what could not be seen, and what would grant it; nil where everything could.
	Rights   *Rights       `json:"rights,omitempty"`
	Notes    []string      `json:"notes,omitempty"`
	Snapshot SnapshotStamp `json:"snapshot"`
}

// Line is the answer on one line: the verdict and its sentence.
func (a *Answer) Line() string { return string(a.Verdict) + "  " + strings.TrimSpace(a.Headline) }

// Job names the job.
type Job struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	// Generation is that of the spec that the answer is about; 0 where the job has none.
	Generation int64      `json:"generation,omitempty"`
	Created    *time.Time `json:"created,omitempty"`
}

// Finding is one reason for which the gang does not run.
type Finding struct {
	Code    Code    `json:"code"`
	Stage   Stage   `json:"stage"`
	Verdict Verdict `json:"verdict"`
	Who     Who     `json:"who"`
	Never   bool    `json:"never,omitempty"`
	// Message is one sentence with numbers and names.
	Message string `json:"message"`
	// Details are further facts, a line each.
	Details []string `json:"details,omitempty"`
	// Facts are the same as values, for programs.
	Facts    map[string]any `json:"facts,omitempty"`
	Evidence []Evidence     `json:"evidence,omitempty"`
	Since    *time.Time     `json:"since,omitempty"`
	// Commands show more, or are the next step where nothing can be computed.
	Commands []string `json:"commands,omitempty"`
}

// Evidence is a field of an object that proves a finding.
type Evidence struct {
	// Ref is VERSION/KIND/NAME or VERSION/KIND/NAMESPACE/NAME.
	Ref  string `json:"ref"`
	Path string `json:"path,omitempty"`
	RV   string `json:"rv,omitempty"`
}

// Namespace is that of the object; empty where it has none. The kind is what begins with a capital.
func (e Evidence) Namespace() string {
	parts := strings.Split(e.Ref, "/")
	kind := slices.IndexFunc(parts, func(part string) bool { return part != "" && part[0] >= 'A' && part[0] <= 'Z' })
	if kind < 0 || len(parts) != kind+3 {
		return ""
	}
	return parts[kind+1]
}

// StageState is the outcome of one stage.
type StageState struct {
	Name  Stage  `json:"name"`
	State string `json:"state"`
	Note  string `json:"note,omitempty"`
}

// The states of a stage.
const (
	StateOK      = "ok"
	StateBlocked = "blocked"
	StateWaiting = "waiting"
	StateSkipped = "skipped"
	StateUnknown = "unknown"
)

// Gang is the gang as it was understood.
type Gang struct {
	Dialect   string `json:"dialect,omitempty"`
	Object    string `json:"object,omitempty"`
	MinMember int32  `json:"minMember"`
	Queue     string `json:"queue,omitempty"`
	Scheduler string `json:"scheduler,omitempty"`
	Roles     []Role `json:"roles"`
	// Ignored are gang objects of other dialects that the pods' scheduler does not read.
	Ignored []string `json:"ignored,omitempty"`
	// Replica is which of the job's gangs this is, from 0 on, and Replicas how many the job has; both are absent for a job of one gang.
	Replica  *int32 `json:"replica,omitempty"`
	Replicas int32  `json:"replicas,omitempty"`
}

// Role is one kind of member with its counts.
type Role struct {
	Name     string              `json:"name"`
	Replicas int32               `json:"replicas"`
	Created  int32               `json:"created"`
	Bound    int32               `json:"bound"`
	Running  int32               `json:"running"`
	Request  corev1.ResourceList `json:"request"`
}

// Nodes is why each node takes members or not. Its lists have all nodes, in a published answer [PublishedNodes] at most.
type Nodes struct {
	Total    int `json:"total"`
	Eligible int `json:"eligible"`
	// Excluded has for each constraint the nodes that it rejects, and those for which it is the only one.
	Excluded []Excluded `json:"excluded"`
	Slots    []Slot     `json:"slots"`
	// Rows hold every node, for -v and --node.
	Rows []NodeRow `json:"rows,omitempty"`
}

// PublishedNodes is how long lists of nodes, and of groups of them, are in a published answer: there is one for each gang that waits, and the
// API server takes 256 KiB.
const PublishedNodes = 20

// Excluded is one constraint and the nodes that it rejects.
type Excluded struct {
	Role        string   `json:"role"`
	Constraint  string   `json:"constraint"`
	Rejects     int      `json:"rejects"`
	OnlyBlocker int      `json:"onlyBlocker"`
	Nodes       []string `json:"nodes"`
}

// Slot is a group of nodes with the same room.
type Slot struct {
	Count int                 `json:"count"`
	Nodes []string            `json:"nodes"`
	Free  corev1.ResourceList `json:"free"`
	// Fits is how many members of each role one such node takes.
	Fits map[string]int64 `json:"fits"`
}

// NodeRow is one node for one role.
type NodeRow struct {
	Node       string      `json:"node"`
	Role       string      `json:"role"`
	Violations []Violation `json:"violations,omitempty"`
	// Undecided reports that it is not known whether the node takes a member: the search for the devices that it claims took too long.
	Undecided bool `json:"undecided,omitempty"`
	// Consumers name the jobs and services that use devices of the node.
	Consumers []string `json:"consumers,omitempty"`
}

// Violation is one constraint that rejects a pod on one node. The amounts are those of a resource.
type Violation struct {
	Constraint string `json:"constraint"`
	Detail     string `json:"detail,omitempty"`
	Requested  string `json:"requested,omitempty"`
	Available  string `json:"available,omitempty"`
	Total      string `json:"total,omitempty"`
	// Never is true if the whole node is too small.
	Never bool `json:"never,omitempty"`
}

// Placed gives one member its node.
type Placed struct {
	Member string `json:"member"`
	Node   string `json:"node"`
}

// Ahead is a gang that comes first.
type Ahead struct {
	Job    string              `json:"job"`
	Reason string              `json:"reason"`
	Needs  corev1.ResourceList `json:"needs,omitempty"`
}

// Holding is the resources that idle because of this gang.
type Holding struct {
	GPUs  int64      `json:"gpus"`
	Since *time.Time `json:"since,omitempty"`
}

// Scheduler is what is known of the gang's scheduler, and what it reported last.
type Scheduler struct {
	Name        string     `json:"name"`
	LastSeen    *time.Time `json:"lastSeen,omitempty"`
	LastAttempt *time.Time `json:"lastAttempt,omitempty"`
	Message     string     `json:"message,omitempty"`
	MessageAt   *time.Time `json:"messageAt,omitempty"`
	// Agrees is whether its message matches the verdict; nil where there is nothing that can be compared.
	Agrees *bool `json:"agrees,omitempty"`
	// Stale is true if the cluster has changed since in a way that matters.
	Stale bool `json:"stale,omitempty"`
}

// Confidence is how far the answer can be trusted.
type Confidence struct {
	Level              string   `json:"level"`
	Unmodelled         []string `json:"unmodelled"`
	MissingPermissions []string `json:"missingPermissions"`
	// Cut reports that a search ended for lack of time: the answer may name other causes when it is computed again.
	Cut bool `json:"cut,omitempty"`
}

// The levels of confidence, the surest first.
const (
	Proven    = "proven"    // a field of an object shows it
	Exact     = "exact"     // computed, the search was complete, nothing is unmodelled
	Heuristic = "heuristic" // computed, with a gap
	Inferred  = "inferred"  // from a scheduler's message alone
	Unknown   = "unknown"
)

// SnapshotStamp identifies the state that the answer is about.
type SnapshotStamp struct {
	RV string     `json:"rv,omitempty"`
	At *time.Time `json:"at,omitempty"`
}

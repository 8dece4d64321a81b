package reasons

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang/unplaced"
)

// Reason is why a gang is not placed at this moment.
type Reason struct {
	// Finding has the codes and terms of why-pending. Its Message is complete and
	// free of times and counters that change while nothing else does: a new message
	// is a write.
	Finding answer.Finding
	// Required is how many members must have a node, those that have one included,
	// and Fit how many of them do or could at once.
	Required, Fit int32
	// AboveMin means that the gang has its minimum, and Required is one more.
	AboveMin bool
	// Cut means that the search did not end in its time: more than Fit may fit.
	Cut bool
	// Nodes is how many nodes were examined.
	Nodes int
	// Shortages are the resources of which there is too little.
	Shortages []Shortage
	// Blockers are the gangs and pods that claims and reservations in the way are for.
	Blockers []Blocker
	// Reserved are the nodes on which resources are reserved for the gang itself.
	Reserved []string
	// Retry describes what has the gang tried again.
	Retry string
	// NextAttempt is when the gang is tried again whatever happens; zero where only a
	// change in the cluster has it tried. It is for queries: a new one is not
	// reported.
	NextAttempt time.Time
}

// Clone returns a copy of which everything may be changed.
func (r *Reason) Clone() *Reason {
	c := *r
	c.Finding.Details, c.Finding.Evidence, c.Finding.Commands = slices.Clone(r.Finding.Details), slices.Clone(r.Finding.Evidence), slices.Clone(r.Finding.Commands)
	c.Finding.Facts = maps.Clone(r.Finding.Facts)
	c.Shortages, c.Blockers, c.Reserved = slices.Clone(r.Shortages), slices.Clone(r.Blockers), slices.Clone(r.Reserved)
	return &c
}

// Blocker is the gang or pod in the way of a gang.
type Blocker struct {
	// Name is NAMESPACE/NAME, for those who may see all gangs.
	Name string
	// Text is the message to the users of the gang that waits.
	Text string
}

// Shortage is one resource in Kubernetes' units.
type Shortage struct {
	Resource  string `json:"resource"`
	Requested string `json:"requested"`
	Available string `json:"available"`
	Total     string `json:"total"`
}

// textLimit bounds the text of a reason, in bytes. The API takes 1024 in an event.
const textLimit = 1000

// Sentence is the part of the reason in the condition of every member.
func (r *Reason) Sentence() string {
	return r.sentence().String()
}

func (r *Reason) sentence() unplaced.Sentence {
	return unplaced.Sentence{Required: r.Required, Fit: r.Fit, AboveMin: r.AboveMin, Cut: r.Cut, Why: r.Finding.Message}
}

// Unscheduled is the message of the condition of a member that was created after
// the gang was tried, in the form that the engine writes for the others.
func (r *Reason) Unscheduled() string {
	if r.Required == 0 { // only the engine's message is known
		return r.Finding.Message
	}
	return fmt.Sprintf("0/%d nodes are available: %s.", r.Nodes, r.Sentence())
}

// Text is the message on the gang: the code, how many members fit, why, the
// shortages, the blockers, the reserved nodes, and when the gang is tried again.
func (r *Reason) Text() string {
	of := r.sentence()
	of.AboveMin = false // this is about members, and the gang has its minimum
	parts := []string{fmt.Sprintf("%s: %s", r.Finding.Code, of.OfGang())}
	if r.Required == 0 { // only the engine's message is known
		parts[0] = fmt.Sprintf("%s: %s", r.Finding.Code, r.Finding.Message)
	}
	for _, s := range r.Shortages {
		parts = append(parts, fmt.Sprintf("%s: %s requested, %s available, %s in total", s.Resource, s.Requested, s.Available, s.Total))
	}
	if len(r.Blockers) > 0 {
		var texts []string
		for _, b := range r.Blockers {
			texts = append(texts, b.Text)
		}
		parts = append(parts, "blocked by "+strings.Join(texts, ", "))
	}
	if len(r.Reserved) > 0 {
		parts = append(parts, "room is kept for it on "+strings.Join(r.Reserved, ", "))
	}
	if r.Retry != "" {
		parts = append(parts, "tried again "+r.Retry)
	}
	return phrase.Shorten(strings.Join(parts, "; "), textLimit)
}

// equalText reports whether two reasons read the same.
func (r *Reason) equalText(other *Reason) bool {
	return r.Finding.Code == other.Finding.Code && r.Nodes == other.Nodes && r.Sentence() == other.Sentence() && r.Text() == other.Text()
}

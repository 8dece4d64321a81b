package reasons

import (
	"fmt"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
)

// Note is why a gang has no place at this moment.
type Note struct {
	// Finding is in the words and codes of why-pending. Its Message is whole
	// and free of times and counters that change while nothing else does: a
	// new message is a write.
	Finding answer.Finding
	// Need is how many members must have a place, those that have one included,
	// and Fit how many of them do or could at once.
	Need, Fit int32
	// Surplus says that the gang has all that it needs, and Need is one more.
	Surplus bool
	// Among is how many nodes were looked at.
	Among int
	// Shortages are the resources of which there is too little.
	Shortages []Shortage
	// Blockers name the gangs, holds and reservations in the way, as NAMESPACE/NAME.
	Blockers []string
	// Kept are the nodes on which room is kept for the gang itself.
	Kept []string
	// Retry says what has the gang tried again.
	Retry string
	// NextAttempt is when the gang is tried again whatever happens; zero where
	// only a change in the cluster brings that about. It is for those who ask:
	// nobody is told of a new one.
	NextAttempt time.Time
}

// Shortage is one resource in Kubernetes' units.
type Shortage struct {
	Resource  string `json:"resource"`
	Requested string `json:"requested"`
	Available string `json:"available"`
	Total     string `json:"total"`
}

// textLimit bounds what is said of a gang, in bytes. The API takes 1024 in an event.
const textLimit = 1000

// Sentence is what every member says of its gang.
func (n *Note) Sentence() string {
	if n.Surplus {
		return fmt.Sprintf("its gang has the %d members that it needs, and there is no room for more: %s", n.Need-1, n.Finding.Message)
	}
	return fmt.Sprintf("%d of the %d members that its gang needs fit: %s", n.Fit, n.Need, n.Finding.Message)
}

// Unscheduled is what a member says that came after the gang was tried: as the
// engine words it for those that were there.
func (n *Note) Unscheduled() string {
	if n.Need == 0 { // only the engine's words are known
		return n.Finding.Message
	}
	return fmt.Sprintf("0/%d nodes are available: %s.", n.Among, n.Sentence())
}

// Text is what is said of the gang: the code, how many members fit, why, the
// numbers, who is in the way, what is kept for it, and when it is tried again.
func (n *Note) Text() string {
	parts := []string{fmt.Sprintf("%s: %d of the %d members that the gang needs fit: %s", n.Finding.Code, n.Fit, n.Need, n.Finding.Message)}
	if n.Need == 0 { // only the engine's words are known
		parts[0] = fmt.Sprintf("%s: %s", n.Finding.Code, n.Finding.Message)
	}
	for _, s := range n.Shortages {
		parts = append(parts, fmt.Sprintf("%s: %s requested, %s available, %s in total", s.Resource, s.Requested, s.Available, s.Total))
	}
	if len(n.Blockers) > 0 {
		parts = append(parts, "blocked by "+strings.Join(n.Blockers, ", "))
	}
	if len(n.Kept) > 0 {
		parts = append(parts, "room is kept for it on "+strings.Join(n.Kept, ", "))
	}
	if n.Retry != "" {
		parts = append(parts, "tried again "+n.Retry)
	}
	return phrase.Shorten(strings.Join(parts, "; "), textLimit)
}

// says tells whether two notes are the same to somebody who is told.
func (n *Note) says(other *Note) bool {
	return n.Finding.Code == other.Finding.Code && n.Among == other.Among && n.Sentence() == other.Sentence() && n.Text() == other.Text()
}

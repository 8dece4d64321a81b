// Package unplaced is the sentence by which the gang scheduler reports to the members of a gang why they have no node: how it is written, and how it is
// recognised. All who read it in the conditions of pods read it here.
package unplaced

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Sentence is why a gang has no place.
type Sentence struct {
	// Required is how many members must have a node, and Fit how many of them do or could at once. Where the gang has its minimum, AboveMin, it has
	// Required - 1 members with a node, and lacks room for more.
	Required, Fit int32
	AboveMin      bool
	// Cut reports that the search did not end in its time: more may fit.
	Cut bool
	// Why is the reason.
	Why string
}

// String is the sentence for a member.
func (s Sentence) String() string { return s.of("its gang") }

// OfGang is the sentence for the gang itself.
func (s Sentence) OfGang() string { return s.of("the gang") }

func (s Sentence) of(gang string) string {
	switch {
	case s.AboveMin && s.Cut:
		return fmt.Sprintf("%s has its minimum, with %d members placed, and the search for room for more was cut off: %s", gang, s.Required-1, s.Why)
	case s.AboveMin:
		return fmt.Sprintf("%s has its minimum, with %d members placed, and there is no room for more: %s", gang, s.Required-1, s.Why)
	case s.Cut && s.Fit > 0:
		return fmt.Sprintf("the search for room for the %d members that %s needs was cut off, with room for %d so far: %s", s.Required, gang, s.Fit, s.Why)
	case s.Cut:
		return fmt.Sprintf("the search for room for the %d members that %s needs was cut off: %s", s.Required, gang, s.Why)
	}
	return fmt.Sprintf("%d of the %d members that %s needs fit: %s", s.Fit, s.Required, gang, s.Why)
}

// forms match the sentence for a member.
var forms = regexp.MustCompile(`(?s)^(?:` +
	`(?P<fit>\d+) of the (?P<required>\d+) members that its gang needs fit` +
	`|the search for room for the (?P<searched>\d+) members that its gang needs was cut off(?:, with room for (?P<found>\d+) so far)?` +
	`|its gang has its minimum, with (?P<placed>\d+) members placed, and (?:there is no room for more|(?P<cut>the search for room for more was cut off))` +
	`): (?P<why>.*)$`)

// Parse reads the sentence for a member; ok is false for any other text, and for numbers that no gang has.
func Parse(text string) (s Sentence, ok bool) {
	m := forms.FindStringSubmatch(text)
	if m == nil {
		return Sentence{}, false
	}
	number := func(name string) int32 {
		n, err := strconv.ParseInt(m[forms.SubexpIndex(name)], 10, 32)
		if err != nil {
			return 0
		}
		return int32(n)
	}
	group := func(name string) bool { return m[forms.SubexpIndex(name)] != "" }
	s = Sentence{Required: number("required"), Fit: number("fit"), Why: m[forms.SubexpIndex("why")]}
	switch {
	case group("searched"):
		s.Required, s.Fit, s.Cut = number("searched"), number("found"), true
	case group("placed"):
		s.Fit = number("placed")
		s.Required, s.AboveMin, s.Cut = s.Fit+1, true, group("cut")
	}
	return s, s.String() == text
}

// Brief is the sentence for a member, or the message of another scheduler that counts nodes, with the reason first, as what is before it is much the same for all
// gangs; any other text stays as it is.
func Brief(text string) string {
	before, why := strings.TrimSuffix(counted.FindString(text), ": "), ""
	if s, ok := Parse(text); ok {
		before, why = strings.TrimSuffix(text, ": "+s.Why), s.Why
	} else if before != "" {
		why = strings.TrimSuffix(text[len(before)+len(": "):], ".")
	}
	if why == "" {
		return text
	}
	return fmt.Sprintf("%s (%s)", why, before)
}

// counted matches what the framework that the scheduler is built on puts before the sentence, as before every message of kube-scheduler: a count of nodes, which
// means nothing here.
var counted = regexp.MustCompile(`^\d+/\d+ nodes are available: `)

// FromCondition reads the sentence from the condition of a member. Text is the sentence as it stands there; ok is false for the messages of other
// schedulers.
func FromCondition(message string) (s Sentence, text string, ok bool) {
	prefix := counted.FindString(message)
	if prefix == "" {
		return Sentence{}, "", false
	}
	text = strings.TrimSuffix(message[len(prefix):], ".")
	s, ok = Parse(text)
	return s, text, ok
}

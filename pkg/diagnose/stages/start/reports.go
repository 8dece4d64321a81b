package start

import (
	"slices"
	"strings"
)

// reports are phrases, in lower case, of which a message has one. They cost nothing at the start of a program, as a regular expression does.
type reports []string

// MatchString reports whether a message has one of the phrases, in whatever case.
func (r reports) MatchString(message string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc(r, func(phrase string) bool { return strings.Contains(message, phrase) })
}

package phrase

import "strings"

// A taint is tolerated only if whoever has it there agrees: of one taint, and of several.
const (
	IfOwnerAgrees = ", if its owner agrees"
	IfOwnersAgree = ", if their owners agree"
)

// Unasked is a text without the condition that owners agree.
func Unasked(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, IfOwnerAgrees, ""), IfOwnersAgree, "")
}

package render

import "strings"

// literal protects a word from the kubelet, which replaces $(NAME) and $$ in the command and the environment of a
// container: a "$" that starts either is doubled, and the program sees exactly the bytes that were typed.
func literal(s string) string {
	if !strings.Contains(s, "$$") && !strings.Contains(s, "$(") {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(s[i])
		if s[i] == '$' && i+1 < len(s) && (s[i+1] == '$' || s[i+1] == '(') {
			b.WriteByte('$')
		}
	}
	return b.String()
}

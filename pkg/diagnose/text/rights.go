package text

import (
	"fmt"
	"strings"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// rights writes what could not be seen, what the answer loses by it, and what would grant it: that which may have changed the
// answer, or all with Verbose.
func (w *writer) rights() {
	r := w.a.Rights
	if r == nil {
		return
	}
	var reported []answer.Right
	rest := 0
	for _, m := range r.Missing {
		switch {
		case m.Decisive || w.o.Verbose:
			reported = append(reported, m)
		case m.Stage != "":
			reported = append(reported, m) // it was read, though nothing depends on it
		default:
			rest++
		}
	}
	grant := r.Grant
	if w.o.Verbose {
		grant = r.GrantAll
	}
	if len(reported) == 0 {
		return
	}
	w.line("")
	w.line("Not seen")
	for _, m := range reported {
		where := m.Where()
		if where != "" {
			where = " " + where
		}
		w.foldUnder("  ", "    ", fmt.Sprintf("%s%s: you may not %s; %s", m.Name(), where, m.Verb, m.Lost))
	}
	if rest > 0 {
		w.fold("  ", fmt.Sprintf("and %d more that this answer does not depend on, with -v", rest))
	}
	w.grant(r.User, grant)
}

// grant prints YAML as a command that can be pasted as it is.
func (w *writer) grant(user, yaml string) {
	if yaml == "" {
		return
	}
	whom := "you"
	if user != "" {
		whom = user
	}
	w.line("")
	w.fold("", "An administrator can grant "+whom+" what is missing:")
	w.line("%s", w.complete("kubectl apply -f - <<'EOF'", answer.Admin))
	for line := range strings.SplitSeq(strings.TrimSuffix(yaml, "\n"), "\n") {
		w.line("%s", line)
	}
	w.line("EOF")
}

package answer

import (
	"fmt"
	"strings"
)

//go:generate go run ./generate ../../../docs/why-pending/codes.md

// Reference is the reference of codes in Markdown: docs/why-pending/codes.md.
func Reference() string {
	var b strings.Builder
	b.WriteString("<!-- Made by `make generate` from pkg/diagnose/answer/table.go: change that. -->\n\n# Reasons\n\n" +
		"One entry a code, in the order of the stages: verdict, who acts and the exit code; meaning; evidence; what to do.\n")
	var stage Stage
	for _, e := range entries {
		if e.Stages[0] != stage {
			stage = e.Stages[0]
			fmt.Fprintf(&b, "\n## Stage %s\n", stage)
		}
		fmt.Fprintf(&b, "\n### %s\n\n*%s.* %s\n\n", e.Code, e.outcomes(), e.Meaning)
		if e.Evidence != "" {
			fmt.Fprintf(&b, "- Evidence: %s\n", e.Evidence)
		}
		fmt.Fprintf(&b, "- What to do: %s\n", e.Remedy)
	}
	return b.String()
}

// outcomes reads like: WAITING (exit 3); BLOCKED, administrator (exit 5), if the check has rejected the job.
func (e Entry) outcomes() string {
	var parts []string
	for _, o := range e.Outcomes {
		text := string(o.Verdict)
		switch {
		case o.Never:
			text += ", never"
		case o.Who == User:
			text += ", you"
		case o.Who == Admin:
			text += ", administrator"
		}
		text += fmt.Sprintf(" (exit %d)", o.Exit())
		if o.When != "" {
			text += ", if " + o.When
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

package check

import (
	"fmt"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/wrap"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/setup/check"
)

// statusWidth is that of the longest status, and gap the space after it.
const (
	statusWidth = len(check.Unknown)
	gap         = 2
)

// Text is the report as a table, a heading for each category. What grants a right follows at the end, where it can be pasted as a
// whole. Its commands are completed.
func Text(r *check.Report, io *iostreams.IOStreams, style func(iostreams.Style, string) string) string {
	var b strings.Builder
	var fixes []string
	last := check.Category("")
	for _, o := range r.Checks {
		if o.Category != last {
			if last != "" {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "%s\n", strings.ToUpper(string(o.Category)))
			last = o.Category
		}
		outcome(&b, o, io, style)
		for _, f := range o.Findings {
			if f.Fix != "" {
				fixes = append(fixes, f.Fix)
			}
		}
	}
	fmt.Fprintf(&b, "\n%s\n", summary(r))
	apply := io.AdminCommands("kubectl apply -f - <<'EOF'")
	if len(fixes) > 0 {
		fmt.Fprintf(&b, "\nWhat is missing is granted by:\n%s\n%sEOF\n", apply, strings.Join(fixes, "---\n"))
	}
	if r.Grant != "" {
		who := "you need"
		if r.User != "" {
			who = r.User + " needs"
		}
		fmt.Fprintf(&b, "\nTo check everything, %s:\n%s\n%sEOF\n", who, apply, r.Grant)
	}
	return b.String()
}

// outcome is a row: the status, and what was found. Several findings have a line each, with their status where it is another.
func outcome(b *strings.Builder, o check.Outcome, io *iostreams.IOStreams, style func(iostreams.Style, string) string) {
	indent := strings.Repeat(" ", statusWidth+gap)
	title := o.Title
	if len(o.Findings) == 1 {
		title += ": " + o.Findings[0].Message
	}
	first := string(o.Status) + indent[len(o.Status):]
	fold(b, wrap.Fill(first, indent, title, io.Width()), o.Status, style)
	for _, f := range o.Findings {
		if len(o.Findings) > 1 {
			item, status := indent+"- ", check.Status("")
			if f.Status != o.Status {
				item, status = item+string(f.Status)+": ", f.Status
			}
			fold(b, wrap.Fill(item, indent+"  ", f.Message, io.Width()), status, style)
		}
		if f.Hint != "" {
			fmt.Fprintf(b, "%s%s %s\n", indent, style(iostreams.Cyan, "hint:"), strings.ReplaceAll(io.Commands(f.Hint), "\n", "\n"+indent))
		}
	}
}

// fold writes a text that was broken at the width of the terminal. The status that it begins with, if it does with one, is styled.
func fold(b *strings.Builder, lines []string, status check.Status, style func(iostreams.Style, string) string) {
	if status != "" {
		lines[0] = strings.Replace(lines[0], string(status), style(color(status), string(status)), 1)
	}
	for _, line := range lines {
		fmt.Fprintln(b, line)
	}
}

// color is how a status looks; its name is there without it.
func color(s check.Status) iostreams.Style {
	switch s {
	case check.OK:
		return iostreams.Green
	case check.Warn:
		return iostreams.Yellow
	default:
		return iostreams.Red
	}
}

func summary(r *check.Report) string {
	s := r.Summary
	parts := []string{phrase.Count(s.OK+s.Warn+s.Fail+s.Unknown, "check"), fmt.Sprintf("%d ok", s.OK)}
	for _, part := range []struct {
		n    int
		name string
	}{{s.Warn, "with warnings"}, {s.Fail, "failed"}, {s.Unknown, "unknown"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.name))
		}
	}
	return parts[0] + ": " + strings.Join(parts[1:], ", ")
}

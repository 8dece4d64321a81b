package text

import (
	"strings"
	"unicode/utf8"

	"github.com/gangctl/gangctl/pkg/cli/wrap"
)

// first writes the verdict with its sentence.
func (w *writer) first() {
	verdict := string(w.a.Verdict)
	label := verdict + "  "
	lines := w.broken(label, strings.Repeat(" ", len(label)), w.a.Headline)
	if w.o.Style != nil {
		lines[0] = w.o.Style(w.a.Verdict, verdict) + strings.TrimPrefix(lines[0], verdict)
	}
	for _, line := range lines {
		w.line("%s", line)
	}
}

// fits reports whether a line needs no break.
func (w *writer) fits(line string) bool {
	return w.o.Width == 0 || utf8.RuneCountInString(line) <= w.o.Width
}

// fold writes a text behind a label, and below its beginning what does not fit.
func (w *writer) fold(label, text string) { w.foldUnder(label, strings.Repeat(" ", len(label)), text) }

// foldUnder is fold with another indent for what does not fit.
func (w *writer) foldUnder(label, indent, text string) {
	for _, line := range w.broken(label, indent, text) {
		w.line("%s", line)
	}
}

// broken breaks a text between words. A word that is too long for any line, such as a name, stays whole.
func (w *writer) broken(label, indent, text string) []string {
	return wrap.Fill(label, indent, text, w.o.Width)
}

// list writes parts under a label, as many on a line as fit.
func (w *writer) list(label string, parts []string) {
	for _, line := range wrap.Parts(label, strings.Repeat(" ", len(label)), " · ", parts, w.o.Width) {
		w.line("%s", line)
	}
}

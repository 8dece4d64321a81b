// Package wrap fits text to a width in columns. It breaks at blanks only: text without a blank that is longer than a line stays whole. A
// width of 0 is no limit and changes nothing.
package wrap

import (
	"regexp"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Prose fits paragraphs and tables. Lines that begin at the margin and follow each other are one paragraph. A line that is indented
// stays a line of its own, and what does not fit goes below its last column: what stands behind the last gap of two blanks or more.
func Prose(text string, width int) string {
	if width <= 0 {
		return text
	}
	var out []string
	var paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			out = append(out, Fill("", "", strings.Join(paragraph, " "), width)...)
			paragraph = nil
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.TrimSpace(line) == "":
			flush()
			out = append(out, "")
		case strings.HasPrefix(line, " "), strings.HasPrefix(line, "\t"):
			flush()
			out = append(out, column(line, width)...)
		default:
			if strings.HasPrefix(line, "- ") { // an item of a list
				flush()
			}
			paragraph = append(paragraph, strings.TrimSpace(line))
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// gaps are the spaces between the columns of a table.
var gaps = regexp.MustCompile(`\S {2,}`)

// column fits one indented line.
func column(line string, width int) []string {
	line = strings.TrimRight(line, " ")
	if Columns(line) <= width {
		return []string{line}
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	if found := gaps.FindAllStringIndex(line, -1); len(found) > 0 {
		at := found[len(found)-1][1]
		if head := line[:at]; Columns(head) <= width*2/3 {
			return Fill(head, strings.Repeat(" ", Columns(head)), line[at:], width)
		}
	}
	return Fill(indent, indent, line[len(indent):], width)
}

// Fill breaks a text at blanks: the first line begins with head, the others with indent. A text that fits keeps its blanks.
func Fill(head, indent, text string, width int) []string {
	if width <= 0 || Columns(head)+Columns(text) <= width {
		return []string{head + text}
	}
	return Parts(head, indent, " ", strings.Fields(text), width)
}

// Parts puts as many parts on a line as fit, with a separator between them: the first line begins with head, the others with
// indent.
func Parts(head, indent, separator string, parts []string, width int) []string {
	var lines []string
	at := head
	for i, part := range parts {
		switch next := at + separator + part; {
		case i == 0:
			at += part
		case width <= 0 || Columns(next) <= width:
			at = next
		default:
			lines = append(lines, at)
			at = indent + part
		}
	}
	return append(lines, at)
}

// Cut shortens a line to a width; what is cut off becomes an ellipsis.
func Cut(line string, width int) string {
	if width <= 0 || Columns(line) <= width {
		return line
	}
	return terminal().Truncate(line, width, "…")
}

// terminal is how terminals outside of East Asia measure: characters of which Unicode leaves the width open, such as the ellipsis, take one
// column, whatever the environment is.
func terminal() *runewidth.Condition { return &runewidth.Condition{StrictEmojiNeutral: true} }

// Columns is how many columns of a terminal a text takes: East Asian characters take two, and combining characters none.
func Columns(s string) int { return terminal().StringWidth(s) }

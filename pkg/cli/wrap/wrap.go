// Package wrap fits text to a width in columns. It breaks at blanks only: a word that is longer than a line stays whole. A width of
// 0 is no limit and changes nothing.
package wrap

import (
	"regexp"
	"strings"
	"unicode/utf8"
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

// gaps are what parts the columns of a table.
var gaps = regexp.MustCompile(`\S {2,}`)

// column fits one indented line.
func column(line string, width int) []string {
	line = strings.TrimRight(line, " ")
	if columns(line) <= width {
		return []string{line}
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	if found := gaps.FindAllStringIndex(line, -1); len(found) > 0 {
		at := found[len(found)-1][1]
		if head := line[:at]; columns(head) <= width*2/3 {
			return Fill(head, strings.Repeat(" ", columns(head)), line[at:], width)
		}
	}
	return Fill(indent, indent, line[len(indent):], width)
}

// Fill breaks a text at blanks: the first line begins with head, the others with indent. A text that fits keeps its blanks.
func Fill(head, indent, text string, width int) []string {
	if width <= 0 || columns(head)+columns(text) <= width {
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
		case width <= 0 || columns(next) <= width:
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
	if width <= 0 || columns(line) <= width {
		return line
	}
	return string([]rune(line)[:width-1]) + "…"
}

func columns(s string) int { return utf8.RuneCountInString(s) }

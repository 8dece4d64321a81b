package top

import (
	"strings"
	"unicode/utf8"
)

const (
	// gap is the space between columns.
	gap = 3
	// leastLast is what is left of the last column at least; columns that can be spared go first.
	leastLast = 20
)

// column is a column of a grid. Those with a higher spare are left out first where the screen is narrow; 0 stays.
type column struct {
	name  string
	spare int
}

// grid lays cells out in columns. Width is that of the screen, to which lines are cut; 0 is no limit.
func grid(columns []column, rows [][]string, width int, headers bool) []string {
	shown := make([]bool, len(columns))
	for i := range shown {
		shown[i] = true
	}
	widths := make([]int, len(columns))
	for i, c := range columns {
		if headers {
			widths[i] = utf8.RuneCountInString(c.name)
		}
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	for width > 0 && needs(widths, shown) > width {
		at := -1
		for i, c := range columns {
			if shown[i] && c.spare > 0 && (at < 0 || c.spare > columns[at].spare) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		shown[at] = false
	}
	var lines []string
	if headers {
		names := make([]string, len(columns))
		for i, c := range columns {
			names[i] = c.name
		}
		lines = append(lines, line(names, widths, shown, width))
	}
	for _, row := range rows {
		lines = append(lines, line(row, widths, shown, width))
	}
	return lines
}

// needs is how many characters a line needs at least.
func needs(widths []int, shown []bool) int {
	n, last := 0, len(widths)-1
	for i, w := range widths[:last] {
		if shown[i] {
			n += w + gap
		}
	}
	return n + min(widths[last], leastLast)
}

func line(cells []string, widths []int, shown []bool, width int) string {
	var b strings.Builder
	for i, cell := range cells {
		if !shown[i] {
			continue
		}
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+gap))
	}
	return cut(strings.TrimRight(b.String(), " "), width)
}

// cut shortens a line to a width; 0 is no limit.
func cut(s string, width int) string {
	if width <= 0 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}

// wrap breaks a text at blanks; what follows the first line is indented.
func wrap(text string, width int) []string {
	if width <= 0 {
		return []string{text}
	}
	var lines []string
	at := ""
	for word := range strings.SplitSeq(text, " ") {
		switch {
		case at == "":
			at = word
		case utf8.RuneCountInString(at)+1+utf8.RuneCountInString(word) <= width:
			at += " " + word
		default:
			lines = append(lines, cut(at, width))
			at = "  " + word
		}
	}
	return append(lines, cut(at, width))
}

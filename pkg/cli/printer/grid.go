package printer

import (
	"strings"
	"unicode/utf8"

	"github.com/gangctl/gangctl/pkg/cli/wrap"
)

// Grid lays rows out under columns for a screen of a width: columns that can be spared are left out where it is narrow, and lines
// are cut to it; 0 is no limit. Unlike a table, it returns lines, and shows headers as they are written.
func Grid(columns []Column, rows [][]string, width int, headers bool) []string {
	shown := make([]bool, len(columns))
	for i := range shown {
		shown[i] = true
	}
	widths := make([]int, len(columns))
	for i, c := range columns {
		if headers {
			widths[i] = utf8.RuneCountInString(c.Name)
		}
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	spare(columns, widths, shown, width)
	var lines []string
	if headers {
		names := make([]string, len(columns))
		for i, c := range columns {
			names[i] = c.Name
		}
		lines = append(lines, line(names, widths, shown, width))
	}
	for _, row := range rows {
		lines = append(lines, line(row, widths, shown, width))
	}
	return lines
}

// spare leaves out columns until a line has room in a width, or none can be spared; 0 is no limit.
func spare(columns []Column, widths []int, shown []bool, width int) {
	for width > 0 && needs(widths, shown) > width {
		at := -1
		for i, c := range columns {
			if shown[i] && c.Spare > 0 && (at < 0 || c.Spare > columns[at].Spare) {
				at = i
			}
		}
		if at < 0 {
			return
		}
		shown[at] = false
	}
}

// needs is how many characters a line needs at least.
func needs(widths []int, shown []bool) int {
	n, last := 0, len(widths)-1
	for i, w := range widths[:last] {
		if shown[i] {
			n += w + columnGap
		}
	}
	return n + min(widths[last], minLast)
}

func line(cells []string, widths []int, shown []bool, width int) string {
	var b strings.Builder
	for i, cell := range cells {
		if !shown[i] {
			continue
		}
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+columnGap))
	}
	return wrap.Cut(strings.TrimRight(b.String(), " "), width)
}

// Package suggest finds the known names that were probably meant by one that is not known.
package suggest

import (
	"slices"
	"strings"
)

// Nearest returns the name that takes the fewest edits to make from the one typed, or "" if none is close enough to have been
// meant.
func Nearest(typed string, names []string) string {
	best, distance := "", mostEdits(typed)+1
	for _, name := range slices.Sorted(slices.Values(names)) {
		if d := edits(typed, name); d < distance && name != typed {
			best, distance = name, d
		}
	}
	return best
}

// NearestOrOnly is Nearest, or the only name that there is.
func NearestOrOnly(typed string, names []string) string {
	if nearest := Nearest(typed, names); nearest != "" || len(names) != 1 {
		return nearest
	}
	return names[0]
}

// OneEdit reports whether one edit makes a name from the one typed.
func OneEdit(typed, name string) bool { return edits(typed, name) == 1 }

// mostEdits is how many edits a slip takes at most. Of a name of one or two letters an edit makes another name.
func mostEdits(typed string) int {
	switch n := len(typed); {
	case n < 3:
		return 0
	case n == 3:
		return 1
	default:
		return max(2, n/3)
	}
}

// maxSimilar is how many names [Similar] returns at most: a hint is one line.
const maxSimilar = 3

// Similar returns up to three names that may have been meant by the one typed: the nearest, then those that contain it, are contained
// in it or start alike, sorted. The typed name itself is not among them.
func Similar(typed string, names []string) []string {
	var similar []string
	nearest := Nearest(typed, names)
	if nearest != "" {
		similar = append(similar, nearest)
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		start := min(len(typed), len(name), 3)
		alike := strings.Contains(name, typed) || strings.Contains(typed, name) || strings.HasPrefix(name, typed[:start])
		if alike && name != typed && name != nearest {
			similar = append(similar, name)
		}
	}
	return similar[:min(len(similar), maxSimilar)]
}

// edits is the optimal string alignment distance in bytes: insertions, deletions, substitutions, swaps of neighbours. One digit
// for another counts twice: v1 and v2 are two things, while h1oo is h100.
func edits(a, b string) int {
	two, one, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		two, one, row = one, row, two
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			switch {
			case a[i] == b[j]:
				cost = 0
			case digit(a[i]) && digit(b[j]):
				cost = 2
			}
			row[j+1] = min(one[j+1]+1, row[j]+1, one[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], two[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

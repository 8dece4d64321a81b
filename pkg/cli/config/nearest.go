package config

// nearest is the word that takes the fewest edits to make from name, or "" if all are too far to have been meant.
func nearest(name string, words []string) string {
	best, distance := "", max(2, len(name)/3)+1
	for _, word := range words {
		if d := edits(name, word); d < distance {
			best, distance = word, d
		}
	}
	return best
}

// edits is the Levenshtein distance in bytes; flag names are ASCII.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

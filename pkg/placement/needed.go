package placement

import "slices"

// Needed leaves out of a set that is enough, one after the other, what it is enough without. The set stays as it is.
func Needed[T any](set []T, enough func([]T) bool) []T {
	for i := 0; i < len(set); {
		if rest := slices.Concat(set[:i], set[i+1:]); enough(rest) {
			set = rest
			continue
		}
		i++
	}
	return set
}

package diagnose

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// KindWords are the words that a question may name a kind with.
func KindWords() []string {
	words := []string{"job", "pod"}
	for _, r := range kind.Readers() {
		words = append(words, r.Words[0])
	}
	return words
}

// KnownKind reports whether a word names a kind, in any of its forms.
func KnownKind(word string) bool {
	if slices.Contains([]string{"job", "jobs", "pod", "pods", "po"}, word) {
		return true
	}
	_, ok := kind.ByWord(word)
	return ok
}

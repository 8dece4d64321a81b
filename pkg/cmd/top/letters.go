package top

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/wrap"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

// The cells of devices that no pod uses, and of those whose consumer has no letter any more.
const (
	cellFree      = '.'
	cellUnusable  = '#'
	cellUnhealthy = '!'
	cellOther     = '*'
)

// alphabet has the letters in the order in which they are given.
const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// mostCells is how many cells a node gets for one kind: some plugins count megabytes.
const mostCells = 64

// letters are those of consumers, by their name.
type letters map[string]rune

// assign gives letters to the consumers of a report. Who has one keeps it, so that they stand still in a view that is redrawn;
// the others get those that are free, who holds the most first.
func (l letters) assign(r usage.Nodes) letters {
	held := map[string]int64{}
	for _, n := range r.Nodes {
		for _, d := range n.Devices {
			for _, s := range d.Shares {
				held[s.Consumer] += s.Amount
			}
		}
	}
	given, taken := letters{}, map[rune]bool{}
	for consumer := range held {
		if letter, ok := l[consumer]; ok {
			given[consumer], taken[letter] = letter, true
		}
	}
	order := slices.SortedFunc(maps.Keys(held), func(a, b string) int { return cmp.Or(cmp.Compare(held[b], held[a]), cmp.Compare(a, b)) })
	left := strings.Map(func(c rune) rune {
		if taken[c] {
			return -1
		}
		return c
	}, alphabet)
	for _, consumer := range order {
		if _, known := given[consumer]; known || left == "" {
			continue
		}
		given[consumer] = rune(left[0])
		left = left[1:]
	}
	return given
}

// cells has one character for each device of a node: the letter of who uses it, or what is the matter with it.
func (l letters) cells(n usage.Node) string {
	var kinds []string
	for _, d := range n.Devices {
		var b strings.Builder
		put := func(c rune, times int64) {
			b.WriteString(strings.Repeat(string(c), int(max(0, min(times, mostCells)))))
		}
		for _, s := range d.Shares {
			letter, ok := l[s.Consumer]
			if !ok {
				letter = cellOther
			}
			put(letter, s.Amount)
		}
		put(cellFree, d.Free)
		var unhealthy int64
		for _, u := range d.Unusable {
			if u.Reason == usage.ReasonUnhealthy {
				unhealthy = u.Amount
			}
		}
		put(cellUnusable, d.Idle-d.Free-unhealthy)
		put(cellUnhealthy, unhealthy)
		kinds = append(kinds, wrap.Cut(b.String(), mostCells))
	}
	if len(kinds) == 0 {
		return none
	}
	return strings.Join(kinds, " ")
}

// legend names the consumers of the letters.
func (l letters) legend(r usage.Nodes, width int) []string {
	byLetter := map[rune]string{}
	for consumer, letter := range l {
		byLetter[letter] = consumer
	}
	var parts []string
	for _, letter := range alphabet {
		if consumer := byLetter[letter]; consumer != "" {
			parts = append(parts, string(letter)+"="+strings.ReplaceAll(consumer, " ", ":"))
		}
	}
	if others := l.others(r); others {
		parts = append(parts, string(cellOther)+"=others")
	}
	parts = append(parts, string(cellFree)+"=free", string(cellUnusable)+"=idle-but-unusable", string(cellUnhealthy)+"=unhealthy")
	return fold(strings.Join(parts, " "), width)
}

// others reports whether a consumer has no letter.
func (l letters) others(r usage.Nodes) bool {
	for _, n := range r.Nodes {
		for _, d := range n.Devices {
			for _, s := range d.Shares {
				if _, ok := l[s.Consumer]; !ok {
					return true
				}
			}
		}
	}
	return false
}

package transcript

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// rule makes what differs from one run to the next the same; the result is padded to the width of what it replaces where more
// follows, so that columns stay in line.
type rule struct {
	match *regexp.Regexp
	with  string
}

func rules() []rule {
	return []rule{
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "2026-01-02T15:04:05Z"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`), "2026-01-02 15:04:05Z"},
		{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "15:04:05"},
		{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:6443"},
		{regexp.MustCompile(`\b\d+\.\d+s\b`), "7.5s"},
		{regexp.MustCompile(`\b\d+m\d+s\b`), "4m30s"},
		{regexp.MustCompile(`\b\d{1,2}s\b`), "5s"},
		{regexp.MustCompile(`\b\d+ seconds\b`), "5 seconds"},
		{regexp.MustCompile(`\brv \d+\b`), "rv 1234"},
		{regexp.MustCompile(`images/sec: \d+\.\d`), "images/sec: 215.0"},
	}
}

// passing are lines of progress, of which there are more or fewer in each run.
var passing = regexp.MustCompile(`^\S+: (?:(?:Pending|Starting), \d+/\d+ scheduled, \d+/\d+ running|waiting for \d+ pods?)$`)

// Lasting are the lines that are printed in every run.
func Lasting(lines []string) []string {
	return slices.DeleteFunc(lines, passing.MatchString)
}

// Normal makes what a command prints the same in every run: times, ages, ports, and the paths in replaced, which are pairs of what is
// and what is shown.
func Normal(line string, replaced ...string) string {
	line = strings.NewReplacer(replaced...).Replace(line)
	for _, r := range rules() {
		line = r.match.ReplaceAllStringFunc(line, func(found string) string {
			return r.with + strings.Repeat(" ", max(0, utf8.RuneCountInString(found)-utf8.RuneCountInString(r.with)))
		})
	}
	return strings.TrimRight(line, " ")
}

var (
	nodes = regexp.MustCompile(`node-\d+|\bnew-\d+`)
	ages  = regexp.MustCompile(`\b(?:\d+m)?\d+s\b|\b\d+m\b`)
)

// Alike reports whether two outputs are the same; on which of several equal nodes something is does not matter, nor for how long.
func Alike(a, b []string) bool {
	plain := func(lines []string) string {
		return strings.Join(strings.Fields(ages.ReplaceAllString(nodes.ReplaceAllString(strings.Join(lines, "\n"), "node"), "5s")), " ")
	}
	return plain(a) == plain(b)
}

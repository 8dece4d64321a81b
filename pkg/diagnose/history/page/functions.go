package page

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/history"
)

// functions are those of the template. Ages are as of the moment of the report.
func functions(now time.Time) template.FuncMap {
	return template.FuncMap{
		"phase":    func(kind history.PhaseKind) string { return phaseNames[kind] },
		"symbol":   func(kind history.MarkKind) string { return symbols[kind] },
		"tone":     func(v answer.Verdict) string { return tone(string(v)) },
		"requests": requests,
		"join":     func(all []string) string { return strings.Join(all, " ") },
		"list":     listed,
		"stamp":    stamp,
		"iso":      func(t *time.Time) string { return t.UTC().Format(time.RFC3339) },
		"ago":      func(t *time.Time) string { return span(max(0, now.Sub(*t))) + " ago" },
		"day":      day,
		"at":       func(m history.Mark) *time.Time { return &m.At },
		"moment":   func(t time.Time) *time.Time { return &t },
		"between":  func(from, to time.Time) string { return span(to.Sub(from)) },
		"phases":   phaseText,
		"until": func(p history.Phase) time.Time {
			if p.To == nil {
				return now
			}
			return *p.To
		},
	}
}

// stamp is a moment of which perhaps nothing is known.
func stamp(t *time.Time) string {
	if t == nil {
		return "unknown"
	}
	return t.UTC().Format("01-02 15:04:05")
}

// maxListed is how many names a cell of a table has room for.
const maxListed = 3

// listed are names, and how many there are beyond the third.
func listed(all []string) string {
	if len(all) <= maxListed {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:maxListed], ", "), len(all)-maxListed)
}

func count[N int32 | int64](n N) string { return fmt.Sprint(n) }

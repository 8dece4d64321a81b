package page_test

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/golden"
	"github.com/gangctl/gangctl/internal/historytest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/history"
	"github.com/gangctl/gangctl/pkg/diagnose/history/page"
)

func write(t *testing.T, s *snapshot.Snapshot) string {
	t.Helper()
	q := diagnose.Query{Namespace: "team", Name: historytest.Job}
	a, err := diagnose.Explain(context.Background(), s, q, diagnose.Options{Clock: func() time.Time { return clustertest.Now }})
	if err != nil {
		t.Fatal(err)
	}
	w := view.New(s)
	job, err := w.Find(q)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := page.Write(&out, history.Build(w, job, a)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

var examples = map[string]func() *snapshot.Snapshot{
	"pending":   historytest.Pending,
	"restarted": func() *snapshot.Snapshot { return historytest.Restarted(6) },
	"large":     func() *snapshot.Snapshot { return historytest.Restarted(64) },
}

// The golden pages are those that people looked at.
func TestGolden(t *testing.T) {
	for name, example := range examples {
		t.Run(name, func(t *testing.T) {
			golden.Compare(t, filepath.Join("testdata", name+".html"), write(t, example()))
		})
	}
}

// elsewhere is what a browser would fetch.
var elsewhere = regexp.MustCompile(`(?i)(src|href|srcset|action)\s*=|@import|url\(|<script|<link|<iframe|<img|\son[a-z]+\s*=`)

// A page needs nothing from elsewhere, runs nothing, shows the contents of objects as text, and is well formed.
func TestSelfContained(t *testing.T) {
	for name, example := range examples {
		got := write(t, example())
		if found := elsewhere.FindString(got); found != "" {
			t.Errorf("%s: the page holds %q", name, found)
		}
		if strings.Contains(got, historytest.Secret) {
			t.Errorf("%s: the page holds a secret", name)
		}
		wellFormed(t, name, got)
	}
	if got := write(t, historytest.Pending()); !strings.Contains(got, "&lt;script&gt;") {
		t.Error("the message of an event is not on the page")
	}
}

// tag is the beginning or the end of an element: what is text has no angle brackets.
var tag = regexp.MustCompile(`<(/?)([a-z][a-z0-9]*)[^>]*>`)

// wellFormed reports elements that are closed by another one, or never.
func wellFormed(t *testing.T, name, text string) {
	t.Helper()
	var open []string
	for _, m := range tag.FindAllStringSubmatch(text, -1) {
		switch {
		case m[2] == "meta" || m[2] == "br":
		case m[1] == "":
			open = append(open, m[2])
		case len(open) == 0 || open[len(open)-1] != m[2]:
			t.Fatalf("%s: </%s> closes %v", name, m[2], open)
		default:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("%s: %v are not closed", name, open)
	}
}

// The same report is the same page, byte for byte.
func TestDeterministic(t *testing.T) {
	first := write(t, historytest.Restarted(6))
	for range 5 {
		if write(t, historytest.Restarted(6)) != first {
			t.Fatal("two pages of one report differ")
		}
	}
}

// Every member has a row in each picture, however many there are.
func TestRows(t *testing.T) {
	for _, n := range []int{6, 64, 300} {
		got := write(t, historytest.Restarted(n))
		// Two pictures, since the start is a small part of the hour, and the axis and the line of moments in each.
		if rows := strings.Count(got, `<div class="row">`); rows != 2*n {
			t.Errorf("%d members: %d rows", n, rows)
		}
		if folded := strings.Contains(got, "more members</summary>"); folded != (n > 128) {
			t.Errorf("%d members: folded is %v", n, folded)
		}
	}
}

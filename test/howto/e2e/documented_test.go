package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangctl/gangctl/test/howto"
)

// help is for authors who documented a line that does not run.
const help = `
It is typed as it stands, in a sandbox. If it is right, and needs something that is not there: add that to Fixtures in test/howto/fixture.go.
If it cannot be run in a sandbox: add it to Exceptions in test/howto/exception.go, with what is run instead and the reason.`

// step is a line that is typed, and everywhere it is documented.
type step struct {
	typed string
	at    []string
	howto.Line
}

// steps are the lines to type, each once: those that leave the cluster alone, those that change jobs, and those that install things.
func steps(t *testing.T) []*step {
	t.Helper()
	all, err := howto.Documented("../../..")
	must(t, err)
	byText := map[string]*step{}
	var found []*step
	for _, line := range all {
		if slices.Contains(howto.Played(), line.Page) {
			continue // the session is, in its order
		}
		typed, reason := howto.Typed(line.Text)
		if typed == "" {
			t.Logf("not run: %s: %s", line.Text, reason)
			continue
		}
		s := byText[typed]
		if s == nil {
			s = &step{typed: typed, Line: line}
			byText[typed] = s
			found = append(found, s)
		}
		s.at = append(s.at, line.Place())
	}
	slices.SortStableFunc(found, func(a, b *step) int { return rank(a.typed) - rank(b.typed) })
	return found
}

// installs are lines that change what is installed, or the sandbox.
var installs = regexp.MustCompile(`gangctl (?:install|upgrade|uninstall)|gangctl-sandbox`)

func rank(line string) int {
	if strings.Contains(line, "gangctl uninstall") { // all jobs have to go before
		return 2
	}
	if installs.MatchString(line) {
		return 1
	}
	return 0
}

// endless are commands that go on until they are interrupted.
func endless(c howto.Command) bool {
	return c.Flags["follow"] == "true" || c.Flags["watch"] == "true" || c.Verb == "port-forward"
}

// documented types every documented line.
func documented(t *testing.T, w *environment) {
	deadline, bounded := t.Deadline()
	for _, s := range steps(t) {
		if bounded && time.Until(deadline) < lineTimeout { // what is started here has to be taken down
			t.Fatalf("no time is left for %s and what follows", s.typed)
		}
		t.Run(s.typed, func(t *testing.T) { s.play(t, w) })
	}
}

// How long lines run that do not end by themselves.
const (
	fewSeconds  = "timeout --signal=INT 4 "
	halfAMinute = "timeout --signal=INT 30 "
)

// play types the line, in a place that has what it names.
func (s *step) play(t *testing.T, w *environment) {
	commands, err := howto.Commands(s.typed)
	if err != nil {
		t.Fatalf("%s: %v%s", s.at, err, help)
	}
	namespace := w.prepare(t, s.typed, commands)
	line, codes := howto.Filled(s.typed), []int{0}
	if strings.Contains(line, "gangctl-sandbox up") { // next to the one in which lines are typed
		line = "export XDG_STATE_HOME=$HOME/beside; " + line + "; code=$?; gangctl-sandbox down && exit $code"
	}
	for _, c := range commands {
		codes = append(codes, howto.Codes(c)...)
		if endless(c) {
			line, codes = fewSeconds+line, append(codes, 124, 130)
		}
	}
	start := time.Now()
	out, code := w.types(t, namespace, line)
	nothing := func() bool { return strings.TrimSpace(out) == "" && !strings.Contains(line, ">") && !quiet(commands) }
	if cut, found := strings.CutPrefix(line, fewSeconds); found && nothing() { // on a busy machine the first answer takes longer
		out, code = w.types(t, namespace, halfAMinute+cut)
	}
	if !slices.Contains(codes, code) || nothing() {
		t.Errorf("%s: exit code %d after %v of\n    %s\n%s%s", strings.Join(s.at, ", "), code, time.Since(start).Round(time.Second), line, out, help)
	}
}

// quiet reports commands that may print nothing.
func quiet(commands []howto.Command) bool {
	return slices.ContainsFunc(commands, func(c howto.Command) bool { return slices.Contains([]string{"logs", "config unset"}, c.Verb) })
}

package stages

import (
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// rank orders verdicts: what needs action comes before what passes by itself, and that before what is not known.
func rank(v answer.Verdict) int {
	switch v {
	case answer.Failed:
		return 0
	case answer.Degraded:
		return 1
	case answer.Blocked:
		return 2
	case answer.Waiting, answer.Starting:
		return 3
	case answer.Uncertain:
		return 4
	default: // fits
		return 5
	}
}

// refusedFor reports whether a node refused a pod for something else than its devices, which another finding is about: what was seen is the cause, and that they are fewer
// only keeps the pod from coming back.
func refusedFor(f, other stage.Finding) bool {
	if f.Code != answer.NodeRefused || other.Code != answer.GPUUnhealthy {
		return false
	}
	reason, _ := f.Facts["reason"].(string)
	short, lacks := strings.CutPrefix(reason, "OutOf")
	ofDevice := reason == "UnexpectedAdmissionError" || lacks && strings.Contains(short, "/") // devices have a domain in their names
	node, _ := f.Facts["node"].(string)
	sick, _ := other.Facts["nodes"].([]string)
	return !ofDevice && slices.Contains(sick, node)
}

// conclude picks the primary finding: the earliest of the most definite kind.
func conclude(d *stage.Diagnosis, findings []stage.Finding) {
	if len(findings) == 0 {
		d.Verdict = answer.Running
		return
	}
	best := 0
	for i, f := range findings {
		if rank(f.Verdict) < rank(findings[best].Verdict) || refusedFor(f, findings[best]) {
			best = i
		}
	}
	primary := findings[best]
	d.Primary = &primary
	d.Verdict, d.Who, d.Never = primary.Verdict, primary.Who, primary.Never
	for i, f := range findings {
		if i != best && f.Verdict != answer.FitsNow {
			d.Others = append(d.Others, f)
		}
	}
	decide(d)
}

// decide flags the rights whose absence may have changed the verdict: a stage that could not be evaluated may hide something
// that blocks, which comes before whatever passes by itself, and before what blocks at a later stage.
func decide(d *stage.Diagnosis) {
	order := answer.Stages()
	for i, m := range d.Missing {
		d.Missing[i].Decisive = rank(d.Verdict) > rank(answer.Blocked) ||
			d.Verdict == answer.Blocked && slices.Index(order, m.Stage) < slices.Index(order, d.Primary.Stage)
	}
	slices.SortStableFunc(d.Missing, func(a, b answer.Right) int {
		switch {
		case a.Decisive == b.Decisive:
			return 0
		case a.Decisive:
			return -1
		}
		return 1
	})
}

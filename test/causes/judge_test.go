package causes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// judgement is what is wrong with an answer.
type judgement struct {
	answer *answer.Answer
	// misses are what the primary finding lacks, or which cause is not named at all; empty for a right answer.
	misses []string
	// refuted is verified advice after which the oracle finds that the gang does not start; unknown is advice that it cannot apply.
	refuted, unknown []string
	// kinds are the kinds of advice that the oracle finds, and whether the answer has each.
	kinds map[answer.ActionKind]bool
}

// judge compares the answer for a scenario with what was planted.
func judge(t *testing.T, p planted) judgement {
	t.Helper()
	j := judgement{answer: explain(t, p.scenario)}
	if len(p.causes) == 1 {
		j.misses = p.causes[0].expect(p.scenario).missesOf(j.answer, p.scenario)
	} else {
		j.misses = p.missesOfTwo(j.answer)
	}
	j.misses = append(j.misses, p.improves(t, j.answer)...)
	j.refuted, j.unknown = refutes(p.scenario, j.answer)
	j.kinds = compareKinds(p.scenario, j.answer)
	return j
}

// findings are all of an answer, the primary one first.
func findings(a *answer.Answer) []answer.Finding {
	if a.Primary == nil {
		return nil
	}
	return append([]answer.Finding{*a.Primary}, a.AlsoBlocking...)
}

// missesOf is what the primary finding lacks.
func (e expectation) missesOf(a *answer.Answer, s scenario) []string {
	if a.Primary == nil {
		return []string{fmt.Sprintf("no reason, %s", a.Verdict)}
	}
	var misses []string
	if !slices.Contains(e.codes, a.Primary.Code) {
		misses = append(misses, fmt.Sprintf("code %s, want %v", a.Primary.Code, e.codes))
	}
	if !slices.Contains(e.exits, a.Exit) {
		misses = append(misses, fmt.Sprintf("exit %d, want %v", a.Exit, e.exits))
	}
	if len(misses) > 0 {
		return misses
	}
	if e.resource != "" && a.Primary.Facts["resource"] != e.resource {
		return []string{fmt.Sprintf("%s about %v, want %s", a.Primary.Code, a.Primary.Facts["resource"], e.resource)}
	}
	if !e.mentionedIn(*a.Primary) {
		misses = append(misses, fmt.Sprintf("%s does not mention %v", a.Primary.Code, e.mentions))
	}
	if e.resource != "" {
		misses = append(misses, s.wrongNumbers(*a.Primary, e.resource)...)
	}
	return misses
}

// mentionedIn reports whether a finding matches one of the expressions.
func (e expectation) mentionedIn(f answer.Finding) bool {
	if len(e.mentions) == 0 {
		return true
	}
	text := f.Message + "\n" + strings.Join(f.Details, "\n")
	return slices.ContainsFunc(e.mentions, func(m string) bool { return regexp.MustCompile("(?i)" + regexp.QuoteMeta(m)).MatchString(text) })
}

// names reports whether some finding of an answer names what is expected.
func (e expectation) names(a *answer.Answer) bool {
	return slices.ContainsFunc(findings(a), func(f answer.Finding) bool {
		named := slices.Contains(e.codes, f.Code) && (e.resource == "" || f.Facts["resource"] == e.resource) && e.mentionedIn(f)
		// Several that bind at the same stage share a finding, which has to mention each.
		text := f.Message + "\n" + strings.Join(f.Details, "\n")
		return named || e.resource != "" && f.Stage == answer.StagePlacement && strings.Contains(text, spoken(e.resource)) ||
			len(e.mentions) > 0 && f.Stage == answer.StagePlacement && e.mentionedIn(f)
	})
}

// spoken is a resource as texts call it.
func spoken(name string) string {
	if name == gpu {
		return "GPU"
	}
	return name
}

// missesOfTwo are the causes that no finding names; and the primary finding must be about one of them.
func (p planted) missesOfTwo(a *answer.Answer) []string {
	var misses []string
	primary := false
	for i, c := range p.causes {
		together, alone := c.expect(p.scenario), c.expect(p.changes[i](p.sound))
		if !together.names(a) && !alone.names(a) {
			misses = append(misses, "not named: "+c.name)
		}
		primary = primary || a.Primary != nil && slices.Contains(append(together.codes, alone.codes...), a.Primary.Code)
	}
	if !primary && a.Primary != nil {
		misses = append(misses, fmt.Sprintf("primary %s is about neither", a.Primary.Code))
	}
	return misses
}

// improves is a miss if the answer is no better without the cause.
func (p planted) improves(t *testing.T, a *answer.Answer) []string {
	t.Helper()
	if without := explain(t, p.sound); !without.Verdict.Starts() || a.Verdict.Starts() {
		return []string{fmt.Sprintf("verdict %s with the cause, and without it %s %s", a.Verdict, without.Verdict, without.Headline)}
	}
	return nil
}

// wrongNumbers compares the amounts of a finding with those of the nodes that the members of its role may use: all of them, or those that
// would take one if it were not for the resource.
func (s scenario) wrongNumbers(f answer.Finding, name string) []string {
	at := s
	if f.Never {
		at = s.atBest()
	}
	var misses []string
	for _, amount := range []struct {
		key string
		on  func(int) int64
	}{{"free", func(i int) int64 { return max(0, at.free(i, name)) }}, {"total", func(i int) int64 { return at.nodes[i].total[name] }}} {
		got, ok := f.Facts[amount.key].(int64)
		if !ok {
			continue
		}
		var want []int64
		for r := range s.gang.roles {
			open, emptied := at.start(constraint(name)), at.emptied(func(consumer) bool { return true }).start(constraint(name))
			want = append(want, at.sum(amount.on, func(n int) bool { return open.admits(s.gang.roles[r], at.nodes[n]) }),
				at.sum(amount.on, func(n int) bool { return open.accepts(r, n) }), at.sum(amount.on, func(n int) bool { return emptied.accepts(r, n) }))
		}
		if !slices.Contains(want, got) {
			misses = append(misses, fmt.Sprintf("%s %s %d, want one of %v", amount.key, name, got, want))
		}
	}
	return misses
}

// sum adds amounts of the nodes that match.
func (s scenario) sum(amount func(int) int64, match func(int) bool) int64 {
	var sum int64
	for i := range s.nodes {
		if match(i) {
			sum += amount(i)
		}
	}
	return sum
}

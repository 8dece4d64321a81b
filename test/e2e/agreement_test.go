package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gangctl/gangctl/test/agreement"
)

// TestAgreement compares gangctl's diagnosis of gangs with what the scheduler does with them, over random scenarios: before it gets
// to see a gang, and when everything has come to rest. The environment changes what is done:
//
//	GANGCTL_AGREEMENT        how many gangs are decided on at least (30)
//	GANGCTL_AGREEMENT_SEED   the seed of the first scenario (1)
//	GANGCTL_AGREEMENT_TRAPS  0 leaves out gangs of which a scheduler may miss a placement because it places one member after the
//	                         other
func TestAgreement(t *testing.T) {
	t.Parallel()
	want, next := number(t, "GANGCTL_AGREEMENT", 30), uint64(number(t, "GANGCTL_AGREEMENT_SEED", 1))
	options := agreement.Options{Gangs: 6, NoTraps: number(t, "GANGCTL_AGREEMENT_TRAPS", 1) == 0}
	stage := newStage(t, gangScheduler("scheduler-plugins"))
	director, err := agreement.Open(t.Context(), stage.Config(), stepTimeout)
	must(t, err)
	var all []agreement.Decision
	before := func(d agreement.Decision) bool { return d.Moment == agreement.Before }
	for begin := time.Now(); err == nil && agreement.Count(all, before).Total < want; next++ {
		var decisions []agreement.Decision
		decisions, err = director.Play(t.Context(), agreement.New(next, options))
		all = append(all, decisions...)
		if agreement.Count(all, before).Total >= want {
			t.Logf("%s", time.Since(begin).Round(time.Second))
		}
	}
	var report strings.Builder
	must(t, agreement.Print(&report, all))
	t.Logf("\n%s", report.String())
	must(t, err)

	total := agreement.Count(all, func(agreement.Decision) bool { return true })
	if share := total.Share(false); share < 99 {
		t.Errorf("gangctl and the scheduler agree on %.1f %% of %d gangs, want 99", share, total.Total)
	}
	for _, d := range all {
		replay(t, d)
		switch missed := d.Class == agreement.Missed; {
		case missed && !d.Trap:
			t.Errorf("the scheduler missed what it cannot miss: %s", d)
		case want > 30 || missed: // a long run finds what is not known yet
		case d.Class != agreement.Agree || d.Odd != "":
			t.Errorf("%s", d)
		}
	}
}

// replay queries the program about the saved snapshot of a decision: it must answer as it did on the cluster.
func replay(t *testing.T, d agreement.Decision) {
	t.Helper()
	if d.Snapshot == "" {
		return
	}
	out, err := exec.CommandContext(t.Context(), programs.gangctl, append(d.Replay(), "-o", "json")...).Output()
	var again struct{ Verdict, Headline string }
	if jsonErr := json.Unmarshal(out, &again); jsonErr != nil {
		t.Errorf("replay %s: %v, %v", d.Snapshot, err, jsonErr)
		return
	}
	if again.Verdict != string(d.Answer.Verdict) || again.Headline != d.Answer.Headline {
		t.Errorf("another answer from %s: %s %s, it was %s %s", d.Snapshot, again.Verdict, again.Headline, d.Answer.Verdict, d.Answer.Headline)
	}
}

func number(t *testing.T, name string, fallback int) int {
	t.Helper()
	text, ok := os.LookupEnv(name)
	if !ok {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q: must be a number", name, text)
	}
	return n
}

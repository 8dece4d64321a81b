package agreement

import (
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func answerWith(v answer.Verdict, code answer.Code) *answer.Answer {
	a := &answer.Answer{Verdict: v}
	if code != "" {
		a.Primary = &answer.Finding{Code: code}
	}
	return a
}

func TestJudge(t *testing.T) {
	all, none, part := Outcome{Members: 4, Bound: 4}, Outcome{Members: 4, Refused: 4}, Outcome{Members: 4, Bound: 2, Refused: 2}
	tests := []struct {
		name    string
		verdict answer.Verdict
		outcome Outcome
		min     int32
		want    Class
	}{
		{"placed by both", answer.FitsNow, all, 4, Agree},
		{"placed by neither", answer.Waiting, none, 4, Agree},
		{"a part that is enough", answer.Running, part, 2, Agree},
		{"placed by the scheduler only", answer.Blocked, all, 4, Wrong},
		{"placed by gangctl only", answer.FitsNow, none, 4, Suspect},
		{"gangctl does not know", answer.Uncertain, none, 4, Unsure},
		{"gangctl does not know, and it starts", answer.Uncertain, all, 4, Unsure},
		{"the scheduler breaks the gang", answer.FitsNow, part, 4, Wrong},
		{"the scheduler breaks the gang that waits", answer.Waiting, part, 4, Wrong},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, why := Judge(answerWith(tt.verdict, ""), tt.outcome, tt.min)
			if got != tt.want || (why == "") != (got == Agree) {
				t.Errorf("%s (%s), want %s", got, why, tt.want)
			}
		})
	}
}

func TestOdd(t *testing.T) {
	no, stale := false, &answer.Scheduler{Stale: true}
	stale.Agrees = &no
	oneRole := &answer.Nodes{Rows: []answer.NodeRow{{Node: "n", Role: "Member"}}}
	tests := []struct {
		name      string
		code      answer.Code
		nodes     *answer.Nodes
		scheduler *answer.Scheduler
		outcome   Outcome
		want      string
	}{
		{"no reason", "", nil, nil, Outcome{}, "no reason"},
		{"short of memory", "INSUFFICIENT_memory", oneRole, nil, outcomeWith("0/1 nodes are available: 1 Insufficient memory."), ""},
		{"short of memory for one only", "INSUFFICIENT_memory", oneRole, nil, outcomeWith("0/1 nodes are available: 1 node(s) were unschedulable."), "not what the scheduler reports: cordon"},
		{"planned as a whole", answer.SelectorNoMatch, oneRole, nil, outcomeWith("0/6 nodes are available: 0 of the 5 members that its gang needs fit: no node may be used by 5 members with 1 GPU each."), ""},
		{"planned as a whole, and cut off", answer.SelectorNoMatch, oneRole, nil, outcomeWith("Unschedulable: 0/6 nodes are available: the search for room for the 5 members that its gang needs was cut off: none."), ""},
		{"cordoned", answer.NodeNotReady, oneRole, nil, outcomeWith("0/2 nodes are available: 1 node(s) were unschedulable, 1 Too many pods."), ""},
		{"several roles", answer.NodeNotReady, nil, nil, outcomeWith("0/1 nodes are available: 1 Too many pods."), ""},
		{"members are missing", answer.BelowQuorum, nil, nil, Outcome{Waiting: 2}, ""},
		{"members are missing for one only", answer.BelowQuorum, nil, nil, outcomeWith("0/1 nodes are available: 1 Too many pods."), "members that are missing"},
		{"members are missing for the other only", answer.NodesBusy, nil, nil, Outcome{Waiting: 2}, "members that are missing"},
		{"gangctl knows of it", answer.NodesBusy, nil, &answer.Scheduler{Agrees: &no}, Outcome{}, "gangctl itself"},
		{"the message is stale", answer.NodesBusy, nil, stale, Outcome{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := answerWith(answer.Waiting, tt.code)
			a.Nodes, a.Scheduler = tt.nodes, tt.scheduler
			if got := Odd(a, tt.outcome); !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func outcomeWith(messages ...string) Outcome {
	return Outcome{Members: 1, Refused: 1, Messages: messages}
}

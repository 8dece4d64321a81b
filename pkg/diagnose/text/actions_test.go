package text

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// render is the text about the actions of an answer.
func render(t *testing.T, a *answer.Answer, o Options) string {
	t.Helper()
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	a.Snapshot.At = &at
	var out bytes.Buffer
	w := &writer{out: &out, a: a, o: o}
	w.ends()
	w.actions()
	if w.err != nil {
		t.Fatal(w.err)
	}
	return out.String()
}

func action(kind answer.ActionKind, by answer.Who, text string) answer.Action {
	return answer.Action{Kind: kind, By: by, Text: text, Verified: true}
}

func TestActions(t *testing.T) {
	half := time.Date(2026, 11, 21, 14, 30, 0, 0, time.UTC)
	known := action(answer.Wait, answer.Nobody, "research/a ends")
	known.ETA, known.ETASource = &half, "activeDeadlineSeconds of TFJob research/a"
	fewer := action(answer.Fewer, answer.User, "1 worker instead of 2")
	fewer.Cost, fewer.Command, fewer.Placement = "less compute", "kubectl one\nkubectl two", []answer.Placed{{Member: "worker-0", Node: "n2"}, {Member: "worker-1", Node: "n2"}}
	nodes := action(answer.AddNodes, answer.Admin, "add 2 nodes like n1 (8 GPUs)")
	nodes.How = "whoever runs the cluster adds them, with eks.amazonaws.com/nodegroup=ng-gpu"
	a := &answer.Answer{Unblock: []answer.Action{known, action(answer.Wait, answer.Nobody, "research/b ends"), fewer, nodes}, Cut: []answer.ActionKind{answer.Wait, answer.Evict}}
	const want = `
Starts by itself when  research/a ends
                       earliest estimate 14:30 (activeDeadlineSeconds of TFJob
                       research/a)
               or when  research/b ends   no end known

You can (verified)
  1 worker instead of 2
    kubectl one
    kubectl two

An administrator can (verified)
  add 2 nodes like n1 (8 GPUs)
    whoever runs the cluster adds them, with eks.amazonaws.com/nodegroup=ng-gpu

Out of time before everything was tried (wait, evict): there may be more ways,
or better ones
`
	if got := render(t, a, Options{Width: 80}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A handful is shown, of each kind the best first; -v shows all, and so do the others who can act.
func TestActionsAreFew(t *testing.T) {
	var all []answer.Action
	for i := range 5 {
		all = append(all, action(answer.Trim, answer.User, fmt.Sprintf("trim %d", i)))
	}
	all = append(all, action(answer.Relax, answer.User, "relax 0"), action(answer.Fewer, answer.User, "fewer 0"), action(answer.Uncordon, answer.Admin, "uncordon 0"))
	a := &answer.Answer{Unblock: all}
	got := render(t, a, Options{})
	for _, want := range []string{"trim 0", "trim 1", "relax 0", "fewer 0", "uncordon 0", "and 3 more, with -v"} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "trim 2") {
		t.Errorf("too many:\n%s", got)
	}
	got = render(t, a, Options{Verbose: true})
	for _, x := range all {
		if !strings.Contains(got, x.Text) {
			t.Errorf("-v lacks %q:\n%s", x.Text, got)
		}
	}
	if strings.Contains(got, "more") {
		t.Errorf("-v leaves something out:\n%s", got)
	}
}

// No line is longer than 80 columns but commands, which are there to be pasted.
func TestActionsWidth(t *testing.T) {
	long := strings.Repeat("serving/web-7d9f-0 from node-1 to node-2, ", 4)
	x := action(answer.Move, answer.Admin, "move "+long)
	x.Cost, x.Command, x.How = long, "kubectl "+long, long
	for i := range 9 {
		x.Placement = append(x.Placement, answer.Placed{Member: "w", Node: fmt.Sprintf("a-node-with-a-long-name-%d", i)})
	}
	wait := action(answer.Wait, answer.Nobody, long+"end")
	for line := range strings.Lines(render(t, &answer.Answer{Unblock: []answer.Action{x, wait}}, Options{Width: 80})) {
		if line = strings.TrimSuffix(line, "\n"); len(line) > 80 && !strings.HasPrefix(line, "    kubectl ") {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

func TestPlacedOn(t *testing.T) {
	var placed []answer.Placed
	for i := range 8 {
		placed = append(placed, answer.Placed{Node: fmt.Sprintf("n%d", i)}, answer.Placed{Node: "n0"})
	}
	if got := strings.Join(placedOn(placed), " "); got != "n0 n1 n2 n3 n4 n5 +2" {
		t.Errorf("got %s", got)
	}
}

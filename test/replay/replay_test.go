package replay

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// pool is a trace on so many nodes.
type pool struct {
	trace string
	nodes int
	jobs  int // how many of its jobs; 0 for all
	// busy: without hints it is not played. Nothing is promised for that at a load of 0.9, and it takes a quarter of an hour.
	busy bool
}

func (p pool) String() string { return fmt.Sprintf("%s@%d", p.trace, p.nodes*perNode) }

// row is what a policy did with a pool.
type row struct {
	policy string
	Result
}

// play plays a pool under every policy: FIFO and greedy come first.
func (p pool) play(t *testing.T) []row {
	t.Helper()
	jobs, err := Trace(p.trace)
	if err != nil {
		t.Fatal(err)
	}
	if p.jobs > 0 {
		jobs = jobs[:p.jobs]
	}
	var rows []row
	policies := []Policy{FIFO(), Greedy(), Ours("ours, exact hints", Overstated(1)), Ours("ours, hints up to 10 times too long", Overstated(10))}
	if !p.busy {
		policies = append(policies, Ours("ours, no hints", nil))
	}
	for _, policy := range policies {
		result, err := Run(t.Context(), jobs, p.nodes, policy)
		if err != nil {
			t.Fatalf("%s: %s: %v", p, policy.Name, err)
		}
		rows = append(rows, row{policy.Name, result})
	}
	return rows
}

// print writes the rows as docs/benchmarks.md has them.
func (p pool) print(rows []row) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\tmean JCT\tgreedy/it\tbig p99 wait\tgreedy/it\tit/FIFO\n", p)
	fifo, greedy := rows[0].Result, rows[1].Result
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%.1f h\t%.2f\t%.0f h\t%.2f\t%.2f\n", r.policy, r.JCT.Hours(), ratio(greedy.JCT, r.JCT), r.BigWait.Hours(), ratio(greedy.BigWait, r.BigWait), ratio(r.BigWait, fifo.BigWait))
	}
	_ = w.Flush()
	return text.String()
}

func ratio(a, b time.Duration) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// Nobody may be better in a replay for being luckier: the same jobs on the same nodes are the same.
func TestReplaysAreTheSame(t *testing.T) {
	p := pool{trace: "philly-vc3", nodes: 8, jobs: 100}
	first, second := p.play(t), p.play(t)
	for i := range first {
		if first[i] != second[i] {
			t.Errorf("%+v, then %+v", first[i], second[i])
		}
	}
}

func TestSlice(t *testing.T) {
	p := pool{trace: "philly-vc3", nodes: 8, jobs: 300}
	rows := p.play(t)
	t.Logf("\n%s", p.print(rows))
	goals{mean: 1.25, big: 1.05}.check(t, p, rows)
}

// TestTraces is `make replay`: it takes five minutes. On vc2 with 512 GPUs a job waits for 9 hours under greedy and runs for 28, so 1.31 is
// the most that any order could be better there.
func TestTraces(t *testing.T) {
	if os.Getenv("GANGCTL_LONG") == "" {
		t.Skip("takes minutes; GANGCTL_LONG is not set")
	}
	for _, c := range []struct {
		pool
		goals
	}{
		{pool{trace: "philly-vc1", nodes: 24}, goals{mean: 1.25, big: 1.05, without: 0.89, fifo: 1.05}},
		{pool{trace: "philly-vc2", nodes: 64}, goals{mean: 1.10, big: 1.05, without: 0.75, fifo: 1.05}},
		{pool{trace: "philly-vc2", nodes: 48, busy: true}, goals{mean: 1.25, big: 1.05}},
		{pool{trace: "philly-vc3", nodes: 8}, goals{mean: 1.25, big: 1.05}},
		{pool{trace: "philly-vc4", nodes: 16}, goals{mean: 1.25}},
	} {
		t.Run(c.String(), func(t *testing.T) {
			rows := c.play(t)
			t.Logf("\n%s", c.print(rows))
			c.check(t, c.pool, rows)
		})
	}
}

// goals are how many times better than greedy the scheduler is at least, with hints. Without, they are how much worse the mean may be, and
// how many times longer than under FIFO big gangs may wait; 0 where nothing is promised.
type goals struct{ mean, big, without, fifo float64 }

func (g goals) check(t *testing.T, p pool, rows []row) {
	t.Helper()
	fifo, greedy := rows[0], rows[1]
	if none := rows[len(rows)-1]; g.fifo > 0 {
		if got := ratio(greedy.JCT, none.JCT); got < g.without {
			t.Errorf("%s: %s: mean JCT %.2f times that of greedy, want %.2f", p, none.policy, got, g.without)
		}
		if got := ratio(none.BigWait, fifo.BigWait); got > g.fifo {
			t.Errorf("%s: %s: p99 wait of big gangs %.2f times that under FIFO, want %.2f", p, none.policy, got, g.fifo)
		}
	}
	for _, r := range rows[2:4] {
		if got := ratio(greedy.JCT, r.JCT); got < g.mean {
			t.Errorf("%s: %s: mean JCT %.2f times better than greedy, want %.2f", p, r.policy, got, g.mean)
		}
		if got := ratio(greedy.BigWait, r.BigWait); got < g.big {
			t.Errorf("%s: %s: p99 wait of big gangs %.2f times better than greedy, want %.2f", p, r.policy, got, g.big)
		}
	}
}

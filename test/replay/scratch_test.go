package replay

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gangctl/gangctl/scheduler/order"
)

func TestScratch(t *testing.T) {
	for _, spec := range strings.Split(os.Getenv("POOLS"), ",") {
		pools := map[string]int{"philly-vc1": 24, "philly-vc3": 8, "philly-vc2": 64, "philly-vc2b": 48}
		nodes := pools[spec]
		jobs, err := Trace(strings.TrimSuffix(spec, "b"))
		if err != nil {
			t.Fatal(err)
		}
		var g, f Result
		ps := []Policy{FIFO(), Greedy()}
		for _, w := range strings.Split(os.Getenv("ONLY"), ",") {
			var kind, after string
			kind, after, _ = strings.Cut(w, "@")
			d, _ := time.ParseDuration(after)
			p := Policy{Name: w, Order: order.HighestResponseRatio, After: d}
			if kind == "hint" {
				p.Hint = Overstated(10)
			}
			ps = append(ps, p)
		}
		for i, p := range ps {
			began := time.Now()
			r, err := Run(t.Context(), jobs, nodes, p)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				f = r
			}
			if i == 1 {
				g = r
			}
			fmt.Printf("%s %-12s mean %.0f h big p99 %.0f h; greedy/mean %.2f, greedy/p99 %.2f p99/fifo %.2f (%.1fs)\n", spec, p.Name, r.JCT.Hours(), r.BigWait.Hours(),
				g.JCT.Hours()/r.JCT.Hours(), g.BigWait.Hours()/r.BigWait.Hours(), r.BigWait.Hours()/f.BigWait.Hours(), time.Since(began).Seconds())
		}
	}
}

package agreement

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// restWithin is how long the scheduler may take to place what fits after something has left: longer than its longest pause between
// two attempts, which is ten seconds.
const restWithin = 25 * time.Second

// view is the answers of gangctl and the outcomes of the scheduler at one moment.
type view struct {
	snapshot *snapshot.Snapshot
	gangs    []*Gang
	answers  []*answer.Answer
	outcomes []Outcome
}

// after removes some residents, waits until no waiting gang would fit any more, and queries every gang.
func (c *fixture) after(ctx context.Context) ([]Decision, error) {
	if err := c.remove(ctx, c.s.Leavers...); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(restWithin)
	var v view
	if err := c.until(ctx, "nothing that waits fits", func(ctx context.Context) (bool, error) {
		if err := c.bindVolumes(ctx); err != nil {
			return false, err
		}
		var err error
		v, err = c.view(ctx)
		return v.rests() || time.Now().After(deadline), err
	}); err != nil {
		return nil, err
	}
	var decisions []Decision
	for i, g := range v.gangs {
		d := Decision{Seed: c.s.Seed, Gang: g.Name, Form: g.Form, Hold: g.Hold, Trap: g.Trap, Moment: After, Target: g.target(), Answer: v.answers[i], Outcome: v.outcomes[i]}
		d.Class, d.Why = Judge(d.Answer, d.Outcome, g.Min)
		if d.Class == Agree && d.Outcome.Bound == 0 {
			d.Odd = Odd(d.Answer, d.Outcome)
		}
		decisions = append(decisions, d)
	}
	for i := range decisions {
		d := &decisions[i]
		if d.Class == Suspect {
			if err := c.verify(ctx, v.gangs[i], d); err != nil {
				return nil, err
			}
		}
		if d.Class != Agree || d.Odd != "" {
			if err := c.keep(d, v.snapshot); err != nil {
				return nil, err
			}
		}
	}
	return decisions, nil
}

// view collects answer and outcome of every gang that is there, and of residents without a node.
func (c *fixture) view(ctx context.Context) (view, error) {
	s, err := c.snapshot(ctx)
	if err != nil {
		return view{}, err
	}
	v := view{snapshot: s}
	pods := map[string]*corev1.Pod{}
	for _, p := range s.Pods {
		if p.Namespace == c.namespace {
			pods[p.Name] = p
		}
	}
	var all []*Gang
	for i := range c.s.Gangs {
		if !c.gone[c.s.Gangs[i].Name] {
			all = append(all, &c.s.Gangs[i])
		}
	}
	for _, r := range c.s.Residents {
		if p := pods[r.Pod.Name]; p != nil && p.Spec.NodeName == "" {
			all = append(all, &Gang{Name: p.Name, Form: Alone, Min: 1, Pods: []*corev1.Pod{r.Pod}})
		}
	}
	for _, g := range all {
		members := of(pods, g)
		if slices.ContainsFunc(members, c.onDeadNode) {
			continue // placed, and lost: the scheduler has done its part
		}
		a, err := c.query(ctx, s, g)
		if err != nil {
			return view{}, err
		}
		v.gangs, v.answers, v.outcomes = append(v.gangs, g), append(v.answers, a), append(v.outcomes, ReadOutcome(members))
	}
	return v, nil
}

// rests reports whether nothing more is to be expected: what waits does not fit, and its conditions have the reason.
func (v view) rests() bool {
	for i, g := range v.gangs {
		w := v.outcomes[i]
		switch {
		case g.Missing() != "":
			if w.Waiting != w.Members {
				return false
			}
		case !w.Final(g.Min), w.Bound == 0 && Starts(v.answers[i]):
			return false
		}
	}
	return true
}

func (c *fixture) onDeadNode(p *corev1.Pod) bool {
	return slices.ContainsFunc(c.s.Nodes, func(n *corev1.Node) bool { return n.Name == p.Spec.NodeName && failed(n) })
}

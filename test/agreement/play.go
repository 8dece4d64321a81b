package agreement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Play creates a scenario on the cluster, compares each of its gangs before and after, and removes it again.
func (s *Stage) Play(ctx context.Context, scenario Scenario) (decisions []Decision, err error) {
	c := &fixture{Stage: s, s: scenario, namespace: namespaceOf(scenario.Seed, time.Now()), gone: map[string]bool{}, bound: map[string]bool{}}
	defer func() {
		if strikeErr := c.tearDown(context.WithoutCancel(ctx)); strikeErr != nil {
			err = errors.Join(err, strikeErr)
		}
		if err != nil {
			err = fmt.Errorf("scenario %d: %w", scenario.Seed, err)
		}
	}()
	if err := c.set(ctx); err != nil {
		return nil, err
	}
	for i := range scenario.Gangs {
		d, err := c.decide(ctx, &scenario.Gangs[i])
		if err != nil {
			return nil, fmt.Errorf("gang %s: %w", scenario.Gangs[i].Name, err)
		}
		if d != nil {
			decisions = append(decisions, *d)
		}
	}
	after, err := c.after(ctx)
	return append(decisions, after...), err
}

// decide creates a gang, queries gangctl, then lets the scheduler decide. It returns nil for a gang that the scheduler never gets.
func (c *fixture) decide(ctx context.Context, g *Gang) (*Decision, error) {
	rehearsed, err := c.rehearse(ctx, g)
	if err != nil {
		return nil, err
	}
	if err := c.bring(ctx, g); err != nil || g.Hold == Never {
		return nil, err
	}
	s, err := c.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if s, err = c.released(s, g); err != nil {
		return nil, err
	}
	d := &Decision{Seed: c.s.Seed, Gang: g.Name, Form: g.Form, Hold: g.Hold, Trap: g.Trap, Moment: Before, Target: g.target()}
	if d.Answer, err = c.query(ctx, s, g); err != nil {
		return nil, err
	}
	if err := c.release(ctx, g); err != nil {
		return nil, err
	}
	if d.Outcome, err = c.finalOutcome(ctx, g); err != nil {
		return nil, err
	}
	if d.Class, d.Why = Judge(d.Answer, d.Outcome, g.Min); d.Class == Suspect && g.Hold == Gate {
		if d.Outcome, err = c.reconsidered(ctx, g); err != nil {
			return nil, err
		}
		d.Class, d.Why = Judge(d.Answer, d.Outcome, g.Min)
	}
	switch {
	case d.Class == Suspect:
		if err := c.verify(ctx, g, d); err != nil {
			return nil, err
		}
	case d.Outcome.Bound == 0 && d.Class == Agree:
		d.Odd = cmp.Or(Odd(d.Answer, d.Outcome), NodeByNode(d.Answer, d.Outcome))
	}
	if rehearsed != nil && d.Odd == "" && Starts(rehearsed) != Starts(d.Answer) {
		d.Odd = fmt.Sprintf("before it was submitted gangctl answered %s: %s", rehearsed.Verdict, rehearsed.Headline)
	}
	if d.Class != Agree || d.Odd != "" {
		return d, c.keep(d, s)
	}
	return d, nil
}

// release lets the scheduler see a gang.
func (c *fixture) release(ctx context.Context, g *Gang) error {
	if g.Hold == Object {
		return c.createObject(ctx, g)
	}
	return each(g.Pods, func(p *corev1.Pod) error {
		_, err := c.Client.Typed.CoreV1().Pods(c.namespace).Patch(ctx, p.Name, types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{})
		return err
	})
}

// finalOutcome waits for the scheduler's final outcome for a gang.
func (c *fixture) finalOutcome(ctx context.Context, g *Gang) (Outcome, error) {
	var w Outcome
	err := c.until(ctx, "the scheduler has decided on "+g.Name, func(ctx context.Context) (bool, error) {
		pods := of(c.seen(c.namespace), g)
		w = ReadOutcome(pods)
		return pods != nil && w.Final(g.Min), c.bindVolumes(ctx)
	})
	if err != nil {
		return w, fmt.Errorf("%w; so far %s", err, w)
	}
	return w, nil
}

// reconsiders is how long the scheduler is given to change its mind about a gang whose gates went one after the other: it may have
// tried while some members were still held, and tries again a second later.
const reconsiders = 4 * time.Second

// reconsidered waits for the scheduler to place a gang after all, and returns the last outcome.
func (c *fixture) reconsidered(ctx context.Context, g *Gang) (Outcome, error) {
	var w Outcome
	within, cancel := context.WithTimeout(ctx, reconsiders)
	defer cancel()
	err := c.until(within, "the scheduler changes its mind", func(ctx context.Context) (bool, error) {
		w = ReadOutcome(of(c.seen(c.namespace), g))
		return w.Bound > 0 && w.Final(g.Min), c.bindVolumes(ctx)
	})
	if within.Err() != nil {
		return w, ctx.Err()
	}
	return w, err
}

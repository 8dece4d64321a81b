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

// Play puts a situation on the cluster, asks about each of its gangs before and after, and takes it away again.
func (s *Stage) Play(ctx context.Context, situation Situation) (decisions []Decision, err error) {
	c := &scene{Stage: s, s: situation, namespace: namespaceOf(situation.Seed, time.Now()), gone: map[string]bool{}, bound: map[string]bool{}}
	defer func() {
		if strikeErr := c.strike(context.WithoutCancel(ctx)); strikeErr != nil {
			err = errors.Join(err, strikeErr)
		}
		if err != nil {
			err = fmt.Errorf("situation %d: %w", situation.Seed, err)
		}
	}()
	if err := c.set(ctx); err != nil {
		return nil, err
	}
	for i := range situation.Gangs {
		d, err := c.decide(ctx, &situation.Gangs[i])
		if err != nil {
			return nil, fmt.Errorf("gang %s: %w", situation.Gangs[i].Name, err)
		}
		if d != nil {
			decisions = append(decisions, *d)
		}
	}
	after, err := c.after(ctx)
	return append(decisions, after...), err
}

// decide brings a gang, asks gangctl, then lets the scheduler decide. It returns nil for a gang that the scheduler never gets.
func (c *scene) decide(ctx context.Context, g *Gang) (*Decision, error) {
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
	d := &Decision{Seed: c.s.Seed, Gang: g.Name, Form: g.Form, Hold: g.Hold, Trap: g.Trap, Moment: Before, Question: g.question()}
	if d.Answer, err = c.ask(ctx, s, g); err != nil {
		return nil, err
	}
	if err := c.release(ctx, g); err != nil {
		return nil, err
	}
	if d.Word, err = c.settled(ctx, g); err != nil {
		return nil, err
	}
	if d.Class, d.Why = Judge(d.Answer, d.Word, g.Min); d.Class == Suspect && g.Hold == Gate {
		if d.Word, err = c.reconsidered(ctx, g); err != nil {
			return nil, err
		}
		d.Class, d.Why = Judge(d.Answer, d.Word, g.Min)
	}
	switch {
	case d.Class == Suspect:
		if err := c.verify(ctx, g, d); err != nil {
			return nil, err
		}
	case d.Word.Bound == 0 && d.Class == Agree:
		d.Odd = cmp.Or(Odd(d.Answer, d.Word), NodeByNode(d.Answer, d.Word))
	}
	if rehearsed != nil && d.Odd == "" && Starts(rehearsed) != Starts(d.Answer) {
		d.Odd = fmt.Sprintf("before it was submitted gangctl said %s: %s", rehearsed.Verdict, rehearsed.Headline)
	}
	if d.Class != Agree || d.Odd != "" {
		return d, c.keep(d, s)
	}
	return d, nil
}

// release lets the scheduler see a gang.
func (c *scene) release(ctx context.Context, g *Gang) error {
	if g.Hold == Object {
		return c.createObject(ctx, g)
	}
	return each(g.Pods, func(p *corev1.Pod) error {
		_, err := c.Client.Typed.CoreV1().Pods(c.namespace).Patch(ctx, p.Name, types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{})
		return err
	})
}

// settled waits for the scheduler's final word on a gang.
func (c *scene) settled(ctx context.Context, g *Gang) (Word, error) {
	var w Word
	err := c.until(ctx, "the scheduler has decided on "+g.Name, func(ctx context.Context) (bool, error) {
		pods := of(c.seen(c.namespace), g)
		w = Hear(pods)
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

// reconsidered waits for the scheduler to place a gang after all, and returns its last word.
func (c *scene) reconsidered(ctx context.Context, g *Gang) (Word, error) {
	var w Word
	within, cancel := context.WithTimeout(ctx, reconsiders)
	defer cancel()
	err := c.until(within, "the scheduler changes its mind", func(ctx context.Context) (bool, error) {
		w = Hear(of(c.seen(c.namespace), g))
		return w.Bound > 0 && w.Final(g.Min), c.bindVolumes(ctx)
	})
	if within.Err() != nil {
		return w, ctx.Err()
	}
	return w, err
}

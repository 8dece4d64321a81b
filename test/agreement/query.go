package agreement

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// snapshot takes a snapshot that shows the cluster as it is. What is collected comes from the API server's cache, which may be
// a moment old.
func (c *fixture) snapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	var s *snapshot.Snapshot
	err := c.until(ctx, "a snapshot is up to date", func(ctx context.Context) (bool, error) {
		now, err := c.Client.Typed.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		if s, err = collect.Collect(ctx, c.Client, collect.Options{Namespace: c.namespace, Now: time.Now}); err != nil {
			return false, err
		}
		return c.current(s, now.Items), nil
	})
	return s, err
}

// current reports whether a snapshot has the pods as listed, and the nodes of the scenario.
func (c *fixture) current(s *snapshot.Snapshot, pods []corev1.Pod) bool {
	type state struct {
		node  string
		phase corev1.PodPhase
		going bool
	}
	of := func(p *corev1.Pod) state { return state{p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp != nil} }
	want := map[types.UID]state{}
	for i := range pods {
		want[pods[i].UID] = of(&pods[i])
	}
	if len(s.Nodes) != len(c.s.Nodes) || len(s.Pods) != len(want) {
		return false
	}
	return !slices.ContainsFunc(s.Pods, func(p *corev1.Pod) bool {
		known, ok := want[p.UID]
		return !ok || known != of(p)
	})
}

// released is the snapshot at the moment at which the scheduler gets to see a gang: without its gates, with its object.
func (c *fixture) released(s *snapshot.Snapshot, g *Gang) (*snapshot.Snapshot, error) {
	out := s.Clone()
	for i, p := range out.Pods {
		if p.Namespace != c.namespace || !slices.ContainsFunc(g.Pods, func(m *corev1.Pod) bool { return m.Name == p.Name }) {
			continue
		}
		p = p.DeepCopy()
		p.Spec.SchedulingGates = nil
		p.Status.Conditions = nil
		out.Pods[i] = p
	}
	if g.Hold == Object {
		u := g.object(c.namespace)
		u.SetUID(types.UID("released:" + g.Name))
		u.SetCreationTimestamp(metav1.NewTime(s.At))
		if err := out.PutUntyped(u); err != nil {
			return nil, err
		}
	}
	out.Finish()
	return out, nil
}

// query is gangctl's answer about a gang.
func (c *fixture) query(ctx context.Context, s *snapshot.Snapshot, g *Gang) (*answer.Answer, error) {
	kind, name, _ := strings.Cut(g.target(), "/")
	q := diagnose.Query{Kind: kind, Namespace: c.namespace, Name: name}
	a, err := diagnose.Explain(ctx, s, q, diagnose.Options{NoAdvice: true})
	if err != nil {
		return nil, fmt.Errorf("explain %s: %w", g.Name, err)
	}
	return a, nil
}

// keep saves the snapshot of a decision that needs a look.
func (c *fixture) keep(d *Decision, s *snapshot.Snapshot) error {
	dir, err := c.directory()
	if err != nil {
		return err
	}
	d.Snapshot = filepath.Join(dir, fmt.Sprintf("%d-%s-%s.yaml.gz", d.Seed, d.Gang, d.Moment))
	return s.Save(d.Snapshot)
}

// rehearse is gangctl's dry run for a job that is not submitted yet; nil for what is no job.
func (c *fixture) rehearse(ctx context.Context, g *Gang) (*answer.Answer, error) {
	if g.Form != ByJob {
		return nil, nil
	}
	s, err := c.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	job, err := g.job(c.namespace, false)
	if err != nil {
		return nil, err
	}
	a, err := diagnose.DryRun(ctx, s, job, c.namespace, diagnose.Options{NoAdvice: true}, g.object(c.namespace))
	if err != nil {
		return nil, fmt.Errorf("rehearse %s: %w", g.Name, err)
	}
	return a.Answer, nil
}

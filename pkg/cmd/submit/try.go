package submit

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
	"github.com/gangctl/gangctl/pkg/submit/choose"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// choose renders the objects of each plan in the first way that the cluster takes as it is meant, and says what that is and why.
func (s *Submission) choose(ctx context.Context, c *creator, plans ...plan) ([]*render.Objects, error) {
	facts, err := s.ask(ctx, c.client, plans)
	if err != nil {
		return nil, err
	}
	said := map[string]bool{"": true}
	var all []*render.Objects
	for _, p := range plans {
		wanted, note, err := c.chooseOne(ctx, p, facts)
		if err != nil {
			return nil, err
		}
		if !said[note] {
			said[note] = true
			fmt.Fprintf(s.IO.ErrOut, "note: %s\n", note)
		}
		all = append(all, wanted)
	}
	return all, nil
}

func (c *creator) chooseOne(ctx context.Context, p plan, facts choose.Facts) (wanted *render.Objects, note string, err error) {
	if !p.asks() {
		wanted, err = p.make(p.usual())
		return wanted, "", err
	}
	decisions, notes, err := p.candidates(facts)
	if err != nil {
		return nil, "", err
	}
	var why error
	for i, d := range decisions {
		if wanted, err = p.make(d); err != nil {
			return nil, "", err
		}
		if why, err = c.try(ctx, p, d, wanted); err != nil {
			return nil, "", err
		}
		if why == nil {
			return wanted, notes[i], nil
		}
	}
	return nil, "", why
}

// try lets the API server look at what it may drop without a word: the field in which pods name a native PodGroup, and the wish
// to wait in a queue of Kueue. why says that it does.
func (c *creator) try(ctx context.Context, p plan, d decision, wanted *render.Objects) (why, err error) {
	field := d.dialect == gang.Native && p.gang.Dialect == auto
	if !field && d.local == "" {
		return nil, nil
	}
	stored, err := c.post(ctx, wanted.Job, true)
	if field && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
		return explainJob(err, wanted.Job), nil
	}
	if err != nil {
		return nil, explainJob(err, wanted.Job)
	}
	c.tried = map[*unstructured.Unstructured]*unstructured.Unstructured{wanted.Job: stored}
	job, err := p.reader.Read(stored)
	if err != nil {
		return nil, failure.Errorf("%w", err)
	}
	if d.local != "" && !job.Suspended {
		return failure.Errorf("--queue %s: Kueue does not manage a %s here, so that nothing would hold it until there is quota", d.local, wanted.Job.GetKind()).
			WithHint("leave out --queue, or ask an administrator to add the kind to integrations.frameworks of Kueue's configuration"), nil
	}
	if !field {
		return nil, nil
	}
	return c.tryField(ctx, job), nil
}

// tryField returns why members would not be in a native PodGroup, or nil. Where a pod cannot be tried, nothing is held against it.
func (c *creator) tryField(ctx context.Context, job gang.Job) error {
	dropped := failure.Errorf("%s %s: the API server drops spec.schedulingGroup of its pods, so that members would start one by one", job.Kind.Kind, job.Name()).
		WithHint("add --dialect scheduler-plugins, or another one that the cluster reads; see `gangctl submit --help`")
	for _, r := range job.Roles {
		if _, ok := native.NameOf(&corev1.Pod{Spec: r.Template.Spec}); !ok {
			return dropped
		}
	}
	pod := &corev1.Pod{ObjectMeta: *job.Roles[0].Template.ObjectMeta.DeepCopy(), Spec: *job.Roles[0].Template.Spec.DeepCopy()}
	pod.Namespace, pod.GenerateName = job.Meta.Namespace, job.Meta.Name+"-"
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	stored, err := c.client.Typed.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil //nolint:nilerr // the job itself will say what is wrong with its pods
	}
	if _, ok := native.NameOf(stored); !ok {
		return dropped
	}
	return nil
}

// inQueue puts a job into a LocalQueue of Kueue, which suspends it until there is quota.
func inQueue(job *unstructured.Unstructured, queue string) {
	labels := job.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[kueue.QueueLabel] = queue
	job.SetLabels(labels)
}

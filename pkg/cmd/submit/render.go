package submit

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/submit/choose"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// candidate is a way to submit a job.
type candidate struct {
	choose.Decision
	objects *render.Objects
}

// render makes the objects of every job in each way that was decided on, and notes once what is not as the file has it. A way in which the members of this job
// would not start together is left out, unless all are such.
func (s *Submission) render(b *batch, d *decisions) ([][]candidate, error) {
	all := make([][]candidate, len(b.jobs))
	for i, j := range b.jobs {
		var refused error
		for _, decision := range d.jobs[i] {
			objects, notes, err := j.objects(decision, d.serves)
			if errors.Is(err, render.ErrNotEnforced) {
				refused = cmp.Or(refused, err)
				continue
			}
			if err != nil {
				return nil, err
			}
			if len(all[i]) == 0 {
				s.note(append(notes, shmNote(j.kind, objects.Job))...)
			}
			all[i] = append(all[i], candidate{decision, objects})
		}
		if len(all[i]) == 0 {
			return nil, refused
		}
	}
	return all, nil
}

// first is the best way to submit each job.
func first(candidates [][]candidate) []*render.Objects {
	var all []*render.Objects
	for _, c := range candidates {
		all = append(all, c[0].objects)
	}
	return all
}

// manifests are the objects of a batch, in the order of creation.
func manifests(others []*unstructured.Unstructured, jobs []*render.Objects) []*unstructured.Unstructured {
	all := append([]*unstructured.Unstructured{}, others...)
	for _, o := range jobs {
		all = append(all, o.All()...)
	}
	return all
}

// note prints notes that are not empty.
func (s *Submission) note(notes ...string) {
	for _, note := range notes {
		if note != "" {
			fmt.Fprintf(s.IO.ErrOut, "note: %s\n", note)
		}
	}
}

// enqueue puts a job, and what it is checked as, into a LocalQueue of Kueue, which suspends it until there is quota.
func enqueue(objects *render.Objects, localQueue string) {
	if localQueue == "" {
		return
	}
	for _, job := range []*unstructured.Unstructured{objects.Job, objects.Trial} {
		if job == nil {
			continue
		}
		labels := job.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[kueue.QueueLabel] = localQueue
		job.SetLabels(labels)
	}
}

package pods

import (
	"cmp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// endedJob is a job that has ended and that a quota of objects counts, or whose own jobs it counts, until it is deleted.
type endedJob struct {
	job *gang.Job
	// counts is how many objects go with it.
	counts int64
}

// countedBy is how many objects go with some jobs.
func countedBy(all []endedJob) (n int64) {
	for _, e := range all {
		n += e.counts
	}
	return n
}

// enough are the first of some jobs with which so much goes; all, where that is less.
func enough(all []endedJob, over resource.Quantity) []endedJob {
	for i := range all {
		if over.CmpInt64(countedBy(all[:i+1])) <= 0 {
			return all[:i+1]
		}
	}
	return all
}

// counted is what becomes of the jobs of a kind that a quota counts.
type counted struct {
	ended []endedJob
	// passing is how many are deleted by themselves, as they have a time for that after their end, which may be still to come.
	passing int64
}

// countedOf are the jobs of a kind and a namespace that have ended, and that nothing owns which is not among them.
func countedOf(c *stage.Context, reader gang.JobReader, namespace string) counted {
	type countedJobs struct {
		kind      schema.GroupKind
		namespace string
	}
	return view.Once(c.View, countedJobs{reader.GroupKind, namespace}, func() (all counted) {
		if reader.GroupKind == batchjob.GroupKind() {
			return countedBatch(c.View, namespace)
		}
		for _, u := range c.View.Snap.Custom[reader.GroupKind] {
			if _, owned := gang.ControllerOf(u); owned || u.GetNamespace() != namespace {
				continue
			}
			if job, err := reader.Job(u); err == nil && job.End != nil {
				all.ended = append(all.ended, endedJob{job, 1})
			}
		}
		all.byAge()
		return all
	})
}

// cronJob is the kind whose Jobs are of use to it no more when they have ended.
const cronJob = "CronJob"

// countedBatch are the Jobs of Kubernetes. Those that another job made go with that, when it has ended: it would make them again before.
func countedBatch(v *view.View, namespace string) (all counted) {
	at := map[gang.Identity]int{}
	for _, j := range v.Snap.Jobs {
		if j.Namespace != namespace {
			continue
		}
		job := batchjob.Convert(j)
		top := &job
		if owner := metav1.GetControllerOf(j); owner != nil && owner.Kind != cronJob {
			if top = v.JobWithUID(namespace, owner.UID); top == nil {
				continue
			}
		}
		if deletesItself(j, top) {
			all.passing++
		}
		if top.End == nil {
			continue
		}
		id := gang.IdentityOf(&top.Meta)
		if i, known := at[id]; known {
			all.ended[i].counts++
			continue
		}
		at[id] = len(all.ended)
		all.ended = append(all.ended, endedJob{top, 1})
	}
	all.byAge()
	return all
}

// byAge sorts those that have ended, that first which did so first.
func (all *counted) byAge() {
	slices.SortStableFunc(all.ended, func(a, b endedJob) int {
		return cmp.Or(a.job.End.At.Compare(b.job.End.At), strings.Compare(a.job.Meta.Name, b.job.Meta.Name))
	})
}

// deletesItself reports whether a Job is deleted some time after its end, or that of the job that made it: with that.
func deletesItself(j *batchv1.Job, top *gang.Job) bool {
	if top.Object == nil {
		return j.Spec.TTLSecondsAfterFinished != nil
	}
	_, set, _ := unstructured.NestedFieldNoCopy(top.Object.Object, "spec", "ttlSecondsAfterFinished")
	return set
}

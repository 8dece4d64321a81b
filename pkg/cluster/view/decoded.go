package view

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
)

// decoded caches what was read from objects: most are the same in every what-if, and in a later snapshot.
type decoded struct {
	jobs   map[any]*gang.Job
	groups map[groupKey]gang.Declaration
	templates
	// earlier is what was read from an earlier snapshot; nil if there is none. What this one has of it is kept, and the rest goes with it.
	earlier *decoded
}

// groupKey is an object as one dialect reads it: two dialects may share a kind.
type groupKey struct {
	dialect gang.Dialect
	object  *unstructured.Unstructured
}

// later is the cache for a later snapshot. It holds on to nothing that was there before d.
func (d *decoded) later() *decoded {
	next := &decoded{jobs: map[any]*gang.Job{}, groups: map[groupKey]gang.Declaration{}, templates: templates{}}
	if d != nil {
		next.earlier = &decoded{jobs: d.jobs, groups: d.groups}
	}
	return next
}

// job is what was read from an object, or from several, as a job; nil if nothing was.
func (d *decoded) job(key any) *gang.Job {
	if job := d.jobs[key]; job != nil || d.earlier == nil {
		return job
	}
	before := d.earlier.jobs[key]
	if before == nil {
		return nil
	}
	job := *before
	job.SharesName = false // which depends on the snapshot
	d.jobs[key] = &job
	return &job
}

// group is what was read from an object as a declaration.
func (d *decoded) group(key groupKey) (declared gang.Declaration, known bool) {
	if declared, known = d.groups[key]; known || d.earlier == nil {
		return declared, known
	}
	if declared, known = d.earlier.groups[key]; known {
		d.groups[key] = declared
	}
	return declared, known
}

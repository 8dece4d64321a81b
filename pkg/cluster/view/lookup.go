package view

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// Lookup reads one job, without reading all others; nil if there is none that can be read.
func (w *View) Lookup(kind schema.GroupKind, namespace, name string) *gang.Job {
	if reader := batchjob.Reader(); kind == reader.GroupKind {
		for _, j := range w.Snap.Jobs {
			if j.Namespace != namespace || j.Name != name {
				continue
			}
			s, known := w.decoded.jobs[j]
			if !known {
				job := batchjob.Convert(j)
				s = &job
				w.decoded.jobs[j] = s
			}
			return s
		}
		return nil
	}
	reader, ok := kinds.ByKind(kind)
	if !ok {
		return nil
	}
	for _, u := range w.Snap.Custom[kind] {
		if u.GetNamespace() != namespace || u.GetName() != name {
			continue
		}
		s, known := w.decoded.jobs[u]
		if !known {
			var err error
			if s, err = reader.Job(u); err != nil {
				w.problem(err)
				return nil
			}
			w.decoded.jobs[u] = s
		}
		return s
	}
	return nil
}

package view

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Gang returns the gang of a job, or all gangs together of a job of several.
func (w *View) Gang(s *gang.Job) *gang.Gang {
	if s.Replica != nil {
		return w.replica(s)
	}
	if g, ok := w.gangs[s.Meta.UID]; ok && s.Meta.UID != "" {
		return g
	}
	g := w.assemble(s)
	if g.Kind.Group == batchv1.GroupName {
		if shared := w.sharedJob(g); shared != nil {
			g = w.assemble(shared)
		}
	}
	if s.Meta.UID != "" {
		w.gangs[s.Meta.UID] = g
	}
	return g
}

// Gangs are those of a job: one, unless it has several.
func (w *View) Gangs(s *gang.Job) []*gang.Gang {
	g := w.Gang(s)
	if len(g.Each) > 0 {
		return g.Each
	}
	return []*gang.Gang{g}
}

// replica is one of the gangs of a job of several, as this view has it.
func (w *View) replica(s *gang.Job) *gang.Gang {
	if whole := w.Lookup(s.Kind.GroupKind(), s.Meta.Namespace, s.Meta.Name); whole != nil {
		for _, one := range w.Gang(whole).Each {
			if *one.Replica == *s.Replica {
				return one
			}
		}
	}
	return gang.New(s, nil, nil, w.declared, w.Snap)
}

func (w *View) assemble(job *gang.Job) *gang.Gang {
	members, unlisted := w.members(job)
	return gang.New(job, members, unlisted, w.declared, w.Snap)
}

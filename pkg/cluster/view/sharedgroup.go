package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
)

// SharedGang is the gang of several jobs whose pods name the same group, one of which is the job of g. It is nil if the group is only that job's, or if one of
// the jobs has pods to make. A job that has ended does not count.
func (w *View) SharedGang(g *gang.Gang) *gang.Gang {
	if g.Bare != nil || g.Replica != nil || len(g.Each) > 0 {
		return nil
	}
	shared := w.sharedJob(g)
	if shared == nil {
		return nil
	}
	live := 0
	for id := range w.jobsSharing(g) {
		job := w.byIdentity()[id]
		if job == nil || job.End == nil {
			live++
		}
		if job != nil && job.End == nil && w.ownGang(job).Count(gang.Missing) > 0 {
			return nil
		}
	}
	if live < 2 {
		return nil
	}
	return w.Gang(shared)
}

// Partners are the gangs of the other jobs whose pods are, or will be, in the group that a gang names. They start together. Jobs that have ended make no
// more pods, and are left out.
func (w *View) Partners(g *gang.Gang) (all []*gang.Gang) {
	if _, known := dialect.ReaderOf(g.Named.Dialect); !known || g.Named.Name == "" {
		return nil
	}
	mine, owners := gang.IdentityOf(&g.Meta), w.jobsSharing(g)
	jobs := slices.Clone(w.jobsNaming()[g.Named])
	for id := range owners {
		if job := w.byIdentity()[id]; job != nil && job.Meta.Namespace == g.Named.Namespace {
			jobs = append(jobs, job)
		}
	}
	slices.SortFunc(jobs, func(a, b *gang.Job) int {
		return cmp.Or(strings.Compare(a.Meta.Name, b.Meta.Name), strings.Compare(a.Kind.Kind, b.Kind.Kind))
	})
	seen := map[gang.Identity]bool{mine: true}
	for _, job := range jobs {
		id := gang.IdentityOf(&job.Meta)
		if seen[id] {
			continue
		}
		seen[id] = true
		if _, owns := owners[id]; job.End == nil && !(owns && len(g.Parts) > 0) {
			all = append(all, w.ownGang(job))
		}
	}
	return all
}

// sharedJob makes up a job of all pods that name the group of g, where they belong to several jobs. It is nil if they belong to one.
func (w *View) sharedJob(g *gang.Gang) *gang.Job {
	owners := w.jobsSharing(g)
	if _, own := owners[gang.IdentityOf(&g.Meta)]; len(owners) < 2 || !own {
		return nil
	}
	pods := slices.DeleteFunc(slices.Clone(w.naming(g.Named)), func(pod *corev1.Pod) bool { _, live := owners[w.root(pod)]; return !live })
	s := w.bare(pods[0])
	s.Maker, s.End, s.Bare, s.Roles[0].Replicas = nil, nil, pods, int32(len(pods))
	s.Meta.DeletionTimestamp = deletionOf(pods)
	s.Meta.CreationTimestamp, s.Parts = g.Meta.CreationTimestamp, slices.Sorted(maps.Values(owners))
	return s
}

// ownGang is the gang of the pods of one job, also where their group is shared with other jobs.
func (w *View) ownGang(job *gang.Job) *gang.Gang {
	type ownGangOf struct{ *gang.Job }
	return Once(w, ownGangOf{job}, func() *gang.Gang { return w.assemble(job) })
}

// jobsSharing are the names of the jobs whose pods are in the group that a gang names. The caller does not change the map.
func (w *View) jobsSharing(g *gang.Gang) map[gang.Identity]string {
	if g.Named.Name == "" {
		return nil
	}
	type sharers struct{ gang.Key }
	return Once(w, sharers{g.Named}, func() map[gang.Identity]string { return w.ownersOf(g.Named) })
}

// ownersOf are the names of the jobs whose pods name a group. The pods of a job that is gone count only while they run and no job of its name is there again.
func (w *View) ownersOf(group gang.Key) map[gang.Identity]string {
	owners := map[gang.Identity]string{}
	type named struct{ kind, name string }
	there := map[named]bool{}
	pods := w.naming(group)
	for _, pod := range pods {
		if ref := metav1.GetControllerOfNoCopy(pod); ref != nil && w.byIdentity()[w.root(pod)] != nil {
			there[named{ref.Kind, ref.Name}] = true
		}
	}
	for _, pod := range pods {
		ref := metav1.GetControllerOfNoCopy(pod)
		if ref == nil {
			continue
		}
		id := w.root(pod)
		if job := w.byIdentity()[id]; job != nil {
			owners[id] = job.Meta.Name
		} else if !there[named{ref.Kind, ref.Name}] && pod.DeletionTimestamp == nil && !podutil.IsPodTerminal(pod) {
			owners[id] = ref.Name
		}
	}
	return owners
}

// jobsNaming are the jobs of which a template names a group, by the group.
func (w *View) jobsNaming() map[gang.Key][]*gang.Job {
	type byTemplate struct{}
	return Once(w, byTemplate{}, func() map[gang.Key][]*gang.Job {
		if w.sameJobs() {
			return w.base.jobsNaming()
		}
		named, readers := map[gang.Key][]*gang.Job{}, dialect.Readers()
		for _, job := range w.Jobs() {
			for _, role := range job.Roles {
				pod := &corev1.Pod{ObjectMeta: role.Template.ObjectMeta, Spec: role.Template.Spec}
				for _, r := range readers {
					name, ok := r.GroupOf(pod)
					key := gang.Key{Dialect: r.Dialect, Namespace: job.Meta.Namespace, Name: name}
					if ok && !slices.Contains(named[key], job) {
						named[key] = append(named[key], job)
					}
				}
			}
		}
		return named
	})
}

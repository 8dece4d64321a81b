package view

import (
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/pdb"
)

// gang.Gang returns the gang of a job.
func (w *View) Gang(s *gang.Job) *gang.Gang {
	if g, ok := w.gangs[s.Meta.UID]; ok && s.Meta.UID != "" {
		return g
	}
	g := w.assemble(s)
	if whole := w.whole(g); whole != nil {
		g = w.assemble(whole)
	}
	if s.Meta.UID != "" {
		w.gangs[s.Meta.UID] = g
	}
	return g
}

func (w *View) assemble(job *gang.Job) *gang.Gang {
	members := w.members(job)
	return gang.New(job, members, w.declared(job, members), w.Snap)
}

// whole is a gang of which a Job is only a part: its pods name a group that pods of other Jobs name too. It is nil for one
// that a Job has for itself.
func (w *View) whole(g *gang.Gang) *gang.Job {
	if g.Kind.Group != batchv1.GroupName || g.Named.Name == "" {
		return nil
	}
	owners := map[string]bool{}
	pods := w.byMark()[g.Named]
	for _, pod := range pods {
		if ref := metav1.GetControllerOf(pod); ref != nil {
			owners[ref.Name] = true
		}
	}
	if len(owners) < 2 || !owners[g.Meta.Name] {
		return nil
	}
	s := w.bare(pods[0])
	s.Meta.CreationTimestamp, s.Parts = g.Meta.CreationTimestamp, slices.Sorted(maps.Keys(owners))
	return s
}

// Groups are all group objects, as declarations.
func (w *View) Groups() []gang.Declaration { return w.groups() }

func (w *View) readGroups() []gang.Declaration {
	if w.sameGroups() {
		return w.base.Groups()
	}
	count := 0
	for _, r := range dialect.Readers() {
		for _, kind := range r.Kinds {
			count += len(w.Snap.Custom[kind.GroupKind])
		}
	}
	all := make([]gang.Declaration, 0, count)
	for _, r := range dialect.Readers() {
		for _, kind := range r.Kinds {
			for _, u := range w.Snap.Custom[kind.GroupKind] {
				key := groupKey{r.Dialect, u}
				d, known := w.decoded.groups[key]
				if !known {
					var err error
					if d, err = r.Decode(u); err != nil {
						w.problem(err)
						continue
					}
					w.decoded.groups[key] = d
				}
				all = append(all, d)
			}
		}
	}
	return all
}

// candidate is one dialect in which a job may be a gang.
type candidate struct {
	reader gang.Reader
	key    gang.Key
	decl   *gang.Declaration
	marked bool
}

// score orders candidates: what the pods' scheduler is known to read, then marks on pods, then an object with a status.
func (c candidate) score(scheduler string) int {
	score := 16 * dialect.Affinity(c.reader, scheduler)
	if c.marked {
		score += 4
	}
	if c.decl != nil {
		score += 2
		if c.decl.Phase != "" || len(c.decl.Words) > 0 {
			score++
		}
	}
	return score
}

// declared finds the declaration that counts, and those that do not.
func (w *View) declared(job *gang.Job, members []gang.Member) gang.Declared {
	var found []candidate
	pods := gang.PodsOf(job, members)
	for _, r := range dialect.Readers() {
		if c, ok := w.candidate(job, r, pods); ok {
			found = append(found, c)
		}
	}
	scheduler := gang.SchedulerOf(job, members)
	slices.SortStableFunc(found, func(a, b candidate) int { return b.score(scheduler) - a.score(scheduler) })
	if len(found) == 0 {
		return w.declaredByBudget(pods)
	}
	best := found[0]
	all := gang.Declared{Named: best.key, Decl: best.decl}
	if all.Decl == nil && best.reader.FromPods != nil {
		d, err := best.reader.FromPods(best.key, pods)
		all.Decl, all.Problem = &d, err
	}
	for _, c := range found[1:] {
		if c.decl != nil && (all.Decl == nil || c.decl.UID != all.Decl.UID) {
			all.Ignored = append(all.Ignored, *c.decl)
		}
	}
	return all
}

// candidate looks for marks on the pods, and for an object that the job owns.
func (w *View) candidate(job *gang.Job, r gang.Reader, pods []*corev1.Pod) (candidate, bool) {
	c := candidate{reader: r}
	for _, pod := range pods {
		if name, ok := r.GroupOf(pod); ok {
			c.marked, c.key = true, gang.Key{Dialect: r.Dialect, Namespace: job.Meta.Namespace, Name: name}
			break
		}
	}
	if c.marked {
		c.decl = w.byKey().named[c.key]
	} else if job.Meta.UID != "" {
		c.decl = w.byKey().owned[ownedGroup{r.Dialect, job.Meta.Namespace, job.Meta.UID}]
	}
	if c.decl != nil {
		c.key = c.decl.Key
	}
	return c, c.marked || c.decl != nil
}

func (w *View) declaredByBudget(pods []*corev1.Pod) gang.Declared {
	for _, pod := range pods {
		if d, ok := pdb.Find(pod, w.Snap.DisruptionBudgets); ok {
			return gang.Declared{Decl: &d, Named: d.Key}
		}
	}
	return gang.Declared{}
}

// bare makes up a job from a pod without one: the pods of its gang, or the pod alone.
func (w *View) bare(pod *corev1.Pod) *gang.Job {
	name, pods := pod.Name, []*corev1.Pod{pod}
	for _, r := range dialect.Readers() {
		group, ok := r.GroupOf(pod)
		if !ok {
			continue
		}
		name, pods = group, nil
		for _, other := range w.Snap.Pods {
			if g, ok := r.GroupOf(other); ok && g == group && other.Namespace == pod.Namespace {
				pods = append(pods, other)
			}
		}
		break
	}
	s := &gang.Job{Bare: pods, Reader: gang.JobReader{Words: []string{"pod"}}}
	s.Kind = corev1.SchemeGroupVersion.WithKind("Pod")
	s.Meta = *pod.ObjectMeta.DeepCopy()
	s.Meta.Name, s.Meta.UID, s.Seen = name, types.UID("bare:"+pod.Namespace+"/"+name), true
	role := gang.Role{Name: "Member", Replicas: int32(len(pods)), Template: corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}}
	if len(pod.Spec.Containers) > 0 {
		role.Main = pod.Spec.Containers[0].Name
	}
	s.Roles = []gang.Role{role}
	return s
}

// GroupPods are the pods that name a group object.
func (w *View) GroupPods(d gang.Declaration) []*corev1.Pod { return w.byMark()[d.Key] }

// JobOfGroup is the job that owns a group object or whose pods name it; nil if none does.
func (w *View) JobOfGroup(d gang.Declaration) *gang.Job {
	if s := w.byUID()[d.Owner]; s != nil {
		return s
	}
	for _, pod := range w.GroupPods(d) {
		if s := w.byUID()[w.root(pod)]; s != nil {
			return s
		}
	}
	return nil
}

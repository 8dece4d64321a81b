package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/pdb"
)

// Gang is a job with its members and what declares them a gang.
type Gang struct {
	*Subject
	// Snap is the snapshot that it was read from.
	Snap    *snapshot.Snapshot
	Members []Member
	// Decl declares the gang; nil if nothing does, or if the object that the pods name does not exist.
	Decl *gang.Declaration
	// Named is the group that the pods name, whether it exists or not; its Name is empty if they name none.
	Named gang.Key
	// Ignored are further group objects of the job, which the pods' scheduler does not read.
	Ignored []gang.Declaration
	// Min is how many members must run for the gang to be of use.
	Min int32
	// Scheduler is the schedulerName of the members that are not bound yet, or of all.
	Scheduler string
	// Problem says what is wrong with the marks on the pods; usually nil.
	Problem error
}

// Gang returns the gang of a job.
func (w *World) Gang(s *Subject) *Gang {
	if g, ok := w.gangs[s.Meta.UID]; ok && s.Meta.UID != "" {
		return g
	}
	g := &Gang{Subject: s, Snap: w.Snap, Members: w.members(s)}
	g.Scheduler = g.schedulerName()
	w.declare(g)
	if whole := w.whole(g); whole != nil {
		g = &Gang{Subject: whole, Snap: w.Snap, Members: w.members(whole)}
		g.Scheduler = g.schedulerName()
		w.declare(g)
	}
	g.Min = g.minimum()
	if s.Meta.UID != "" {
		w.gangs[s.Meta.UID] = g
	}
	return g
}

// whole is a gang of which a Job is only a part: its pods name a group that pods of other Jobs name too. It is nil for one
// that a Job has for itself.
func (w *World) whole(g *Gang) *Subject {
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

// minimum is what the declaration says. Without one, operators of training jobs need every member, while the pods of a batch
// Job are worth something alone.
func (g *Gang) minimum() int32 {
	switch {
	case g.Decl != nil:
		return g.Decl.MinMember
	case g.MinMember != nil:
		return *g.MinMember
	case g.Reader.Kind == "Job" && g.Named.Name == "":
		return min(1, g.Total())
	default:
		return g.Total()
	}
}

func (g *Gang) schedulerName() string {
	for _, unbound := range []bool{true, false} {
		for _, m := range g.Members {
			if m.Pod != nil && (!unbound || m.Pod.Spec.NodeName == "") {
				return cmp.Or(m.Pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
			}
		}
	}
	for _, r := range g.Roles {
		if r.Template.Spec.SchedulerName != "" {
			return r.Template.Spec.SchedulerName
		}
	}
	return corev1.DefaultSchedulerName
}

// Groups are all group objects, as declarations.
func (w *World) Groups() []gang.Declaration { return w.groups() }

func (w *World) readGroups() []gang.Declaration {
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

// declare finds the declaration that counts, and those that do not.
func (w *World) declare(g *Gang) {
	var found []candidate
	pods := g.pods()
	for _, r := range dialect.Readers() {
		if c, ok := w.candidate(g, r, pods); ok {
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return b.score(g.Scheduler) - a.score(g.Scheduler) })
	if len(found) == 0 {
		w.declareByBudget(g, pods)
		return
	}
	best := found[0]
	g.Named, g.Decl = best.key, best.decl
	if g.Decl == nil && best.reader.FromPods != nil {
		d, err := best.reader.FromPods(best.key, pods)
		g.Decl, g.Problem = &d, err
	}
	for _, c := range found[1:] {
		if c.decl != nil && (g.Decl == nil || c.decl.UID != g.Decl.UID) {
			g.Ignored = append(g.Ignored, *c.decl)
		}
	}
}

// candidate looks for marks on the pods, and for an object that the job owns.
func (w *World) candidate(g *Gang, r gang.Reader, pods []*corev1.Pod) (candidate, bool) {
	c := candidate{reader: r}
	for _, pod := range pods {
		if name, ok := r.GroupOf(pod); ok {
			c.marked, c.key = true, gang.Key{Dialect: r.Dialect, Namespace: g.Meta.Namespace, Name: name}
			break
		}
	}
	if c.marked {
		c.decl = w.byKey().named[c.key]
	} else if g.Meta.UID != "" {
		c.decl = w.byKey().owned[ownedGroup{r.Dialect, g.Meta.Namespace, g.Meta.UID}]
	}
	if c.decl != nil {
		c.key = c.decl.Key
	}
	return c, c.marked || c.decl != nil
}

func (w *World) declareByBudget(g *Gang, pods []*corev1.Pod) {
	for _, pod := range pods {
		if d, ok := pdb.Find(pod, w.Snap.DisruptionBudgets); ok {
			g.Decl, g.Named = &d, d.Key
			return
		}
	}
}

// pods are those of the gang, or what its pods would look like.
func (g *Gang) pods() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, m := range g.Members {
		if m.Pod != nil {
			pods = append(pods, m.Pod)
		}
	}
	if len(pods) > 0 {
		return pods
	}
	for _, r := range g.Roles {
		pods = append(pods, &corev1.Pod{ObjectMeta: *r.Template.ObjectMeta.DeepCopy(), Spec: r.Template.Spec})
	}
	return pods
}

// bare makes up a job from a pod without one: the pods of its gang, or the pod alone.
func (w *World) bare(pod *corev1.Pod) *Subject {
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
	s := &Subject{Bare: pods, Reader: gang.JobKind{Words: []string{"pod"}}}
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

// RoleByName finds a role, whatever the case.
func (g *Gang) RoleByName(name string) *gang.Role {
	for i := range g.Roles {
		if strings.EqualFold(g.Roles[i].Name, name) {
			return &g.Roles[i]
		}
	}
	return nil
}

// GroupPods are the pods that name a group object.
func (w *World) GroupPods(d gang.Declaration) []*corev1.Pod { return w.byMark()[d.Key] }

// JobOfGroup is the job that owns a group object or whose pods name it; nil if none does.
func (w *World) JobOfGroup(d gang.Declaration) *Subject {
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

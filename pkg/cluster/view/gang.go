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
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/dialect/pdb"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/dialect/yunikorn"
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
		if whole := w.whole(g); whole != nil {
			g = w.assemble(whole)
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

// alone is the gang of a job of the cluster by itself, whatever group its pods share.
func (w *View) alone(job *gang.Job) *gang.Gang {
	type aloneOf struct{ *gang.Job }
	return Once(w, aloneOf{job}, func() *gang.Gang { return w.assemble(job) })
}

// whole is a gang of which a job is only a part: its pods name a group that pods of other jobs name too. It is nil for one
// that a job has for itself.
func (w *View) whole(g *gang.Gang) *gang.Job {
	owners := w.sharing(g)
	if _, own := owners[gang.IdentityOf(&g.Meta)]; len(owners) < 2 || !own {
		return nil
	}
	pods := slices.DeleteFunc(slices.Clone(w.naming(g.Named)), func(pod *corev1.Pod) bool { _, live := owners[w.root(pod)]; return !live })
	s := w.bare(pods[0])
	s.Maker, s.Bare, s.Roles[0].Replicas = nil, pods, int32(len(pods))
	s.Meta.CreationTimestamp, s.Parts = g.Meta.CreationTimestamp, slices.Sorted(maps.Values(owners))
	return s
}

// sharing are the jobs whose pods are in the group that a gang names, with their names. Pods that a job of the same name has left which is gone, or that leave or have ended with
// their job gone, make none. The caller does not change the map.
func (w *View) sharing(g *gang.Gang) map[gang.Identity]string {
	if g.Named.Name == "" {
		return nil
	}
	type sharingGroup struct{ gang.Key }
	return Once(w, sharingGroup{g.Named}, func() map[gang.Identity]string { return w.ownersIn(g.Named) })
}

func (w *View) ownersIn(group gang.Key) map[gang.Identity]string {
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

// Together is the gang of which the one of a job is only a part, as its pods name a group that pods of other jobs name too. It is nil for one that a
// job has for itself, and as long as one of the jobs has pods to make. A job that has ended has left its pods, and the group to others.
func (w *View) Together(g *gang.Gang) *gang.Gang {
	if g.Bare != nil || g.Replica != nil || len(g.Each) > 0 {
		return nil
	}
	whole := w.whole(g)
	if whole == nil {
		return nil
	}
	live := 0
	for id := range w.sharing(g) {
		job := w.byIdentity()[id]
		if job == nil || job.End == nil {
			live++
		}
		if job != nil && job.End == nil && w.alone(job).Count(gang.Missing) > 0 {
			return nil
		}
	}
	if live < 2 {
		return nil
	}
	return w.Gang(whole)
}

// Partners are other jobs, each by itself, of which pods are, or will be, in the group that a gang names: they start together. Those that have ended make
// none any more.
func (w *View) Partners(g *gang.Gang) (all []*gang.Gang) {
	if _, known := dialect.ReaderOf(g.Named.Dialect); !known || g.Named.Name == "" {
		return nil
	}
	mine, owners := gang.IdentityOf(&g.Meta), w.sharing(g)
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
			all = append(all, w.alone(job))
		}
	}
	return all
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

// Group is the group object of a name, as a declaration; nil if there is none. Of two the first counts.
func (w *View) Group(key gang.Key) *gang.Declaration { return w.byKey().named[key] }

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
				d, known := w.decoded.group(key)
				if !known {
					var err error
					if d, err = r.Decode(u); err != nil {
						w.problem(u, err)
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

// declared finds the declaration that counts, and those that do not.
func (w *View) declared(job *gang.Job, members []gang.Member) gang.Declared {
	pods := gang.PodsOf(job, members)
	precedence := w.precedence(gang.SchedulerOf(job, members))
	membership := commonMembership(pods, precedence)
	names := append(membership.Keys(), besides(pods, membership, precedence)...)
	found := w.objectsOf(job, names, precedence)
	made := slices.ContainsFunc(members, func(m gang.Member) bool { return m.Pod != nil })
	apart := made && pods[0].Annotations[gang.DialectAnnotation] == string(gang.None) // its members are meant to be placed one by one
	var owned []gang.Key
	var unjoined []gang.Declaration
	found = slices.DeleteFunc(found, func(d *gang.Declaration) bool {
		reader, _ := dialect.ReaderOf(d.Key.Dialect)
		switch {
		case slices.Contains(names, d.Key):
		case made && !reader.Adopts:
			if !apart {
				unjoined = append(unjoined, *d)
			}
			return true
		default:
			owned = append(owned, d.Key)
		}
		return false
	})
	if made && len(names) == 0 && !apart {
		unjoined = w.meant(job, pods, precedence, unjoined)
	}
	exists := func(key gang.Key) bool { return w.byKey().named[key] != nil }
	key, named := membership.WithOwned(owned, precedence).Resolve(exists)
	if !named {
		all := w.declaredByBudget(pods)
		if all.Decl == nil {
			all.Unjoined = unjoined
		}
		return all
	}
	all := gang.Declared{Named: key, Unjoined: unjoined}
	for _, d := range found {
		if d.Key == key {
			all.Decl = d
			break
		}
	}
	if reader, ok := dialect.ReaderOf(key.Dialect); ok && all.Decl == nil && reader.FromPods != nil {
		d, err := reader.FromPods(key, pods)
		all.Decl, all.Problem, all.TopologyProblem = &d, err, d.TopologyProblem
		all.ByPlaceholders = key.Dialect == gang.YuniKorn && gang.SchedulerOf(job, members) == yunikorn.SchedulerName
	}
	if all.ByPlaceholders {
		for _, r := range job.Roles {
			for name, n := range all.Decl.RoleMin {
				if strings.EqualFold(name, r.Name) {
					all.Decl.RoleMin[name] = min(n, r.Replicas)
				}
			}
		}
	}
	for _, d := range found {
		if d.Key != key && (all.Decl == nil || !sameObject(*d, *all.Decl)) {
			all.Ignored = append(all.Ignored, *d)
		}
	}
	if all.OfScheduler = made && !apart && all.Decl != nil && volcano.MadeFor(pods[0], *all.Decl); all.OfScheduler {
		meant := w.meant(job, pods, precedence, append(all.Ignored, unjoined...))
		all.Unjoined, all.Ignored = slices.DeleteFunc(meant, func(d gang.Declaration) bool { return d.Key == key }), nil
	}
	all.FirstPods, all.Apart = dialect.First(job, key), dialect.Apart(members, key)
	w.addTopology(job, pods, &all)
	return all
}

// sameObject reports whether two dialects read the same object.
func sameObject(a, b gang.Declaration) bool {
	return a.UID == b.UID && a.Kind == b.Kind && a.Key.Name == b.Key.Name
}

// besides are the groups that pods name by labels and annotations besides that of Kubernetes' own field, which alone counts.
func besides(pods []*corev1.Pod, membership gang.Membership, precedence gang.Precedence) (keys []gang.Key) {
	if membership.Field == (gang.Key{}) {
		return nil
	}
	for _, r := range precedence.Readers() {
		if name, ok := r.GroupOf(pods[0]); ok && r.Dialect != gang.Native && len(r.Kinds) > 0 {
			keys = append(keys, gang.Key{Dialect: r.Dialect, Namespace: pods[0].Namespace, Name: name})
		}
	}
	return keys
}

// addTopology adds by which labels the pods themselves state that they share a domain, to a declaration that states none; rules for parts are looked for
// apart. Kueue's annotations are about each role by itself, so they are the gang's if it has one role.
func (w *View) addTopology(job *gang.Job, pods []*corev1.Pod, to *gang.Declared) {
	if to.Decl == nil || to.TopologyProblem != nil {
		return
	}
	divided := func(p *corev1.Pod) bool { return p.Annotations[gang.TopologyParts] != "" }
	if to.Decl.Topology.OfAll() && (len(to.Decl.Topology.Parts) > 0 || !slices.ContainsFunc(pods, divided)) {
		return
	}
	t, err := gang.TopologyOfPods(slices.Values(pods))
	if err == nil && !t.OfAll() && job != nil && len(job.Roles) == 1 && len(pods) > 0 {
		var ofKueue gang.Topology
		ofKueue, err = kueue.TopologyOf(pods[0])
		t = t.Or(ofKueue)
	}
	if to.TopologyProblem = err; t.Empty() {
		return
	}
	own := *to.Decl // that of the object is kept for other gangs
	if !own.Topology.OfAll() && t.OfAll() {
		own.TopologyFrom = gang.TopologyPods
	}
	own.Topology = own.Topology.Or(t)
	to.Decl = &own
}

// precedence is that of the dialects for pods of a scheduler. A cluster has few schedulers and many gangs.
func (w *View) precedence(schedulerName string) gang.Precedence {
	type ofScheduler string
	return Once(w, ofScheduler(schedulerName), func() gang.Precedence { return dialect.Precedence(dialect.Readers(), schedulerName) })
}

// commonMembership is that of most pods that name a gang: of the first, unless others name another one.
func commonMembership(pods []*corev1.Pod, precedence gang.Precedence) (common gang.Membership) {
	var first gang.Key
	count := map[gang.Key]int{}
	for _, pod := range pods {
		if r, ok := precedence.Reader(first.Dialect); ok {
			if name, named := r.GroupOf(pod); named && name == first.Name {
				count[first]++
				continue
			}
		}
		m := gang.MembershipOf(pod, precedence)
		keys := m.Keys()
		if len(keys) == 0 {
			continue
		}
		if len(count) == 0 {
			first, common = keys[0], m
		}
		if count[keys[0]]++; count[keys[0]] > count[common.Keys()[0]] {
			common = m
		}
	}
	return common
}

// objectsOf are the group objects of a job, in the order of the dialects: those that its pods name and, in dialects in which they name
// none, those that the job owns.
func (w *View) objectsOf(job *gang.Job, names []gang.Key, precedence gang.Precedence) []*gang.Declaration {
	named := map[gang.Dialect]gang.Key{}
	for _, key := range names {
		named[key.Dialect] = key
	}
	var found []*gang.Declaration
	for _, r := range precedence.Readers() {
		key, ok := named[r.Dialect]
		switch {
		case ok && w.byKey().named[key] != nil:
			found = append(found, w.byKey().named[key])
		case !ok && job.Meta.UID != "":
			if d := w.byKey().owned[ownedGroup{r.Dialect, job.Meta.Namespace, job.Meta.UID}]; d != nil {
				found = append(found, d)
			}
		}
	}
	return found
}

// ownedBy reports whether a group object is a job's, or that of an earlier one of its kind and name, or nobody's.
func (w *View) ownedBy(d *gang.Declaration, job *gang.Job) bool {
	if d.Owner == "" || d.Owner == job.Meta.UID {
		return true
	}
	u := w.Object(d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name)
	if u == nil {
		return false
	}
	ref := metav1.GetControllerOf(u)
	return ref != nil && kindOf(ref) == job.Kind.GroupKind() && ref.Name == job.Meta.Name
}

// meant adds to the group objects that a job owns, and that its pods do not name, those that are meant for them by their name: it is that of the job, or stands
// in a label or an annotation that is nearly one by which pods name a group. One that something else owns is not, nor is one that has members.
func (w *View) meant(job *gang.Job, pods []*corev1.Pod, precedence gang.Precedence, all []gang.Declaration) []gang.Declaration {
	var names []string
	for _, entries := range []map[string]string{pods[0].Labels, pods[0].Annotations} {
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			if dialect.MembershipKeyLike(key) != "" {
				names = append(names, entries[key])
			}
		}
	}
	if job.Bare == nil {
		names = append(names, job.Meta.Name)
	}
	for _, r := range precedence.Readers() {
		for _, name := range names {
			d := w.byKey().named[gang.Key{Dialect: r.Dialect, Namespace: job.Meta.Namespace, Name: name}]
			if d != nil && w.ownedBy(d, job) && len(w.naming(d.Key)) == 0 && !slices.ContainsFunc(all, func(other gang.Declaration) bool { return sameObject(other, *d) }) {
				all = append(all, *d)
			}
		}
	}
	return all
}

func (w *View) declaredByBudget(pods []*corev1.Pod) gang.Declared {
	for _, pod := range pods {
		if d, ok := pdb.Find(pod, w.Snap.DisruptionBudgets); ok {
			all := gang.Declared{Decl: &d, Named: d.Key}
			w.addTopology(nil, pods, &all)
			return all
		}
	}
	return gang.Declared{}
}

// bare makes up a job from a pod without one: the pods of its gang, with those that their maker has yet to make, or the pod alone.
func (w *View) bare(pod *corev1.Pod) *gang.Job {
	name, pods := pod.Name, []*corev1.Pod{pod}
	groups := groupsOf(pod, dialect.Readers())
	if len(groups) > 0 {
		name, pods = groups[0].name, withoutReplaced(w.podGroups().pods[groups[0]])
	}
	s := &gang.Job{Bare: pods, Reader: gang.JobReader{Names: []string{"pod"}}}
	s.Kind = corev1.SchemeGroupVersion.WithKind("Pod")
	s.Meta = *pod.ObjectMeta.DeepCopy()
	s.Meta.Name, s.Meta.UID, s.Seen = name, types.UID("bare:"+pod.Namespace+"/"+name), true
	role := gang.Role{Name: "Member", Replicas: int32(len(pods)), Template: corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}}
	role.Template.Spec.NodeName = "" // a pod that takes the place of another may go elsewhere
	if len(pod.Spec.Containers) > 0 {
		role.Main = pod.Spec.Containers[0].Name
	}
	s.Roles = []gang.Role{role}
	if len(groups) > 0 {
		w.addMaker(s)
	}
	return s
}

// podGroup is a group that pods name, in the words of one dialect.
type podGroup struct {
	dialect         gang.Dialect
	namespace, name string
}

// groupsOf are the groups that a pod names in the dialects of some readers, the one that counts first.
func groupsOf(pod *corev1.Pod, readers []gang.Reader) (groups []podGroup) {
	for _, r := range readers {
		if name, ok := r.GroupOf(pod); ok {
			groups = append(groups, podGroup{r.Dialect, pod.Namespace, name})
		}
	}
	return groups
}

// podGroupIndex is the pods of each group, and the groups in the order of their first pods.
type podGroupIndex struct {
	pods  map[podGroup][]*corev1.Pod
	order []podGroup
}

func (w *View) podGroups() podGroupIndex {
	type ofPods struct{}
	return Once(w, ofPods{}, func() podGroupIndex {
		x, readers := podGroupIndex{pods: map[podGroup][]*corev1.Pod{}}, dialect.Readers()
		for _, pod := range w.Snap.Pods {
			for _, g := range groupsOf(pod, readers) {
				if x.pods[g] == nil {
					x.order = append(x.order, g)
				}
				x.pods[g] = append(x.pods[g], pod)
			}
		}
		return x
	})
}

// BareGangs are jobs that are made up, of the gangs of a namespace, or of all if it is empty, that have a pod without a node and none with a job.
func (w *View) BareGangs(namespace string) (jobs []*gang.Job) {
	for _, pods := range w.bareGroups(namespace) {
		if slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return p.Spec.NodeName == "" && !gang.Ended(p)
		}) {
			jobs = append(jobs, w.bare(pods[0]))
		}
	}
	return jobs
}

// bareGroups are the pods of each gang of a namespace, or of all if it is empty, that has none with a job.
func (w *View) bareGroups(namespace string) (all [][]*corev1.Pod) {
	readers := dialect.Readers()
	for _, g := range w.podGroups().order {
		pods := w.podGroups().pods[g]
		if namespace != "" && g.namespace != namespace || groupsOf(pods[0], readers)[0] != g {
			continue
		}
		if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return w.byIdentity()[w.root(p)] != nil }) {
			all = append(all, pods)
		}
	}
	return all
}

// bareNamed are jobs that are made up of the gangs of a namespace that have a name, or whose maker has it.
func (w *View) bareNamed(namespace, name string) (jobs []*gang.Job) {
	for _, pods := range w.bareGroups(namespace) {
		if s := w.bare(pods[0]); s.Meta.Name == name || s.Maker != nil && s.Maker.Name == name {
			jobs = append(jobs, s)
		}
	}
	return jobs
}

// GroupPods are the pods that name a group object.
func (w *View) GroupPods(d gang.Declaration) []*corev1.Pod { return w.referring(d.Key.Dialect)[d.Key] }

// JobOfGroup is the job that owns a group object or whose pods name it; nil if none does.
func (w *View) JobOfGroup(d gang.Declaration) *gang.Job {
	if s := w.byIdentity()[gang.Identity{Namespace: d.Key.Namespace, UID: d.Owner}]; s != nil {
		return s
	}
	for _, pod := range w.GroupPods(d) {
		if s := w.byIdentity()[w.root(pod)]; s != nil {
			return s
		}
	}
	return nil
}

package view

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/dialect/pdb"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/dialect/yunikorn"
)

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
	names := append(membership.Keys(), namedByLabels(pods, membership, precedence)...)
	podsExist := slices.ContainsFunc(members, func(m gang.Member) bool { return m.Pod != nil })
	singly := podsExist && pods[0].Annotations[gang.DialectAnnotation] == string(gang.None) // its members are meant to be placed one by one
	found, owned, unjoined := splitJoined(w.objectsOf(job, names, precedence), names, podsExist)
	switch {
	case singly:
		unjoined = nil
	case podsExist && len(names) == 0:
		unjoined = w.intended(job, pods, precedence, unjoined)
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
	if i := slices.IndexFunc(found, func(d *gang.Declaration) bool { return d.Key == key }); i >= 0 {
		all.Decl = found[i]
	} else {
		declareFromPods(&all, job, members, pods)
	}
	for _, d := range found {
		if d.Key != key && (all.Decl == nil || !sameObject(*d, *all.Decl)) {
			all.Ignored = append(all.Ignored, *d)
		}
	}
	if all.OfScheduler = podsExist && !singly && all.Decl != nil && volcano.MadeFor(pods[0], *all.Decl); all.OfScheduler {
		intended := w.intended(job, pods, precedence, append(all.Ignored, unjoined...))
		all.Unjoined, all.Ignored = slices.DeleteFunc(intended, func(d gang.Declaration) bool { return d.Key == key }), nil
	}
	all.FirstPods, all.Apart = dialect.First(job, key), dialect.Apart(members, key)
	w.addTopology(job, pods, &all)
	return all
}

// splitJoined sorts the group objects of a job: those that count, of which some are named by no pod but owned by the job, and those that do not count because pods
// have been made that do not name them.
func splitJoined(objects []*gang.Declaration, names []gang.Key, podsExist bool) (found []*gang.Declaration, owned []gang.Key, unjoined []gang.Declaration) {
	for _, d := range objects {
		reader, _ := dialect.ReaderOf(d.Key.Dialect)
		switch {
		case slices.Contains(names, d.Key):
			found = append(found, d)
		case podsExist && !reader.Adopts:
			unjoined = append(unjoined, *d)
		default:
			found, owned = append(found, d), append(owned, d.Key)
		}
	}
	return found, owned, unjoined
}

// declareFromPods adds the declaration of a gang whose dialect has it in the annotations of its pods. Placeholders of YuniKorn stand for no more members of a
// role than the job has.
func declareFromPods(all *gang.Declared, job *gang.Job, members []gang.Member, pods []*corev1.Pod) {
	reader, ok := dialect.ReaderOf(all.Named.Dialect)
	if !ok || reader.FromPods == nil {
		return
	}
	d, err := reader.FromPods(all.Named, pods)
	all.Decl, all.Problem, all.TopologyProblem = &d, err, d.TopologyProblem
	all.ByPlaceholders = all.Named.Dialect == gang.YuniKorn && gang.SchedulerOf(job, members) == yunikorn.SchedulerName
	if !all.ByPlaceholders {
		return
	}
	for _, r := range job.Roles {
		for name, n := range d.RoleMin {
			if strings.EqualFold(name, r.Name) {
				d.RoleMin[name] = min(n, r.Replicas)
			}
		}
	}
}

// sameObject reports whether two dialects read the same object.
func sameObject(a, b gang.Declaration) bool {
	return a.UID == b.UID && a.Kind == b.Kind && a.Key.Name == b.Key.Name
}

// namedByLabels are the groups that pods name by labels and annotations although Kubernetes' own field, which alone counts, names one.
func namedByLabels(pods []*corev1.Pod, membership gang.Membership, precedence gang.Precedence) (keys []gang.Key) {
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

// precedence is that of the dialects for pods of a scheduler. A cluster has few schedulers and many gangs.
func (w *View) precedence(schedulerName string) gang.Precedence {
	type ofScheduler string
	return Once(w, ofScheduler(schedulerName), func() gang.Precedence {
		if slices.Contains(w.Snap.Schedulers, schedulerName) { // only our own takes one
			return dialect.OurPrecedence(dialect.Readers(), schedulerName)
		}
		return dialect.Precedence(dialect.Readers(), schedulerName)
	})
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

// ownedBy reports whether a group object is a job's, or that of an earlier one of its kind and name, or no object's.
func (w *View) ownedBy(d *gang.Declaration, job *gang.Job) bool {
	return d.Owner == "" || d.Owner == job.Meta.UID || w.OfPredecessor(d, job)
}

// OfPredecessor reports whether a group object is that of an earlier job of the same kind and name.
func (w *View) OfPredecessor(d *gang.Declaration, job *gang.Job) bool {
	u := w.Object(d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name)
	if u == nil || d.Owner == "" || d.Owner == job.Meta.UID {
		return false
	}
	ref := metav1.GetControllerOf(u)
	return ref != nil && gang.OwnerKind(ref) == job.Kind.GroupKind() && ref.Name == job.Meta.Name
}

// intended adds to the group objects that a job owns, and that its pods do not name, those that are intended for them: their name is that of the job, or the
// value of a label or an annotation whose key is nearly a membership key. A group that another object owns, or that has members, is not.
func (w *View) intended(job *gang.Job, pods []*corev1.Pod, precedence gang.Precedence, all []gang.Declaration) []gang.Declaration {
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

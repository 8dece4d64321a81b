package gangcache

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// record is one pod, with what compose asks of it.
type record struct {
	pod    *corev1.Pod
	cohort cohort
	claims claims
	key    gang.Key
	in     bool // whether key says anything

	terms  Terms
	min    int32 // as its own marks say, 0 for none
	minErr error
	role   string
}

// cohort is what can be expected of a pod.
type cohort int

const (
	live  cohort = iota // it has a place or wants one
	gone                // it has its place and leaves it
	ended               // it has succeeded or failed
)

// cohorts are pods by uid.
type cohorts [3]map[types.UID]*record

func newCohorts() cohorts {
	return cohorts{map[types.UID]*record{}, map[types.UID]*record{}, map[types.UID]*record{}}
}

func (c cohorts) count() int { return len(c[live]) + len(c[gone]) + len(c[ended]) }

// leaving tells a member that has its place and is being deleted. It may be so
// for minutes, or for ever on a node that is dead, and it does not help its gang
// any more.
func leaving(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && pod.Spec.NodeName != ""
}

func (r *Roster) newRecord(pod *corev1.Pod, c cohort) *record {
	rec := &record{pod: pod, cohort: c, claims: claimsOf(pod, r.readers(pod.Spec.SchedulerName)), terms: Terms{Priority: corev1helpers.PodPriority(pod)}}
	if pod.Spec.PreemptionPolicy != nil {
		rec.terms.Policy = *pod.Spec.PreemptionPolicy
	}
	return rec
}

// put points a record to its gang.
func (r *Roster) put(rec *record, key gang.Key) {
	rec.key, rec.in, rec.min, rec.minErr, rec.role = key, true, 0, nil, ""
	for _, reader := range r.readers(rec.pod.Spec.SchedulerName) {
		if reader.Dialect != key.Dialect {
			continue
		}
		if reader.FromPods != nil {
			d, err := reader.FromPods(key, []*corev1.Pod{rec.pod})
			if rec.minErr = err; err == nil {
				rec.min = d.MinMember
			}
		}
		if reader.RoleOf != nil {
			rec.role = reader.RoleOf(rec.pod)
		}
	}
}

// claim makes a record findable by what may change its gang.
func (r *Roster) claim(rec *record) {
	for _, key := range rec.claims.keys() {
		if r.claimed[key] == nil {
			r.claimed[key] = map[*record]bool{}
		}
		r.claimed[key][rec] = true
	}
	if rec.claims.owner != "" {
		owner := ownerKey{rec.pod.Namespace, rec.claims.owner}
		if r.owned[owner] == nil {
			r.owned[owner] = map[*record]bool{}
		}
		r.owned[owner][rec] = true
	}
}

func (r *Roster) unclaim(rec *record) {
	for _, key := range rec.claims.keys() {
		if delete(r.claimed[key], rec); len(r.claimed[key]) == 0 {
			delete(r.claimed, key)
		}
	}
	owner := ownerKey{rec.pod.Namespace, rec.claims.owner}
	if delete(r.owned[owner], rec); len(r.owned[owner]) == 0 {
		delete(r.owned, owner)
	}
}

// turn is one change of the roster, under its lock. What it touched is
// published when it ends.
type turn struct {
	roster *Roster
	keys   []gang.Key
	shown  []types.UID
}

func (t *turn) touch(key gang.Key) {
	if !slices.Contains(t.keys, key) {
		t.keys = append(t.keys, key)
	}
}

// join puts a record into the gang that counts for it now.
func (t *turn) join(rec *record) {
	key, ok := t.roster.resolve(rec.claims, rec.pod.Namespace)
	if !ok {
		rec.key, rec.in = gang.Key{}, false
		return
	}
	t.roster.put(rec, key)
	t.roster.entry(key).pods[rec.cohort][rec.pod.UID] = rec
	t.touch(key)
}

func (t *turn) leave(rec *record) {
	if !rec.in {
		return
	}
	delete(t.roster.entry(rec.key).pods[rec.cohort], rec.pod.UID)
	t.touch(rec.key)
}

// resolve moves records for which another gang counts than before.
func (t *turn) resolve(records map[*record]bool) {
	for rec := range records {
		key, ok := t.roster.resolve(rec.claims, rec.pod.Namespace)
		if ok == rec.in && key == rec.key {
			continue
		}
		t.leave(rec)
		t.join(rec)
		if rec.cohort == live {
			t.shown = append(t.shown, rec.pod.UID)
		}
	}
}

func (t *turn) deleteObject(key gang.Key, kind schema.GroupKind) {
	if e := t.roster.gangs[key]; e != nil {
		delete(e.objects, kind)
		t.touch(key)
		t.resolve(t.roster.claimed[key])
	}
}

func (t *turn) deleteBudget(key gang.Key, object Object) {
	owner := ownerKey{key.Namespace, object.Owner}
	if t.roster.budgets[owner] == key {
		delete(t.roster.budgets, owner)
	}
	delete(t.roster.entry(key).objects, object.GroupKind)
	t.touch(key)
	t.resolve(t.roster.owned[owner])
}

// end publishes the gangs that were touched.
func (t *turn) end() Change {
	change := Change{Keys: t.keys, Shown: t.shown}
	r := t.roster
	for _, key := range t.keys {
		e := r.entry(key)
		terms := e.agree(r, key.Dialect)
		changed := terms != e.terms
		e.terms = terms
		group, _ := e.compose(r, key)
		if group == nil {
			r.sink.Delete(key.Namespace, key.VirtualName())
		} else {
			r.sink.Set(group)
		}
		if len(e.objects)+e.pods.count() == 0 {
			delete(r.gangs, key)
			continue
		}
		if !changed {
			continue
		}
		for uid := range e.pods[live] {
			change.Shown = append(change.Shown, uid)
		}
		if group != nil {
			change.Terms = append(change.Terms, types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
		}
	}
	slices.Sort(change.Shown)
	change.Shown = slices.Compact(change.Shown)
	return change
}

// compare orders pods by name.
func compare(a, b metav1.Object) int {
	return cmp.Or(cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetUID(), b.GetUID()))
}

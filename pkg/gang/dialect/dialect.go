// Package dialect knows every gang format that gangctl reads, and which of several counts for a pod.
package dialect

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kai"
	"github.com/gangctl/gangctl/pkg/gang/dialect/koordinator"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kubebatch"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/dialect/yunikorn"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
)

// Readers are the dialects in the order in which they count for a pod that names gangs in several. PodDisruptionBudgets, which
// pods do not name, come after them.
func Readers() []gang.Reader {
	return []gang.Reader{
		native.Reader(), schedulerplugins.Reader(), volcano.Reader(), kubebatch.Reader(), labels.Reader(), koordinator.Reader(), kai.Reader(),
		yunikorn.Reader(), kueue.Reader(), leaderworkerset.Reader(),
	}
}

// ReaderOf finds the reader of a dialect; ok is false for one that is not known, and for [gang.None].
func ReaderOf(d gang.Dialect) (r gang.Reader, ok bool) {
	for _, r := range Readers() {
		if r.Dialect == d {
			return r, true
		}
	}
	return gang.Reader{}, false
}

// ByKind finds the reader of the dialect in which objects of a kind declare gangs.
func ByKind(kind schema.GroupKind) (r gang.Reader, ok bool) {
	for _, r := range Readers() {
		if slices.ContainsFunc(r.Kinds, func(served gang.Served) bool { return served.GroupKind == kind }) {
			return r, true
		}
	}
	return gang.Reader{}, false
}

// Schedulers are the names of the schedulers that are known to read some dialect. A name may stand twice.
func Schedulers() (names []string) {
	for _, r := range Readers() {
		names = append(names, r.Schedulers...)
	}
	return names
}

// Precedence is the order of some dialects for the pods of a scheduler: where dialects share a label or an annotation, the one that
// the scheduler is known for comes first.
func Precedence(readers []gang.Reader, schedulerName string) gang.Precedence {
	return byAffinity(readers, func(r gang.Reader) int { return Affinity(r, schedulerName) })
}

// OurPrecedence is that order where gangctl's own scheduler serves the name: it reads its dialects whatever the name is known for, which only decides between
// those that share a label or an annotation.
func OurPrecedence(readers []gang.Reader, schedulerName string) gang.Precedence {
	return byAffinity(readers, func(r gang.Reader) int {
		if affinity := Affinity(r, schedulerName); affinity > 0 {
			return affinity
		}
		return ofOurs(r)
	})
}

func byAffinity(readers []gang.Reader, affinityOf func(gang.Reader) int) gang.Precedence {
	var known, possible, unread []gang.Reader
	for _, r := range readers {
		switch affinity := affinityOf(r); {
		case affinity > 0:
			known = append(known, r)
		case affinity == 0:
			possible = append(possible, r)
		default:
			unread = append(unread, r)
		}
	}
	return gang.Precedence{Read: append(known, possible...), Unread: unread, Outside: ray.CleansUp}
}

// ReadByOurs reports whether gangctl's own scheduler reads a dialect. Kueue admits gangs and places none, and the gangs of YuniKorn are placeholders of its own.
func ReadByOurs(r gang.Reader) bool { return r.Dialect != gang.Kueue && r.Dialect != gang.YuniKorn }

// ofOurs is the affinity of gangctl's own scheduler to a dialect for which its name is not known.
func ofOurs(r gang.Reader) int {
	if ReadByOurs(r) {
		return 0
	}
	return -1
}

// OfTemplate is the gang that the pods of a job reference, as far as their template shows; ok is false if it names none. Which objects
// exist is not known here.
func OfTemplate(job *gang.Job) (key gang.Key, ok bool) {
	if len(job.Roles) == 0 {
		return gang.Key{}, false
	}
	template := job.Roles[0].Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace = job.Meta.Namespace
	return named(pod)
}

// First is how many pods of a job that end before its members are made are in a group all the same: Kubeflow Trainer puts every pod of a TrainJob there.
func First(job *gang.Job, key gang.Key) (n int32) {
	reader, known := ReaderOf(key.Dialect)
	if !known || key.Namespace != job.Meta.Namespace {
		return 0
	}
	for _, role := range job.First {
		if name, ok := reader.GroupOf(&corev1.Pod{ObjectMeta: role.Template.ObjectMeta, Spec: role.Template.Spec}); ok && name == key.Name {
			n = gang.Sum(n, role.Replicas)
		}
	}
	return n
}

// Apart is how many members have a node and are in another group than the gang's.
func Apart(members []gang.Member, key gang.Key) (n int32) {
	reader, known := ReaderOf(key.Dialect)
	if !known || reader.Implied {
		return 0
	}
	for _, m := range members {
		if m.Pod == nil || m.Pod.Spec.NodeName == "" {
			continue
		}
		if name, ok := reader.GroupOf(m.Pod); ok && name != key.Name {
			n++
		}
	}
	return n
}

// named is the gang that a pod references, as far as the pod shows.
func named(pod *corev1.Pod) (key gang.Key, ok bool) {
	return gang.MembershipOf(pod, Precedence(Readers(), pod.Spec.SchedulerName)).Resolve(func(gang.Key) bool { return false })
}

// DeclaredByTemplate is what the labels and annotations in the template of a job declare about the gang that it names; ok is false if that is up to an object.
func DeclaredByTemplate(job *gang.Job, key gang.Key) (d gang.Declaration, ok bool) {
	reader, known := ReaderOf(key.Dialect)
	if !known || reader.FromPods == nil {
		return gang.Declaration{}, false
	}
	d, err := reader.FromPods(key, gang.PodsOf(job, nil))
	return d, err == nil
}

// Affinity is how likely a scheduler reads a dialect: 1 if it is known to, -1 if it is known to read another one only, 0 if nothing is
// known.
func Affinity(r gang.Reader, schedulerName string) int {
	if slices.Contains(r.Schedulers, schedulerName) {
		return 1
	}
	if schedulerName == corev1.DefaultSchedulerName || schedulerName == "" {
		return 0 // many clusters replace the default scheduler by one that reads gangs
	}
	if schedulerName == schedulerplugins.DefaultScheduler {
		return ofOurs(r)
	}
	for _, other := range Readers() {
		if slices.Contains(other.Schedulers, schedulerName) {
			return -1
		}
	}
	return 0
}

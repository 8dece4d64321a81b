// Package events picks, from the events of a namespace, those of one job: about the job itself, what declares its gang, and
// its pods, those that are gone included. It is pure.
package events

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/occurrence"
	"github.com/gangctl/gangctl/pkg/diagnose/published"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/kind/volcanojob"
)

// Family are the objects that belong to a job.
type Family struct {
	// made is the kind of the object that the controller makes of the job, and madeAs its name; empty for kinds without.
	made      schema.GroupKind
	madeAs    string
	kind      schema.GroupKind
	name      string
	created   time.Time
	published string
	uids      map[types.UID]bool
	groups    map[string]bool
	member    *regexp.Regexp
}

// NewFamily finds what the job's pods name, and knows its own pods by their names, also those that are gone. Pods of others are
// passed over: those that neither the job nor a Job of its own controls.
func NewFamily(job *gang.Job, pods []*corev1.Pod) *Family {
	kind := job.Kind.GroupKind()
	f := &Family{kind: kind, made: job.Reader.Makes, madeAs: job.MadeAs, name: job.Meta.Name, created: job.Meta.CreationTimestamp.Time, published: published.EventName(job.Meta.UID),
		uids: map[types.UID]bool{job.Meta.UID: true}, groups: map[string]bool{job.Meta.Name: true, job.Meta.Name + "-" + string(job.Meta.UID): true}} // as Volcano calls those of its Jobs
	indexed := false
	for _, pod := range pods {
		if !job.Owns(pod) {
			continue
		}
		f.uids[metav1.GetControllerOfNoCopy(pod).UID], f.uids[pod.UID] = true, true
		_, has := pod.Annotations[batchv1.JobCompletionIndexAnnotation]
		indexed = indexed || has
		for _, r := range dialect.Readers() {
			if name, ok := r.GroupOf(pod); ok {
				f.groups[name] = true
			}
		}
	}
	f.member = memberNames(kind, job.Meta.Name, indexed)
	return f
}

// memberNames are the names that controllers give the pods and services of a job: JOB-ROLE-INDEX, and for an MPIJob's launcher
// JOB-launcher or JOB-launcher-RANDOM. Those of a Job of Kubernetes itself are JOB-RANDOM, or JOB-INDEX-RANDOM if it is indexed; the Jobs
// of a JobSet are JOB-ROLE-NUMBER, as are the pods of a Job of Volcano. Those of a LeaderWorkerSet are JOB-REPLICA for a leader, and JOB-REPLICA-NUMBER for its workers. Those of a
// RayCluster are CLUSTER-head-RANDOM and CLUSTER-GROUP-worker-RANDOM, and that of a RayJob is JOB-RANDOM.
func memberNames(kind schema.GroupKind, job string, indexed bool) *regexp.Regexp {
	pattern := `-[a-z]+-[0-9]+$`
	r, known := kinds.ByKind(kind)
	switch {
	case kind.Kind == "MPIJob":
		pattern = `-(launcher|[a-z]+-[0-9]+|launcher-` + random + `)$`
	case kind == jobset.Reader().GroupKind, known && r.Makes == jobset.Reader().GroupKind:
		pattern = `-[a-z0-9-]+-[0-9]+(-[0-9]+)?-` + random + `$`
	case kind == volcanojob.GroupKind():
		pattern = `-[a-z0-9-]+-[0-9]+$`
	case kind == leaderworkerset.Reader().GroupKind:
		pattern = `-[0-9]+(-[0-9]+)?$`
	case kind == ray.ClusterReader().GroupKind:
		pattern = rayMember
	case kind == ray.JobReader().GroupKind:
		pattern = `-` + random + rayMember
	case known && r.PodName == nil && indexed:
		pattern = `-[0-9]+-` + random + `$`
	case known && r.PodName == nil:
		pattern = `-` + random + `$`
	}
	return regexp.MustCompile("^" + regexp.QuoteMeta(job) + pattern)
}

// rayMember ends the name of a pod of a RayCluster.
const rayMember = `-(head|[a-z0-9.-]+-worker)-` + random + `$`

// random is the suffix of generated names: five letters, none of them a vowel.
const random = `[bcdfghjklmnpqrstvwxz2456789]{5}`

// Published is the name of the event that is no event, but holds the answer that a scheduler published.
func (f *Family) Published() string { return f.published }

// Has reports whether an event is about the job, its gang or one of its pods. What happened before the job was created happened to
// another one of the same name.
func (f *Family) Has(e *corev1.Event) bool {
	o := e.InvolvedObject
	if e.Name == f.published {
		return false // that is an answer and no event: why-pending shows it
	}
	if o.UID != "" && f.uids[o.UID] {
		return true
	}
	if occurrence.Last(e).Before(f.created) {
		return false
	}
	switch {
	case isAbout(e, f.kind):
		return o.Name == f.name && o.UID == ""
	case isAbout(e, f.made):
		return f.madeAs != "" && o.Name == f.madeAs
	}
	switch o.Kind {
	case "Pod", "Service":
		return f.member.MatchString(o.Name)
	case "PodGroup":
		return f.groups[o.Name]
	case "Workload": // of Kueue: tfjob-NAME-HASH
		return strings.HasPrefix(o.Name, strings.ToLower(f.kind.Kind)+"-"+f.name+"-")
	}
	return false
}

// isAbout reports whether an event is about an object of a kind: those of two API groups may have one name, as the Jobs of Kubernetes and of Volcano do. Not every
// event says of which it is.
func isAbout(e *corev1.Event, kind schema.GroupKind) bool {
	o := e.InvolvedObject
	return o.Kind == kind.Kind && (o.APIVersion == "" || schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).Group == kind.Group)
}

// compare orders events: the one that happened last is the last.
func compare(a, b *corev1.Event) int {
	return cmp.Or(occurrence.Last(a).Compare(occurrence.Last(b)), occurrence.First(a).Compare(occurrence.First(b)), cmp.Compare(a.InvolvedObject.Kind, b.InvolvedObject.Kind),
		cmp.Compare(a.InvolvedObject.Name, b.InvolvedObject.Name), cmp.Compare(a.Name, b.Name))
}

// Pick are the events of the family, the latest last.
func Pick(all []*corev1.Event, f *Family) []*corev1.Event {
	found := slices.DeleteFunc(slices.Clone(all), func(e *corev1.Event) bool { return !f.Has(e) })
	slices.SortFunc(found, compare)
	return found
}

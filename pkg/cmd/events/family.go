package events

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/explain/published"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/workload/summary"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// family are the objects that belong to a job.
type family struct {
	uid       types.UID
	name      string
	created   time.Time
	published string
	uids      map[types.UID]bool
	groups    map[string]bool
	member    *regexp.Regexp
}

// newFamily finds what the job's pods name, and knows its own pods by their names, also those that are gone.
func newFamily(job *unstructured.Unstructured, pods []*corev1.Pod) *family {
	f := &family{uid: job.GetUID(), name: job.GetName(), created: job.GetCreationTimestamp().Time, published: published.EventName(job.GetUID()),
		uids: map[types.UID]bool{job.GetUID(): true}, groups: map[string]bool{job.GetName(): true},
		member: regexp.MustCompile("^" + regexp.QuoteMeta(job.GetName()) + `-[a-z]+-[0-9]+$`)}
	for _, pod := range pods {
		if summary.Owner(pod) != f.uid {
			continue
		}
		f.uids[pod.UID] = true
		for _, r := range dialect.Readers() {
			if name, ok := r.GroupOf(pod); ok {
				f.groups[name] = true
			}
		}
	}
	return f
}

// has reports whether an event is about the job, its gang or one of its pods. What happened before the job was created happened to
// another one of the same name.
func (f *family) has(e *corev1.Event) bool {
	o := e.InvolvedObject
	if e.Name == f.published {
		return false // that is an answer and no event: why-pending shows it
	}
	if f.uids[o.UID] {
		return true
	}
	if last(e).Before(f.created) {
		return false
	}
	switch o.Kind {
	case tfjob.Kind:
		return o.Name == f.name && o.UID == ""
	case "Pod":
		return f.member.MatchString(o.Name)
	case "PodGroup":
		return f.groups[o.Name]
	case "Workload": // of Kueue: tfjob-NAME-HASH
		return strings.HasPrefix(o.Name, strings.ToLower(tfjob.Kind)+"-"+f.name+"-")
	case "Service":
		return f.member.MatchString(o.Name)
	}
	return false
}

// first and last are when an event happened, and when it did so again. New events have a time of their own, and a series.
func first(e *corev1.Event) time.Time {
	switch {
	case !e.FirstTimestamp.IsZero():
		return e.FirstTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

func last(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return first(e)
}

func count(e *corev1.Event) int32 {
	if e.Series != nil {
		return max(1, e.Series.Count)
	}
	return max(1, e.Count)
}

// pick are the events of the family, the latest last.
func (o *Options) pick(all []corev1.Event, f *family) []corev1.Event {
	var found []corev1.Event
	for i := range all {
		if f.has(&all[i]) && (len(o.Types) == 0 || slices.Contains(o.Types, all[i].Type)) {
			found = append(found, all[i])
		}
	}
	slices.SortFunc(found, func(a, b corev1.Event) int {
		return cmp.Or(last(&a).Compare(last(&b)), first(&a).Compare(first(&b)), cmp.Compare(a.InvolvedObject.Kind, b.InvolvedObject.Kind),
			cmp.Compare(a.InvolvedObject.Name, b.InvolvedObject.Name), cmp.Compare(a.Name, b.Name))
	})
	return found
}

package preemption

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	hierarchy "k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

// membership finds what a pod belongs to: the gang that the engine knows, the one
// that its labels name where another scheduler placed it, or the job that fails
// without it. Of the last two no pod can be done without, for all that is known. A
// job of a kind that cannot be suspended is one such: its pods are deleted together. A gang that is part of a composite group which is disrupted as a
// whole goes with all of that.
func (pl *Plugin) membership() func(*corev1.Pod) (Membership, bool) {
	p := pl.preemptor
	spared := p.sparedNow() // once for all pods
	groups, trees := pl.handle.SnapshotSharedLister().PodGroups(), pl.handle.SnapshotSharedLister().CompositePodGroups()
	return func(pod *corev1.Pod) (Membership, bool) {
		m := Membership{Min: -1, Priority: corev1helpers.PodPriority(pod), Spared: spared.Has(gang.IdentityOf(pod))}
		job, owned := suspend.Of(pod)
		brittle := owned && job.Brittle()
		if brittle {
			m.Gang, m.Spared = jobGang+job.Namespace+"/"+string(job.UID), m.Spared || spared.Has(job.Identity())
		}
		group, in := engine.GroupOf(pod)
		if !in {
			if name, ok := p.foreign.GangOfForeign(pod); ok {
				m.Gang = name
			}
			return m, m.Gang != ""
		}
		declared, err := groups.Get(group.Namespace, group.Name)
		if err == nil {
			if tree := disruptedWith(declared, groups, trees); tree != nil {
				m.Gang, m.Part = compositeGroup+tree.Namespace+"/"+tree.Name, group.String()
				m.Priority = max(m.Priority, ptr.Deref(declared.Spec.Priority, m.Priority), ptr.Deref(tree.Spec.Priority, m.Priority))
				m.Spared = m.Spared || owned && spared.Has(job.Identity())
				return m, true
			}
		}
		if err != nil || declared.Spec.SchedulingPolicy.Gang == nil {
			// Its object is gone, or declares that its pods may start one by one and, unless it states otherwise, go so.
			if err != nil || declared.Spec.DisruptionMode != nil && declared.Spec.DisruptionMode.All != nil {
				m.Gang = group.String()
			}
			return m, m.Gang != ""
		}
		m.Gang = group.String()
		if declared.Spec.Priority != nil {
			m.Priority = max(m.Priority, *declared.Spec.Priority)
		}
		if !brittle {
			m.Min = int(declared.Spec.SchedulingPolicy.Gang.MinCount)
			m.Spared = m.Spared || owned && spared.Has(job.Identity())
		}
		return m, true
	}
}

// What the names of gangs begin with that are not those of a PodGroup: the pods of a job, and a composite group.
const (
	jobGang        = "job "
	compositeGroup = "composite group "
)

// disruptedWith returns the highest of the composite groups that a gang is part of whose pods are all disrupted, or none: the gang goes with them. It
// is nil where there is none.
func disruptedWith(group *schedulingv1beta1.PodGroup, groups fwk.PodGroupLister, trees fwk.CompositePodGroupLister) (highest *schedulingv1alpha3.CompositePodGroup) {
	if group.Spec.ParentCompositePodGroupName == nil {
		return nil
	}
	start := fwk.PodGroupKey(group.Namespace, group.Name)
	hierarchy.TraverseHierarchyUp(group.Namespace, start, groups, trees, func(_ fwk.EntityKey, _ *schedulingv1beta1.PodGroup, tree *schedulingv1alpha3.CompositePodGroup) bool {
		if tree != nil && tree.Spec.DisruptionMode != nil && tree.Spec.DisruptionMode.All != nil {
			highest = tree
		}
		return false
	})
	return highest
}

// sparedNow are the jobs and pods that could not be evicted a while ago.
func (p *Preemptor) sparedNow() sets.Set[gang.Identity] {
	p.mu.Lock()
	defer p.mu.Unlock()
	spared, now := sets.New[gang.Identity](), p.clock.Now()
	for victim, until := range p.spared {
		if now.Before(until) {
			spared.Insert(victim)
		}
	}
	return spared
}

// suspended returns since when a pod goes because its job was suspended; ok is
// false for one of which we did not suspend the job.
func (p *Preemptor) suspended(pod *corev1.Pod) (since time.Time, ok bool) {
	job, owned := suspend.Of(pod)
	if !owned {
		return time.Time{}, false
	}
	return p.jobs.Suspended(job.Identity())
}

// jobsOf are the jobs that are suspended when these units are evicted, each once.
// Of a gang that goes on, none is.
func jobsOf(units []Unit) (jobs []suspend.Target) {
	seen := map[gang.Identity]bool{}
	for _, u := range units {
		if u.Kind != Whole {
			continue
		}
		for _, pod := range u.Pods {
			if job, owned := suspend.Of(pod); owned && job.Possible() && !seen[job.Identity()] {
				seen[job.Identity()] = true
				jobs = append(jobs, job)
			}
		}
	}
	return jobs
}

// mostNamed is how many victims are named.
const mostNamed = 3

// describe reads like: 2 pods of lower priority (ns/a, ns/b) and gang ns/c (4 pods). Of namespaces that the reader does not see only the
// numbers are reported.
func describe(units []Unit, reader audience.Reader) string {
	var pods, gangs []string
	for _, u := range units {
		first := u.Pods[0].Namespace + "/" + u.Pods[0].Name
		seen := reader.Sees(u.Pods[0].Namespace)
		if u.Kind != Whole {
			if !seen {
				first = "one of another namespace"
			}
			pods = append(pods, first)
			continue
		}
		if !seen {
			gangs = append(gangs, reader.Title(audience.New("gang", u.Pods[0].Namespace, u.Gang).Sized(audience.Requests(u.Pods), u.Priority)))
			continue
		}
		name := "the gang of pod " + first
		if strings.HasPrefix(u.Gang, compositeGroup) {
			name = u.Gang
		} else if group, ok := engine.GroupOf(u.Pods[0]); ok {
			name = claims.Describe(group)
		} else if job, owned := suspend.Of(u.Pods[0]); owned {
			name = job.String()
		}
		gangs = append(gangs, fmt.Sprintf("%s (%s)", name, phrase.Count(len(u.Pods), "pod")))
	}
	var parts []string
	if len(pods) > 0 {
		parts = append(parts, fmt.Sprintf("%s of lower priority (%s)", phrase.Count(len(pods), "pod"), list(pods)))
	}
	if len(gangs) > 0 {
		parts = append(parts, list(gangs))
	}
	return strings.Join(parts, " and ")
}

func list(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed:mostNamed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

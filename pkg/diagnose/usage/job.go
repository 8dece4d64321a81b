package usage

import (
	"slices"
	"time"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
)

// JobUsage is the usage of one job.
type JobUsage struct {
	Kind      string     `json:"kind"`
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	UID       string     `json:"uid,omitempty"`
	State     gang.State `json:"state"`
	// Ready members run or have succeeded; Min of Total are needed.
	Ready int32 `json:"ready"`
	Min   int32 `json:"minMember"`
	Total int32 `json:"members"`
	// Requests is what all its members request; Held what its pods hold of nodes.
	Requests Held `json:"requests"`
	Held     Held `json:"held"`
	// Measured is what its pods really use; nil without a metrics API. The caller fills it in.
	Measured *Measured `json:"measured,omitempty"`
	// IdleMinutes are device-minutes that members have held so far while their gang was not whole.
	IdleMinutes float64 `json:"idleHeldMinutes"`
	// WaitSeconds is how long it has waited to run, 0 for one that does not wait.
	WaitSeconds float64 `json:"waitSeconds"`
	Queue       string  `json:"queue,omitempty"`
	// Progress is how far it has come, by its own account; nil if it reports nothing.
	Progress *gang.Progress `json:"progress,omitempty"`
	// Code and Why are why-pending's code and sentence, for a job that does not run. The caller fills them in.
	Code string `json:"code,omitempty"`
	Why  string `json:"why,omitempty"`
}

// String is NAMESPACE/NAME.
func (j JobUsage) String() string { return j.Namespace + "/" + j.Name }

// Other is something that holds room on nodes and is no job: a service, a DaemonSet, a pod of its own.
type Other struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Held      Held   `json:"held"`
}

// Jobs are all jobs of a cluster view that have not ended, or still hold something, and all others that hold room.
type Jobs struct {
	APIVersion string     `json:"apiVersion"`
	At         time.Time  `json:"at"`
	Jobs       []JobUsage `json:"jobs"`
	Others     []Other    `json:"others"`
	// Uncounted is how many ResourceClaims, of these jobs and others, have devices allocated, which are in no number here.
	Uncounted int `json:"claimsNotCounted,omitempty"`
}

// OfJobs reports on the jobs of a cluster view, sorted by namespace and name. What jobs and others hold together is what the nodes use.
func OfJobs(w *view.View) Jobs {
	l := newLedger(w).withRequested()
	report := Jobs{APIVersion: APIVersion, At: w.Now, Jobs: []JobUsage{}, Others: l.others(), Uncounted: Uncounted(w.Snap)}
	l.each(func(_ *gang.Gang, j JobUsage) { report.Jobs = append(report.Jobs, j) })
	return report
}

func (l *ledger) others() []Other {
	all := []Other{}
	for _, h := range l.w.Consumers() {
		if h.Job == nil {
			all = append(all, Other{h.Kind, h.Namespace, h.Name, l.held(h)})
		}
	}
	return all
}

// each visits every job that has not ended, or still holds something.
func (l *ledger) each(visit func(*gang.Gang, JobUsage)) {
	consumers := map[*gang.Job]Held{}
	for _, h := range l.w.Consumers() {
		if h.Job != nil {
			sum := consumers[h.Job]
			sum.Add(l.held(h))
			consumers[h.Job] = sum
		}
	}
	for _, s := range l.w.Jobs() {
		held := consumers[s]
		if s.End != nil && held.Pods == 0 {
			continue
		}
		held.Add(Held{}) // so that it has a map
		g := l.w.Gang(s)
		visit(g, l.job(g, held))
	}
}

func (l *ledger) job(g *gang.Gang, held Held) JobUsage {
	state := gang.StateOf(g, l.w.Now)
	j := JobUsage{Kind: g.Kind.Kind, Namespace: g.Meta.Namespace, Name: g.Meta.Name, UID: string(g.Meta.UID), State: state,
		Ready: g.Count(gang.Running, gang.Succeeded), Min: g.Min, Total: g.Total(), Requests: l.demand(g), Held: held, Queue: queueName(g), Progress: g.Progress}
	if state == gang.Pending || state == gang.Starting || state == gang.Degraded {
		since := g.Meta.CreationTimestamp.Time
		hasRun := state == gang.Degraded || g.Count(gang.Succeeded) > 0 // a Job's next wave has not waited while the one before ran
		if lost := l.brokenSince(g); hasRun && !lost.IsZero() {
			since = lost
		}
		j.WaitSeconds = l.since(since)
	}
	j.IdleMinutes = l.idleMinutes(g)
	return j
}

// In are the jobs and others of one namespace.
func (r Jobs) In(namespace string) Jobs {
	r.Jobs = slices.DeleteFunc(slices.Clone(r.Jobs), func(j JobUsage) bool { return j.Namespace != namespace })
	r.Others = slices.DeleteFunc(slices.Clone(r.Others), func(o Other) bool { return o.Namespace != namespace })
	return r
}

package stages

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// order looks who comes first, and says that the gang fits if nothing is in its way.
func (c *climb) order() state {
	if c.Place == nil && slices.ContainsFunc(c.Missing, func(r answer.Right) bool { return r.Stage == answer.StagePlacement }) {
		return skippedf("without a placement there is no order")
	}
	before := len(c.findings)
	c.queueOrder()
	if len(c.findings) == 0 && c.Place != nil && c.Place.Fits() && c.g.Count(gang.Failed) == 0 {
		c.add(*c.fits())
		return okf("nobody ahead")
	}
	if len(c.findings) > before {
		return ok
	}
	return okf("nobody ahead")
}

// rival is another gang that waits in the same queue.
type rival struct {
	job      *gang.Job
	priority int64
	created  time.Time
}

// queueOrder: in a strictly ordered queue an older gang keeps the younger ones waiting, if it cannot start, or if it takes
// the room when it does.
func (c *climb) queueOrder() {
	queue, rivals := c.rivals()
	var first []*Result
	for _, r := range rivals {
		if c.why == nil {
			return
		}
		why := c.why(r.job)
		if why.Verdict == answer.Failed {
			continue
		}
		if why.Starts() {
			if first = append(first, why); c.roomBeside(first) {
				continue
			}
		}
		c.Ahead = append(c.Ahead, answer.Ahead{Job: r.job.Name(), Reason: "fifo", Needs: whatif.Needs(r.job.Roles, r.job.Total())})
		if !c.has(answer.QueueOrder) {
			c.add(*c.behind(queue, r, why))
		}
	}
}

// roomBeside reports whether the gang still fits, on nodes and in its queue, when others have started before it.
func (c *climb) roomBeside(first []*Result) bool {
	cluster := c.w.Cluster()
	for _, r := range first {
		if r.Place == nil {
			continue
		}
		for _, a := range r.Place.Placement {
			m := r.Party.Members[a.Role][a.Member]
			pod := c.w.Virtual(r.Gang, m)
			pod.Spec.NodeName = a.Node
			cluster = cluster.With(pod)
		}
	}
	if !c.fitOn(cluster, nil).Fits() {
		return false
	}
	wl := c.workload()
	if wl == nil {
		return true
	}
	queue := c.custom("ClusterQueue", "", c.clusterQueueOf(wl))
	if queue == nil {
		return true
	}
	room := c.quotaTree().Room(queue.GetName())
	for _, r := range first {
		room.Assign(asks(r.Gang)...)
	}
	_, short := room.Assign(asks(c.g)...)
	return short == nil
}

func (c *climb) behind(queue string, r rival, why *Result) *Finding {
	needs := whatif.Needs(r.job.Roles, r.job.Total())
	device := request.Device(needs)
	q := needs[device]
	fits := "it is not known to fit"
	if c.Place != nil && c.Place.Fits() {
		fits = "it fits, with room for all members now"
	}
	f := found(answer.StageOrder, answer.QueueOrder, answer.Waiting, answer.Nobody, "%s, but %s is ahead (older, needs %s) in queue %s, which is strictly first in, first out",
		fits, r.job.Name(), phrase.Amount(device, q.Value()), queue).
		fact("queue", queue).fact("ahead", r.job.Name()).since(r.created)
	if why.Starts() {
		f.detail("%s starts first, and takes the room", r.job.Meta.Name)
	} else if why.Primary != nil {
		f.detail("why %s waits: %s", r.job.Meta.Name, why.Primary.Message)
		for _, line := range why.Primary.Details {
			f.detail("  %s", line)
		}
	}
	return f
}

// rivals are the waiting gangs before this one, in order, if the queue is strict; and the queue's name.
func (c *climb) rivals() (string, []rival) {
	if wl := c.workload(); wl != nil && !admittedByKueue(wl) {
		return c.kueueRivals(wl)
	}
	kind, name, ok := c.queueObject()
	if !ok || kind != volcano.QueueKind() || c.g.Decl == nil {
		return "", nil
	}
	for _, q := range c.w.Snap.Custom[kind] {
		f := gang.Fields{Object: q}
		if q.GetName() == name && f.String("spec", "dequeueStrategy") == "fifo" {
			return name, c.volcanoRivals(name)
		}
	}
	return "", nil
}

func (c *climb) volcanoRivals(queue string) []rival {
	mine := rival{priority: int64(c.classValue(c.g.Decl.PriorityClass)), created: c.g.Decl.Created}
	var all []rival
	for _, d := range c.w.Groups() {
		job := c.w.JobOfGroup(d)
		if d.Key.Dialect != gang.Volcano || d.Queue != queue || d.Key == c.g.Decl.Key || job == nil || !c.pending(job) {
			continue
		}
		all = append(all, rival{job, int64(c.classValue(d.PriorityClass)), d.Created})
	}
	return before(all, mine)
}

// pending reports whether a gang still waits for its members to get nodes.
func (c *climb) pending(s *gang.Job) bool {
	g := c.w.Gang(s)
	return s.End == nil && g.Count(gang.Starting, gang.Running, gang.Succeeded) < g.Min
}

func (c *climb) classValue(name string) int32 {
	for _, class := range c.w.Snap.PriorityClasses {
		if class.Name == name {
			return class.Value
		}
	}
	return 0
}

// before are the rivals that come first: higher priority, then older.
func before(all []rival, mine rival) []rival {
	all = slices.DeleteFunc(all, func(r rival) bool {
		return r.priority < mine.priority || r.priority == mine.priority && !r.created.Before(mine.created)
	})
	slices.SortFunc(all, func(a, b rival) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), a.created.Compare(b.created), cmp.Compare(a.job.Name(), b.job.Name()))
	})
	return all
}

func (c *climb) kueueRivals(wl *unstructured.Unstructured) (string, []rival) {
	queue := c.clusterQueueOf(wl)
	q := c.custom("ClusterQueue", "", queue)
	if q == nil {
		return "", nil
	}
	f := gang.Fields{Object: q}
	if f.String("spec", "queueingStrategy") != "StrictFIFO" {
		return "", nil
	}
	all, mine := c.waitingIn(queue, wl)
	return queue, before(all, mine)
}

// waitingIn are the other jobs that wait in a ClusterQueue, and where the one of a Workload stands. One that is switched off,
// or whose LocalQueue is stopped, waits for nothing.
func (c *climb) waitingIn(queue string, wl *unstructured.Unstructured) (all []rival, mine rival) {
	jobs := map[string]*gang.Job{}
	for _, s := range c.w.Jobs() {
		jobs[string(s.Meta.UID)] = s
	}
	entry := func(u *unstructured.Unstructured) rival {
		w := gang.Fields{Object: u}
		r := rival{priority: int64(w.Int32("spec", "priority")), created: u.GetCreationTimestamp().Time}
		for _, ref := range u.GetOwnerReferences() {
			if s := jobs[string(ref.UID)]; s != nil {
				r.job = s
			}
		}
		return r
	}
	for _, u := range c.w.Snap.Custom[kueue.Kind("Workload")] {
		w := gang.Fields{Object: u}
		_, finished := condition(u, "Finished")
		active, told, _ := unstructured.NestedBool(u.Object, "spec", "active")
		r := entry(u)
		if u == wl || r.job == nil || finished == "True" || told && !active || w.Map("status", "admission") != nil || c.clusterQueueOf(u) != queue {
			continue
		}
		all = append(all, r)
	}
	return all, entry(wl)
}

// clusterQueueOf is the ClusterQueue behind a Workload's LocalQueue.
func (c *climb) clusterQueueOf(wl *unstructured.Unstructured) string {
	f := gang.Fields{Object: wl}
	local := c.custom("LocalQueue", wl.GetNamespace(), f.String("spec", "queueName"))
	if local == nil {
		return ""
	}
	l := gang.Fields{Object: local}
	if policy := l.String("spec", "stopPolicy"); policy != "" && policy != "None" && wl != c.workload() {
		return ""
	}
	return l.String("spec", "clusterQueue")
}

// jobOfWorkload names the job behind a Workload.
func (c *climb) jobOfWorkload(u *unstructured.Unstructured) string {
	for _, ref := range u.GetOwnerReferences() {
		return u.GetNamespace() + "/" + ref.Name
	}
	return u.GetNamespace() + "/" + u.GetName()
}

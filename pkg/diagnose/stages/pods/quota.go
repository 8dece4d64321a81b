package pods

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// quotas compares what the whole gang would be charged with what each ResourceQuota allows.
func quotas(c *stage.Context, out *stage.Result, missing []absent) {
	count := countAll(missing)
	for _, q := range slices.Concat(c.View.Snap.ResourceQuotas, reportedQuotas(c)) {
		if q.Namespace != c.Gang.Meta.Namespace {
			continue
		}
		hard := quota.Hard(q)
		for _, key := range slices.Sorted(maps.Keys(hard)) {
			want, own, count := charged(q, key, missing), func() resource.Quantity { return ownCharge(c, q, key) }, count
			limit, used := hard[key], q.Status.Used[key]
			if want.IsZero() {
				more, have, one := objects(c, q, key, missing)
				want, own = more, func() resource.Quantity { return have }
				if one {
					count = 0
				}
			} else {
				want.Add(alongside(c, q, key))
			}
			total := used.DeepCopy()
			total.Add(want)
			if want.Sign() <= 0 || total.Cmp(limit) <= 0 {
				continue
			}
			if raised := q.Spec.Hard[key]; raised.Cmp(limit) > 0 {
				if total.Cmp(raised) <= 0 {
					out.Add(raisedQuota(c, q, key, want, used, limit, raised, count))
					continue
				}
				limit = raised // what is in force is lower for a moment
			}
			out.Add(overQuota(c, q, key, want, own(), used, limit, total, count))
		}
	}
}

// needing begins the clause of what members need that are not there, or, with none of them, what all need together: of a Job whose pods start one by one it is the first.
func needing(c *stage.Context, missing int64) string {
	if missing == 0 {
		return "and the gang needs"
	}
	if g := c.Gang; missing == 1 && g.Decl == nil && g.Min == 1 && g.Total() > 1 {
		return fmt.Sprintf("the first of its %d members needs", g.Total())
	}
	return fmt.Sprintf("%s %s", phrase.Count(missing, "more member"), phrase.Verb(int(missing), "needs", "need"))
}

// charged is what a quota is charged for members.
func charged(q *corev1.ResourceQuota, key corev1.ResourceName, members []absent) (sum resource.Quantity) {
	for _, m := range members {
		if quota.Applies(q, m.pod) {
			charge := m.charge[key].DeepCopy()
			charge.Mul(m.count)
			sum.Add(charge)
		}
	}
	return sum
}

// alongside is what a quota is charged for the pods that are made when the members run, and run with them.
func alongside(c *stage.Context, q *corev1.ResourceQuota, key corev1.ResourceName) (sum resource.Quantity) {
	if len(c.Gang.Alongside) == 0 || len(c.View.Helpers(c.Gang.Job)) > 0 { // which are there
		return sum
	}
	for _, role := range c.Gang.Alongside {
		if pod := c.View.OfTemplate(c.Gang.Meta.Namespace, role.Template); quota.Applies(q, pod) {
			charge := quota.Charge(pod)[key]
			charge.Mul(int64(role.Replicas))
			sum.Add(charge)
		}
	}
	return sum
}

// raisedQuota finds that a quota allows enough, and that this is not in force yet: the API server goes by status.
func raisedQuota(c *stage.Context, q *corev1.ResourceQuota, key corev1.ResourceName, want, used, limit, raised resource.Quantity, missing int64) *stage.Finding {
	name := quota.Resource(key)
	amount := func(x resource.Quantity) int64 { return request.Amount(name, x) }
	f := stage.Found(answer.NSQuota, "quota %s of namespace %s was raised to %s, and that is not in force yet: %s of %s used, and %s %s", q.Name, q.Namespace,
		phrase.Amount(name, amount(raised)), phrase.Quantity(name, amount(used)), phrase.Amount(name, amount(limit)), needing(c, missing), phrase.Quantity(name, amount(want))).
		See("v1", "ResourceQuota", q, ".status.hard").
		Detail("%d/%d pods exist; requested %s, used %s, limit %s in status, and %s in spec (%s)", c.Gang.Created(), c.Gang.Total(), want.String(), used.String(), limit.String(), raised.String(), key).
		Detail("kube-controller-manager writes the status, within seconds as a rule").
		Fact("quota", q.Name).Fact("resource", string(key)).Fact("requested", want.String()).Fact("used", used.String()).Fact("limit", limit.String()).Fact("raised", raised.String())
	if r := refusalBy(c, refusal.Quota, q.Name); r != nil {
		f.SinceTime(r.First).Detail("the %s %s", r.Resource(), times(c, *r))
	}
	return f
}

// overQuota is a finding with the triple of a quota: requested, used, limit.
func overQuota(c *stage.Context, q *corev1.ResourceQuota, key corev1.ResourceName, want, own, used, limit, total resource.Quantity, missing int64) *stage.Finding {
	whole := own.DeepCopy()
	whole.Add(want)
	f := refusal.OverQuota(q, key, want, whole, used, limit, needing(c, missing), "the gang")
	if more := alongside(c, q, key); !more.IsZero() {
		for _, role := range c.Gang.Alongside {
			f.Detail("its %s counts, too, which is made when the members run", role.Name)
		}
	}
	f.See("v1", "ResourceQuota", q, ".status.used").
		Detail("%d/%d pods exist; requested %s, used %s, limit %s (%s)", c.Gang.Created(), c.Gang.Total(), want.String(), used.String(), limit.String(), key)
	if scopes := quota.Scopes(q); len(scopes) > 0 {
		f.Detail("it counts only pods of scope %s, as those of %s are", phrase.And(scopes), c.Gang.Meta.Name).Fact("scopes", scopes)
	}
	for _, role := range c.Gang.Roles {
		if !strings.HasPrefix(string(key), "limits.") {
			c.Defaulted(f, role.Name, quota.Resource(key))
		}
	}
	users := quotaUsers(c, q, key)
	stage.DetailEach(f, users, func(u quotaUser) string { return u.line })
	if r := refusalBy(c, refusal.Quota, q.Name); r != nil {
		f.SinceTime(r.First).Detail("the %s %s", r.Resource(), times(c, *r))
		if r.Resource() != "pods" {
			f.Detail("%s", r.Message)
		}
	}
	leaveScope(c, f, q)
	f.Fix(refusal.RaiseQuota(q, key, total))
	over := total.DeepCopy()
	over.Sub(limit)
	if f.Code == answer.NSQuota && !countsJobs(c, f, q, key, over) {
		goesOn(c, q, key, users, used, limit)
		lasting(c, f, users, own, used, total, limit)
	}
	return f
}

// lasting makes a finding about a used quota one that no wait helps, where what is charged to jobs that end is not enough, and all users are known. Pods that have
// ended, and count as objects, are for the user to delete, and so are jobs whose pods cannot get nodes.
func lasting(c *stage.Context, f *stage.Finding, users []quotaUser, own, used, total, limit resource.Quantity) {
	known, after, cleared := own.DeepCopy(), total.DeepCopy(), total.DeepCopy()
	var ended []*corev1.Pod
	var of []*gang.Job
	for _, u := range users {
		known.Add(u.charge)
		switch {
		case u.ended:
			cleared.Sub(u.charge)
			ended = append(ended, u.pods...)
			if job := c.View.JobWithUID(c.Gang.Meta.Namespace, u.of); job != nil {
				of = append(of, job)
			}
		case u.ends:
			after.Sub(u.charge)
			cleared.Sub(u.charge)
		}
	}
	if after.Cmp(limit) <= 0 || known.Cmp(used) < 0 {
		return
	}
	f.As(answer.Blocked, answer.Admin)
	if len(ended) == 0 || cleared.Cmp(limit) > 0 {
		if fixes := withoutStuck(c, f, users, after, limit); len(fixes) > 0 {
			if slices.ContainsFunc(fixes, func(x stage.Fix) bool { return x.By == answer.User }) {
				f.As(answer.Blocked, answer.User)
			}
			f.Fixes = append(fixes, f.Fixes...)
			return
		}
		f.Detail("no end of a job frees enough of it")
		return
	}
	names := c.PodNames(ended)
	a := answer.Action{Kind: answer.Fix, By: answer.User, Text: "delete " + phrase.Names(names) + ", which have ended", Cost: "their logs are gone", Change: map[string]any{"pods": names}}
	if len(names) <= command.MaxObjects {
		a.Command = c.Kubectl(append([]string{"delete", "pod"}, names...)...)
	}
	byOwners(c, &a, of)
	f.As(answer.Blocked, a.By).Detail("pods that have ended count until they are deleted").Fix(stage.Fix{
		Action: a,
		Apply:  func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Gone(s, ended) },
	})
}

// ownPods are the gang's own pods, with those of the members that helpers run alongside, and of helpers that run alongside members.
func ownPods(c *stage.Context) []*corev1.Pod {
	pods := c.Gang.ExistingPods()
	if whole := c.Gang.Helps; whole != nil && len(whole.Alongside) > 0 {
		pods = append(pods, c.View.Gang(whole).ExistingPods()...)
	}
	if len(c.Gang.Alongside) > 0 {
		for _, h := range c.View.Helpers(c.Gang.Job) {
			pods = append(pods, h.ExistingPods()...)
		}
	}
	return pods
}

// ownCharge is what the gang's own pods are charged already.
func ownCharge(c *stage.Context, q *corev1.ResourceQuota, key corev1.ResourceName) resource.Quantity {
	return held(q, key, ownPods(c))
}

// held is what a quota is charged for pods.
func held(q *corev1.ResourceQuota, key corev1.ResourceName, pods []*corev1.Pod) (sum resource.Quantity) {
	for _, p := range pods {
		if quota.Applies(q, p) {
			sum.Add(quota.Held(p)[key])
		}
	}
	return sum
}

// quotaUser is one of those that a quota is charged for.
type quotaUser struct {
	line   string
	charge resource.Quantity
	pods   []*corev1.Pod
	// ends is whether the charge goes without help; ended, whether it is for pods that have ended.
	ends, ended bool
	// of is the job behind pods with a node, or the controller of those that have ended; empty for none.
	of types.UID
	// by is what has pods with a node.
	by *view.Consumer
	// job is the one behind pods without a node, and why, if that was found, why they have none.
	job *gang.Job
	why *stage.Diagnosis
}

// quotaUsers are the others that are charged.
func quotaUsers(c *stage.Context, q *corev1.ResourceQuota, key corev1.ResourceName) []quotaUser {
	type usersOf struct {
		quota *corev1.ResourceQuota
		key   corev1.ResourceName
	}
	find := func() []quotaUser { return slices.Concat(placedUsers(c, q, key), endedUsers(c, q, key)) }
	var all []quotaUser
	if slices.Contains(c.View.Snap.ResourceQuotas, q) {
		all = view.Once(c.View, usersOf{q, key}, find)
	} else { // it is made up for this gang
		all = find()
	}
	others := func(ended bool) []quotaUser {
		return slices.DeleteFunc(slices.Clone(all), func(u quotaUser) bool {
			own := u.of == c.Gang.Meta.UID || c.Gang.Helps != nil && u.of == c.Gang.Helps.Meta.UID
			return u.ended != ended || u.of != "" && own
		})
	}
	return slices.Concat(withoutOwn(c, q, key, others(false)), unplacedUsers(c, q, key), others(true))
}

// withoutOwn leaves out of users with pods on nodes what is the gang's own: pods of it that no job owns. The rest of the application of which it is a part does not end before it.
func withoutOwn(c *stage.Context, q *corev1.ResourceQuota, key corev1.ResourceName, users []quotaUser) (all []quotaUser) {
	own := sets.New(ownPods(c)...)
	for _, u := range users {
		if u.by.Makes(c.Gang) || slices.ContainsFunc(u.pods, own.Has) {
			u.pods = slices.DeleteFunc(slices.Clone(u.pods), own.Has)
			u.charge = held(q, key, u.pods)
			u.ends = u.ends && !slices.ContainsFunc(u.pods, func(p *corev1.Pod) bool { return !c.EndsBefore(u.by, p) })
			u.line = fmt.Sprintf("%s %s, of which it is a part, is charged %s for other pods", u.by.Kind, u.by.Name, u.charge.String())
		}
		if !u.charge.IsZero() {
			all = append(all, u)
		}
	}
	return all
}

// placedUsers are all that are charged for pods with a node.
func placedUsers(c *stage.Context, q *corev1.ResourceQuota, key corev1.ResourceName) (users []quotaUser) {
	for _, h := range c.View.Consumers() {
		if h.Namespace != q.Namespace {
			continue
		}
		goes, stays := quotaUser{ends: h.Ends, by: h}, quotaUser{by: h} // a job may leave some of its pods when it ends
		if h.Job != nil {
			goes.of, stays.of = h.Job.Meta.UID, h.Job.Meta.UID
		}
		for _, p := range h.Pods {
			if !quota.Applies(q, p) {
				continue
			}
			u := &goes
			if h.Ends && h.Keeps(p) {
				u = &stays
			}
			u.pods = append(u.pods, p)
			u.charge.Add(quota.Held(p)[key])
			u.ends = u.ends || c.EndsAlone(h, p) // whichever gang it is found for
		}
		if !goes.charge.IsZero() {
			goes.line = fmt.Sprintf("%s %s is charged %s", h.Kind, h.Name, goes.charge.String())
			users = append(users, goes)
		}
		if !stays.charge.IsZero() {
			stays.line = fmt.Sprintf("%s %s is charged %s for pods that stay when it ends", h.Kind, h.Name, stays.charge.String())
			users = append(users, stays)
		}
	}
	return users
}

// endedUsers are the pods that have ended and still count, by what owns them.
func endedUsers(c *stage.Context, q *corev1.ResourceQuota, key corev1.ResourceName) (users []quotaUser) {
	type ownedBy struct {
		name string
		uid  types.UID
	}
	at := map[ownedBy]int{}
	for _, p := range c.View.Snap.Pods {
		if !podutil.IsPodTerminal(p) || !quota.Applies(q, p) {
			continue
		}
		owner, of := "pod "+p.Name, types.UID("")
		if o := metav1.GetControllerOfNoCopy(p); o != nil {
			owner, of = o.Kind+" "+o.Name, o.UID
		}
		charge := quota.Held(p)[key]
		if charge.IsZero() {
			continue
		}
		i, known := at[ownedBy{owner, of}]
		if !known {
			i = len(users)
			at[ownedBy{owner, of}] = i
			users = append(users, quotaUser{ended: true, of: of})
		}
		users[i].charge.Add(charge)
		users[i].pods = append(users[i].pods, p)
		users[i].line = fmt.Sprintf("%s is charged %s for pods that have ended", owner, users[i].charge.String())
	}
	return users
}

func refusalBy(c *stage.Context, kind refusal.Kind, object string) *refusal.Refusal {
	for _, r := range refusal.Of(c.View, c.Gang) {
		if r.Kind == kind && r.Object == object {
			return &r
		}
	}
	return nil
}

// reportedQuotas are the quotas that refused a pod and may not be read: the API server's message has what there is to know. What is assumed of pods changes what is used.
func reportedQuotas(c *stage.Context) []*corev1.ResourceQuota {
	if c.View.Snap.CanList("resourcequotas", c.Gang.Meta.Namespace) {
		return nil
	}
	var all []*corev1.ResourceQuota
	refusals, _ := refusal.ByQuota(c.View, c.Gang)
	for _, r := range refusals {
		used, limit, ok := r.Amounts()
		if !ok || slices.ContainsFunc(all, func(q *corev1.ResourceQuota) bool { return q.Name == r.Object }) {
			continue
		}
		q := &corev1.ResourceQuota{}
		q.Namespace, q.Name = c.Gang.Meta.Namespace, r.Object
		q.Status.Used, q.Status.Hard = used, limit
		all = append(all, q)
	}
	if len(all) == 0 || c.View.Present() == c.View {
		return all
	}
	was, now := c.View.Present().Snap.Pods, c.View.Snap.Pods
	return quota.Take(quota.Release(all, notAmong(was, now, c.Gang.Meta.Namespace)), notAmong(now, was, c.Gang.Meta.Namespace))
}

// notAmong are the pods of a namespace that are not among others.
func notAmong(pods, others []*corev1.Pod, namespace string) (left []*corev1.Pod) {
	there := map[*corev1.Pod]bool{}
	for _, p := range others {
		there[p] = p.Namespace == namespace
	}
	for _, p := range pods {
		if p.Namespace == namespace && !there[p] {
			left = append(left, p)
		}
	}
	return left
}

package pods

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// unplacedUsers are the others that are charged for pods that wait themselves: a quota counts a pod from its create on.
func unplacedUsers(c *stage.Context, q *corev1.ResourceQuota, key corev1.ResourceName) (users []quotaUser) {
	own := map[*corev1.Pod]bool{}
	for _, p := range c.Gang.ExistingPods() {
		own[p] = true
	}
	for _, h := range c.View.Unplaced(q.Namespace) {
		if h.Job != nil && h.Job.Meta.UID == c.Gang.Meta.UID {
			continue
		}
		u := quotaUser{ends: h.Ends && !h.Makes(c.Gang) || c.View.Going(h), pods: h.Pods} // the application of which the gang is a part does not end before it
		if !c.View.Going(h) {
			u.job = h.Job
		}
		for _, p := range h.Pods {
			if !own[p] && quota.Applies(q, p) {
				u.charge.Add(quota.Held(p)[key])
			}
		}
		if !u.charge.IsZero() {
			u.line = fmt.Sprintf("%s %s is charged %s for pods without a node", h.Kind, h.Name, u.charge.String())
			users = append(users, u)
		}
	}
	return users
}

// maxDiagnosed is how many jobs that a quota charges for pods without a node are diagnosed. Of those beyond it is not known that they do not go on.
const maxDiagnosed = 12

// maxStuck is how many jobs are offered for deletion each by itself, and of how many it is reported why they do not start.
const maxStuck = 4

// goesOn finds out which of the users without a node get there and end without help. One that is blocked does not; nor do those that lack something of this
// very quota, where it has too little for each of them when all others have ended: they wait for each other.
func goesOn(c *stage.Context, q *corev1.ResourceQuota, key corev1.ResourceName, users []quotaUser, used, limit resource.Quantity) {
	if c.Diagnose == nil {
		return // that they go on is not known to be wrong
	}
	free := limit.DeepCopy()
	free.Sub(used)
	lacks, diagnosed := map[int]resource.Quantity{}, 0 // of those that may go on
	for i := range users {
		u := &users[i]
		switch {
		case !u.ends:
		case u.job == nil || diagnosed == maxDiagnosed:
			free.Add(u.charge)
		default:
			diagnosed++
			u.ends, u.why = false, c.Diagnose(u.job)
			if lacking, waits := lacksOf(u.why, q, key); waits || u.why.Verdict != answer.Blocked {
				lacks[i] = lacking
			}
		}
	}
	for progress := true; progress; {
		progress = false
		for i := range users {
			if lacking, waits := lacks[i]; waits && (lacking.IsZero() || lacking.Cmp(free) <= 0) {
				users[i].ends, progress = true, true
				free.Add(users[i].charge)
				delete(lacks, i)
			}
		}
	}
}

// lacksOf is what a gang lacks of a quota, by its diagnosis, and whether it waits for that before all else.
func lacksOf(why *stage.Diagnosis, q *corev1.ResourceQuota, key corev1.ResourceName) (lacking resource.Quantity, waits bool) {
	for i, f := range why.Findings() {
		if f.Code != answer.NSQuota || f.Facts["quota"] != q.Name || f.Facts["resource"] != string(key) {
			continue
		}
		text, _ := f.Facts["requested"].(string)
		if lacking, err := resource.ParseQuantity(text); err == nil {
			return lacking, i == 0
		}
	}
	return lacking, false
}

// withoutStuck are the fixes of a used quota that delete jobs whose pods cannot get nodes: each that is enough by itself, else all together. After is what is used
// when all that ends has ended.
func withoutStuck(c *stage.Context, f *stage.Finding, users []quotaUser, after, limit resource.Quantity) (fixes []stage.Fix) {
	var stuck []quotaUser
	rest := after.DeepCopy()
	for _, u := range users {
		if u.why == nil || u.ends || u.why.Primary == nil {
			continue
		}
		stuck = append(stuck, u)
		rest.Sub(u.charge)
		left := after.DeepCopy()
		if left.Sub(u.charge); left.Cmp(limit) <= 0 && len(fixes) < maxStuck {
			fixes = append(fixes, deleteJobs(c, u))
		}
	}
	if len(stuck) == 0 || rest.Cmp(limit) > 0 {
		return nil
	}
	for _, u := range stuck[:min(len(stuck), maxStuck)] {
		text, _ := c.WhyOther(u.why)
		f.Detail("why %s does not start: %s", u.job.Meta.Name, text)
	}
	if len(fixes) == 0 {
		fixes = append(fixes, deleteJobs(c, stuck...))
	}
	return fixes
}

// deleteJobs makes jobs of the namespace give back what they are charged.
func deleteJobs(c *stage.Context, users ...quotaUser) stage.Fix {
	var names []string
	var pods []*corev1.Pod
	var owners []gang.Identity
	var of []*gang.Job
	do := ""
	for _, u := range users {
		names, of = append(names, u.job.Meta.Name), append(of, u.job)
		pods = append(pods, c.View.Gang(u.job).ExistingPods()...)
		owners = append(owners, gang.IdentityOf(&u.job.Meta))
		do = command.Then(do, command.Delete(u.job))
	}
	verb, start := phrase.Verb(len(names), "loses its place", "lose their places"), phrase.Verb(len(names), "it does not start", "they do not start")
	a := answer.Action{Kind: answer.Fix, By: answer.User, Text: "delete or suspend " + phrase.And(names), Cost: fmt.Sprintf("%s %s; %s anyway", phrase.And(names), verb, start),
		Change: map[string]any{"jobs": names}, Command: do}
	byOwners(c, &a, of)
	return stage.Fix{Action: a, Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Gone(s, pods, owners...) }}
}

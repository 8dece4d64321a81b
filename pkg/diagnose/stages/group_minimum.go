package stages

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// creating is how long an operator may take between one pod of a job and the next.
const creating = time.Minute

// minimum: more members are asked for than the job makes.
func (c *climb) minimum() {
	g := c.g
	total := g.Total() + c.succeeded()
	if g.Min > total && c.growing() {
		c.add(*found(answer.StageGang, answer.BelowQuorum, answer.Waiting, answer.Nobody, "%s %s, and the gang needs %d: pods of other Jobs may follow", phrase.Count(total, "pod"), phrase.Verb(int(total), "exists", "exist"), g.Min).
			fact("exist", total).fact("needed", g.Min))
		return
	}
	if g.Min > total {
		c.add(*c.minTooHigh(fmt.Sprintf("%s wants %s, but the job makes %d", describe(*g.Decl), phrase.Count(g.Min, "member"), total), total))
		return
	}
	for _, role := range sortedKeys(g.Decl.RoleMin) {
		n := g.Decl.RoleMin[role]
		if r := g.RoleByName(role); r != nil && n > r.Replicas {
			c.add(*c.minTooHigh(fmt.Sprintf("%s wants %d members of %s, but the job makes %d", describe(*g.Decl), n, r.Name, r.Replicas), total))
			return
		}
	}
}

// growing reports whether other Jobs may be about to add members: those that a JobSet, say, makes one after the other.
func (c *climb) growing() bool {
	kept := c.g.Kind.Group == batchv1.GroupName && metav1.GetControllerOf(&c.g.Meta) != nil
	return (kept || len(c.g.Parts) > 0) && c.w.Age(c.lastMade()) < creating
}

// succeeded is how many pods of a Job of Kubernetes have ended well: it asks for so many fewer.
func (c *climb) succeeded() int32 {
	for _, j := range c.w.Snap.Jobs {
		if j.UID == c.g.Meta.UID && c.g.Meta.UID != "" {
			return j.Status.Succeeded
		}
	}
	return 0
}

// minimumOfJob: no object says what the minimum is, but one that an operator makes would say what the job does.
func (c *climb) minimumOfJob() {
	g := c.g
	total := g.Total()
	if g.MinMember == nil || *g.MinMember <= total || c.held {
		return
	}
	n := *g.MinMember
	c.add(*found(answer.StageGang, answer.MinMemberTooHigh, answer.Blocked, answer.User, "spec.runPolicy.schedulingPolicy.minAvailable wants %s, but the job makes %d: so many can never run", phrase.Count(n, "member"), total).
		see(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".spec.runPolicy.schedulingPolicy.minAvailable").fact("minMember", n).fact("replicas", total).
		fix(Fix{
			Action: answer.Action{Kind: answer.Fix, By: answer.User, Change: map[string]any{"minMember": int64(total)}, Text: fmt.Sprintf("set minAvailable to %d", total), Command: PatchMin(g, total)},
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Edit(s, g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name, func(u *unstructured.Unstructured) {
					whatif.Set(u, int64(total), "spec", "runPolicy", "schedulingPolicy", "minAvailable")
				})
			},
		}))
}

func (c *climb) minTooHigh(message string, total int32) *Finding {
	g := c.g
	d := g.Decl
	f := found(answer.StageGang, answer.MinMemberTooHigh, answer.Blocked, answer.User, "%s: so many can never run", message).
		fact("minMember", g.Min).fact("replicas", total)
	if d.Kind.Kind == "" || d.Key.Dialect == gang.PDB {
		// The minimum is written on the pods, or in what their operator makes with them: it takes new ones.
		return f.fix(Fix{
			Action: answer.Action{Kind: answer.Fix, By: answer.User, Change: map[string]any{"minMember": int64(total)}, Text: fmt.Sprintf("submit it again with a minimum of %d", total), Command: PatchMin(g, total)},
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Resubmit(s, g, func(spec *whatif.Spec) { spec.Min = total })
			},
		})
	}
	f.seeRef(d.Kind.GroupVersion().String()+"/"+d.Kind.Kind+"/"+d.Key.Namespace+"/"+d.Key.Name, ".spec.minMember")
	if g.MinMember != nil {
		f.detail("the job asks for it: spec.runPolicy.schedulingPolicy.minAvailable is %d", *g.MinMember)
	}
	return f.fix(Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Change: map[string]any{"minMember": int64(total)}, Text: fmt.Sprintf("set minMember to %d", total), Command: PatchMin(g, total)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := whatif.Edit(s, d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name, func(u *unstructured.Unstructured) {
				if d.Key.Dialect == gang.Native {
					whatif.Set(u, int64(total), "spec", "schedulingPolicy", "gang", "minCount")
					return
				}
				whatif.Set(u, int64(total), "spec", "minMember")
				unstructured.RemoveNestedField(u.Object, "spec", "minTaskMember")
			})
			return whatif.Edit(n, g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name, func(u *unstructured.Unstructured) {
				if g.MinMember != nil {
					whatif.Set(u, int64(total), "spec", "runPolicy", "schedulingPolicy", "minAvailable")
				}
			})
		},
	})
}

// lastMade is when the youngest of the pods was made, or the job if there is none.
func (c *climb) lastMade() time.Time {
	var last time.Time
	for _, m := range c.g.Members {
		if m.Pod != nil {
			last = latest(last, m.Pod.CreationTimestamp.Time)
		}
	}
	if last.IsZero() {
		return c.g.Meta.CreationTimestamp.Time
	}
	return last
}

// quorum: fewer pods exist than the gang, or one of its roles, needs, and no earlier stage said why.
func (c *climb) quorum() {
	g := c.g
	exist, of, need, what := g.Total()-g.Count(gang.Missing), g.Total(), g.Min, "pods"
	if exist >= need {
		r, least := c.shortRole()
		if r == nil {
			return
		}
		exist, of, need, what = c.made(r.Name), r.Replicas, least, "pods of "+r.Name
	}
	if c.held || len(c.failedBefore()) > 0 || need > of || c.w.Assumed || c.gatedByQueue() || g.Suspended {
		return
	}
	age := c.w.Age(g.Meta.CreationTimestamp.Time)
	if exist == 0 && what == "pods" && age < creating {
		return // the operator is about to begin; what follows is computed from the templates
	}
	f := found(answer.StageGang, answer.BelowQuorum, answer.Waiting, answer.Nobody, "%d of %d %s exist, and the gang needs %d: the controller is creating them", exist, of, what, need).
		fact("exist", exist).fact("needed", need).detail("%s", c.byRole())
	if age > creating && c.w.Age(c.lastMade()) > creating {
		f.Message = fmt.Sprintf("%d of %d %s exist, and the gang needs %d: the controller has not made the others in %s and does not say why", exist, of, what, need, phrase.Age(age))
		f.run(c.operatorLog())
	}
	c.add(*f)
}

// shortRole is the first role of which fewer pods exist than its own minimum; nil if there is none.
func (c *climb) shortRole() (short *gang.Role, least int32) {
	if c.g.Decl == nil {
		return nil, 0
	}
	for _, name := range sortedKeys(c.g.Decl.RoleMin) {
		if r, n := c.g.RoleByName(name), c.g.Decl.RoleMin[name]; r != nil && c.made(r.Name) < n {
			return r, n
		}
	}
	return nil, 0
}

// made is how many pods of a role there are.
func (c *climb) made(role string) (n int32) {
	for _, m := range c.g.Members {
		if m.Role == role && m.State != gang.Missing {
			n++
		}
	}
	return n
}

package ladder

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/command"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/explain/whatif"
	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

// creating is how long an operator may take between one pod of a job and the next.
const creating = time.Minute

// group looks at what declares the gang: is it there, is it this job's, can its minimum be reached, do enough pods exist.
func (c *climb) group() state {
	g := c.g
	switch {
	case c.held && g.Decl == nil:
		return skippedf("the stages before come first")
	case g.Suspended && c.heldByKueue() && g.Decl == nil:
		return skippedf("made when Kueue admits the job")
	case g.Decl == nil:
		c.groupMissing()
		return okf("no gang is declared")
	}
	c.notes()
	c.foreign()
	c.minimum()
	c.quorum()
	return okf(c.created())
}

// notes are remarks on the declaration that block nothing.
func (c *climb) notes() {
	for _, d := range c.g.Ignored {
		c.Notes = append(c.Notes, fmt.Sprintf("%s %s is not read by scheduler %s: %s counts", kindName(d), d.Key.Name, c.g.Scheduler, describe(*c.g.Decl)))
	}
	if c.g.Problem != nil {
		c.Notes = append(c.Notes, c.g.Problem.Error())
	}
}

func kindName(d gang.Declaration) string {
	if d.Kind.Kind == "" {
		return string(d.Key.Dialect) + " group"
	}
	return d.Kind.Kind + "." + d.Kind.Group
}

// describe names a declaration in a sentence.
func describe(d gang.Declaration) string { return kindName(d) + " " + d.Key.Name }

// groupMissing: the pods name a group that is not there, or the operator should have made one and did not. A refusal that
// is about the queue is the queue stage's to tell.
func (c *climb) groupMissing() {
	g := c.g
	probe, asked := c.groupProbe()
	expected, byOperator := g.Named.Name != "" && needsObject(g.Named.Dialect), c.operatorMakesGroups()
	switch {
	case asked && !probe.Accepted():
		if queueInMessage.MatchString(probe.Message) {
			c.held = true
			return
		}
		c.held = true
		c.add(*found(answer.StageGang, answer.PodGroupMissing, answer.Blocked, answer.Admin, "the PodGroup of %s cannot be created: %s", g.Meta.Name, probe.Message).
			fact("code", probe.Code).fact("message", probe.Message))
	case expected:
		f := found(answer.StageGang, answer.PodGroupMissing, answer.Blocked, answer.User, "the pods name PodGroup %s, which does not exist in namespace %s", g.Named.Name, g.Named.Namespace).
			fact("podGroup", g.Named.Name).fact("dialect", string(g.Named.Dialect)).
			run(c.kubectl("get", "podgroups", "-o", "wide"))
		c.add(*f)
	case byOperator && !c.w.Assumed && g.Count(world.Missing) > 0 && c.w.Age(g.Meta.CreationTimestamp.Time) > creating:
		c.held = true
		c.add(*found(answer.StageGang, answer.PodGroupMissing, answer.Blocked, answer.Admin,
			"the operator makes a PodGroup first and has made none for %s in %s: only its log says why", g.Meta.Name, phrase.Age(c.w.Age(g.Meta.CreationTimestamp.Time))).
			run(c.operatorLog()))
	}
}

func (c *climb) operatorLog() string {
	for _, d := range c.operators() {
		return command.Kubectl(d.Namespace, "logs", "deployment/"+d.Name, "--tail=100")
	}
	return command.Kubectl("", "get", "deployments", "-A")
}

// groupProbe is the answer to the create of the gang's PodGroup, if it was tried.
func (c *climb) groupProbe() (snapshot.Probe, bool) {
	for _, p := range c.w.Snap.Probes {
		if p.Kind == "PodGroup" && p.Namespace == c.g.Meta.Namespace && p.Name == c.g.Meta.Name {
			return p, true
		}
	}
	return snapshot.Probe{}, false
}

// needsObject reports whether a dialect is more than marks on pods.
func needsObject(d gang.Dialect) bool {
	for _, r := range dialect.Readers() {
		if r.Dialect == d {
			return len(r.Kinds) > 0 && r.FromPods == nil
		}
	}
	return false
}

// operatorMakesGroups reports whether the operator's flags switch gang scheduling on.
func (c *climb) operatorMakesGroups() bool { return c.gangSchedulerFlag() != "" }

// gangSchedulerFlag is the scheduler that the operator gives to gangs; "" if it leaves them alone.
func (c *climb) gangSchedulerFlag() string {
	for _, d := range c.operators() {
		for _, container := range d.Spec.Template.Spec.Containers {
			for _, arg := range slices.Concat(container.Command, container.Args) {
				if name, ok := strings.CutPrefix(strings.TrimLeft(arg, "-"), "gang-scheduler-name="); ok && name != "none" {
					return name
				}
				if arg == "--enable-gang-scheduling" || arg == "--enable-gang-scheduling=true" {
					return "volcano"
				}
			}
		}
	}
	return ""
}

// foreign: the object belongs to an earlier job of the same name.
func (c *climb) foreign() {
	d := c.g.Decl
	if d.Owner == "" || d.Owner == c.g.Meta.UID || d.Key.Dialect == gang.Kueue || c.g.Bare != nil {
		return
	}
	for _, s := range c.w.Jobs() {
		if s.Meta.UID == d.Owner {
			return // pods may join the group of another job on purpose
		}
	}
	c.add(*found(answer.StageGang, answer.PodGroupForeign, answer.Blocked, answer.User, "%s belongs to a job that is gone: %s is another one of the same name", describe(*d), c.g.Meta.Name).
		seeRef(d.Kind.GroupVersion().String()+"/"+d.Kind.Kind+"/"+d.Key.Namespace+"/"+d.Key.Name, ".metadata.ownerReferences").
		run(c.kubectl("delete", strings.ToLower(d.Kind.Kind)+"."+d.Kind.Group, d.Key.Name)))
}

// minimum: more members are asked for than the job makes.
func (c *climb) minimum() {
	g := c.g
	total := g.Total()
	if g.Min > total {
		c.add(*c.minTooHigh(fmt.Sprintf("%s wants %s, but the job makes %d", describe(*g.Decl), phrase.Count(g.Min, "member"), total), total))
		return
	}
	for role, n := range g.Decl.RoleMin {
		if r := g.RoleByName(role); r != nil && n > r.Replicas {
			c.add(*c.minTooHigh(fmt.Sprintf("%s wants %d members of %s, but the job makes %d", describe(*g.Decl), n, r.Name, r.Replicas), total))
		}
	}
}

func (c *climb) minTooHigh(message string, total int32) *Finding {
	g := c.g
	d := g.Decl
	f := found(answer.StageGang, answer.MinMemberTooHigh, answer.Blocked, answer.User, "%s: so many can never run", message).
		fact("minMember", g.Min).fact("replicas", total)
	if d.Kind.Kind == "" {
		return f
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

// quorum: fewer pods exist than the gang needs, and no earlier stage said why.
func (c *climb) quorum() {
	g := c.g
	exist := g.Total() - g.Count(world.Missing)
	if c.held || exist >= g.Min || g.Min > g.Total() || c.w.Assumed || c.gatedByQueue() || g.Suspended {
		return
	}
	age := c.w.Age(g.Meta.CreationTimestamp.Time)
	if exist == 0 && age < creating {
		return // the operator is about to begin; what follows is computed from the templates
	}
	f := found(answer.StageGang, answer.BelowQuorum, answer.Waiting, answer.Nobody, "%d of %d pods exist, and the gang needs %d: the controller is creating them", exist, g.Total(), g.Min).
		fact("exist", exist).fact("needed", g.Min).detail("%s", c.byRole())
	if age > creating {
		f.Message = fmt.Sprintf("%d of %d pods exist, and the gang needs %d: the controller has not made the others in %s and does not say why", exist, g.Total(), g.Min, phrase.Age(age))
		f.run(c.operatorLog())
	}
	c.add(*f)
}

package stages

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/setup/argv"
)

// group looks at what declares the gang: is it there, is it this job's, can its minimum be reached, do enough pods exist.
func (c *climb) group() state {
	g := c.g
	switch {
	case c.held && g.Decl == nil:
		return skippedf("the stages before come first")
	case g.Suspended && c.heldByKueue() && g.Decl == nil:
		return skippedf("made when Kueue admits the job")
	case g.Decl == nil && c.deniedGroups():
		return unknown("PodGroups may not be listed")
	case g.Decl == nil:
		c.minimumOfJob()
		c.groupMissing()
		c.unmarked()
		return okf("no gang is declared")
	}
	c.notes()
	if c.undeclared() {
		return ok
	}
	c.unmodelled()
	c.foreign()
	c.minimum()
	c.quorum()
	return okf(c.created())
}

// undeclared: the pods name a group that does not exist, in a dialect in which they could say all by themselves, and do not.
func (c *climb) undeclared() bool {
	g := c.g
	byName := slices.ContainsFunc(g.Members, func(m gang.Member) bool { return m.Pod != nil && m.Pod.Labels[koordinatorGroup] != "" })
	if g.Problem == nil || g.Decl.Kind.Kind != "" || g.Decl.Key.Dialect != gang.Koordinator || !byName {
		return false
	}
	f := found(answer.StageGang, answer.PodGroupMissing, answer.Blocked, answer.User, "the pods name PodGroup %s, which does not exist in namespace %s, and do not say themselves how many are needed", g.Named.Name, g.Named.Namespace).
		fact("podGroup", g.Named.Name).fact("dialect", string(g.Named.Dialect)).run(c.kubectl("get", "podgroups", "-o", "wide"))
	c.likeNamed(f)
	c.add(*c.createGroup(f))
	return true
}

// notes are remarks on the declaration that block nothing.
func (c *climb) notes() {
	for _, d := range c.g.Ignored {
		c.Notes = append(c.Notes, fmt.Sprintf("%s %s is not read by scheduler %s: %s counts", kindName(d), d.Key.Name, c.g.Scheduler, describe(*c.g.Decl)))
	}
	g := c.g
	if len(g.Parts) > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%s has pods of several Jobs, which start together: %s", g.Named.Name, phrase.Names(g.Parts)))
	}
	if g.Problem != nil {
		c.Notes = append(c.Notes, g.Problem.Error())
	}
	if d := g.Decl; g.MinMember != nil && *g.MinMember != d.MinMember && d.Kind.Kind != "" && d.Owner == g.Meta.UID {
		c.Notes = append(c.Notes, fmt.Sprintf("the job asks for a minimum of %d, but %s says %d, and that counts", *g.MinMember, describe(*d), d.MinMember))
	}
	if g.Count(gang.Starting, gang.Running) == 0 && g.Count(gang.Pending) > 0 && c.bypassed() {
		c.Notes = append(c.Notes, fmt.Sprintf("scheduler %s does not read %s: it places members one by one", g.Scheduler, describe(*g.Decl)))
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
		c.likeNamed(f)
		c.add(*c.createGroup(f))
	case byOperator && !c.w.Assumed && g.Count(gang.Missing) > 0 && c.w.Age(g.Meta.CreationTimestamp.Time) > creating:
		c.held = true
		c.add(*found(answer.StageGang, answer.PodGroupMissing, answer.Blocked, answer.Admin,
			"the operator makes a PodGroup first and has made none for %s in %s: only its log says why", g.Meta.Name, phrase.Age(c.w.Age(g.Meta.CreationTimestamp.Time))).
			see(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".metadata.creationTimestamp").fact("gangScheduler", c.gangSchedulerFlag()).run(c.operatorLog()))
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
		if p.Kind == "PodGroup" && p.Namespace == c.g.Meta.Namespace && (p.Name == c.g.Meta.Name || p.Name == c.g.Named.Name) {
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
			if name := flag(container, "gang-scheduler-name"); name != "" && name != "none" {
				return name
			}
			// A boolean that is only named is true.
			if on, given := argv.Last(container, "enable-gang-scheduling"); given && (on == "" || on == "true") {
				return "volcano"
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
	u := c.object(d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name)
	if u == nil {
		return
	}
	// Pods may join the group of something else on purpose. An owner of this job's kind and name was this job's predecessor.
	if ref := metav1.GetControllerOf(u); ref == nil || ref.Kind != c.g.Kind.Kind || ref.Name != c.g.Meta.Name {
		return
	}
	c.add(*found(answer.StageGang, answer.PodGroupForeign, answer.Blocked, answer.User, "%s belongs to a job that is gone: %s is another one of the same name", describe(*d), c.g.Meta.Name).
		seeRef(d.Kind.GroupVersion().String()+"/"+d.Kind.Kind+"/"+d.Key.Namespace+"/"+d.Key.Name, ".metadata.ownerReferences").
		run(c.kubectl("delete", strings.ToLower(d.Kind.Kind)+"."+d.Kind.Group, d.Key.Name)))
}

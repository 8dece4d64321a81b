package stages

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/placement"
)

// denied notes that a list was not allowed, and reports whether it was.
func (c *climb) denied(resource, namespace string) bool {
	if c.w.Snap.CanList(resource, namespace) {
		return false
	}
	c.lack("list", resource, namespace)
	return true
}

// deniedAny notes every one of several lists that was not allowed.
func (c *climb) deniedAny(namespace string, resources ...string) bool {
	some := false
	for _, resource := range resources {
		some = c.denied(resource, namespace) || some
	}
	return some
}

// lack notes a right that this stage would have needed.
func (c *climb) lack(verb, resource, namespace string) {
	r := RightOf(verb, resource, namespace)
	if r.OfCluster() {
		r.Namespace = ""
	}
	r.Stage, r.Lost = c.at, Lost(r, c.at)
	if !slices.ContainsFunc(c.Missing, func(m answer.Right) bool { return m.String() == r.String() }) {
		c.Missing = append(c.Missing, r)
	}
}

// blind finds that the gang's own pods cannot be seen: nothing that is told of members holds then.
func (c *climb) blind() bool {
	c.at = answer.StagePods
	if !c.denied("pods", c.g.Meta.Namespace) {
		return false
	}
	c.add(*found(answer.StagePods, answer.NoPermission, answer.Uncertain, answer.Admin, "how %s is cannot be told: you may not %s", c.g.Meta.Name, joinAnd(names(c.Missing))).
		fact("missing", names(c.Missing)).run(command.Kubectl(c.g.Meta.Namespace, "auth", "can-i", "list", "pods")))
	return true
}

// deniedVolumes notes the lists that placement needs for the volumes and the claimed devices of the gang's pods. What cannot be
// seen must not count as missing.
func (c *climb) deniedVolumes() {
	volumes, devices := false, false
	for _, r := range c.Party.Roles {
		devices = devices || len(r.Pod.Spec.ResourceClaims) > 0
		for _, v := range r.Pod.Spec.Volumes {
			volumes = volumes || v.PersistentVolumeClaim != nil || v.Ephemeral != nil
		}
	}
	c.unseen = placement.Constraints{}
	if volumes {
		own := c.denied("persistentvolumeclaims", c.g.Meta.Namespace)
		if c.deniedAny("", "persistentvolumes", "storageclasses.storage.k8s.io") || own {
			c.unseen.Insert(placement.VolumeClaim, placement.VolumeZone, placement.VolumeNode, placement.VolumeLimits)
		}
	}
	if devices {
		own := c.denied("resourceclaimtemplates.resource.k8s.io", c.g.Meta.Namespace)
		if c.deniedAny("", "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io", "deviceclasses.resource.k8s.io") || own {
			c.unseen.Insert(placement.DRADevices)
		}
	}
}

// deniedGroups notes the lists of group objects, one of which may be this gang's.
func (c *climb) deniedGroups() bool {
	some := false
	for _, r := range dialect.Readers() {
		if r.Dialect != c.g.Named.Dialect && !(c.g.Named.Name == "" && c.operatorMakesGroups()) {
			continue
		}
		for _, kind := range r.Kinds {
			some = c.denied(schema.GroupResource{Group: kind.Group, Resource: kind.Resource}.String(), c.g.Meta.Namespace) || some
		}
	}
	return some
}

// unseenRefusals is the state of the stage of pods where none was found to be refused: that means little if nobody could look.
func (c *climb) unseenRefusals() state {
	ns := c.g.Meta.Namespace
	unseen := c.deniedAny(ns, "resourcequotas", "limitranges", "events")
	if c.w.Snap.Denial(snapshot.VerbCreate, "pods", ns) != nil {
		c.lack(snapshot.VerbCreate, "pods", ns)
		unseen = true
	}
	if unseen {
		return unknown(c.created())
	}
	return okf(c.created())
}

// mayCreate finds that the caller may not submit the job that they ask about. Its pods are for others to create.
func (c *climb) mayCreate() {
	ns := c.g.Meta.Namespace
	for _, d := range c.w.Snap.Denied {
		if d.Verb != snapshot.VerbCreate || d.Resource == "pods" || !c.w.Assumed {
			continue
		}
		c.lack(d.Verb, d.Resource, ns)
		f := found(answer.StageRequest, answer.NoPermission, answer.Uncertain, answer.Admin, "%s cannot be submitted: you may not create %s in namespace %s", c.g.Meta.Name, d.Resource, ns).
			run(command.Kubectl(ns, "auth", "can-i", "create", d.Resource))
		if d.Message != "" {
			f.detail("the API server says: %s", d.Message)
		}
		c.add(*f)
	}
}

// RightOf is the right to a verb on RESOURCE or RESOURCE.GROUP.
func RightOf(verb, resource, namespace string) answer.Right {
	name, group, _ := strings.Cut(resource, ".")
	return answer.Right{Verb: verb, Group: group, Resource: name, Namespace: namespace}
}

// Lost says what cannot be told without a right; stage is the one that would have needed it, empty for none in particular.
func Lost(r answer.Right, stage answer.Stage) string {
	if r.Verb == snapshot.VerbCreate {
		if r.Resource == "pods" {
			return "whether the API server would accept the pods was not tried"
		}
		return "the job cannot be submitted"
	}
	switch r.Resource {
	case "nodes":
		return "placement is unknown"
	case "pods":
		return "what holds the nodes is unknown"
	case "namespaces":
		return "whether the namespace is being deleted is unknown"
	case "events":
		return "what was reported of the job is unknown"
	case "resourcequotas":
		return "how much the namespace may use is unknown"
	case "limitranges":
		return "the namespace's limits and defaults for pods are unknown"
	case "serviceaccounts", "priorityclasses", "runtimeclasses", "validatingwebhookconfigurations", "mutatingwebhookconfigurations":
		return "what the API server checks pods against is not all known"
	case "deployments", "leases":
		if stage == answer.StageController {
			return "whether the job's operator runs is unknown"
		}
		return "whether the gang's scheduler runs is unknown"
	case "podgroups":
		return "how the gang is declared is unknown"
	case "queues", "localqueues", "clusterqueues", "workloads", "resourceflavors":
		return "what the queue allows is unknown"
	case "persistentvolumes", "persistentvolumeclaims", "storageclasses", "csinodes", "csidrivers", "volumeattachments":
		return "where volumes can be used is not all known"
	case "resourceclaims", "resourceclaimtemplates", "resourceslices", "deviceclasses":
		return "which claimed devices are free is unknown"
	}
	return "whose pods hold the nodes, and whether they end, is not all known"
}

// decide marks the rights whose absence may have changed the verdict: a stage that could not be looked at may hide something
// that blocks, which comes before whatever passes by itself, and before what blocks at a later stage.
func (c *climb) decide() {
	order := answer.Stages()
	for i, m := range c.Missing {
		c.Missing[i].Decisive = rank(c.Verdict) > rank(answer.Blocked) ||
			c.Verdict == answer.Blocked && slices.Index(order, m.Stage) < slices.Index(order, c.Primary.Stage)
	}
	slices.SortStableFunc(c.Missing, func(a, b answer.Right) int {
		switch {
		case a.Decisive == b.Decisive:
			return 0
		case a.Decisive:
			return -1
		}
		return 1
	})
}

// names are rights in words.
func names(rights []answer.Right) []string {
	var words []string
	for _, r := range rights {
		words = append(words, r.String())
	}
	return words
}

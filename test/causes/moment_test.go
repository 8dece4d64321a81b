package causes

import "slices"

// What a cluster becomes when time passes or it is repaired. By the documentation of why-pending a gang that would fit when
// running jobs have ended waits; one that would not is blocked by what has to be repaired; and one that would not fit on the cluster at its
// best never starts.

// emptied is the scenario without some consumers.
func (s scenario) emptied(gone func(consumer) bool) scenario {
	s = s.clone()
	for i, c := range s.consumers {
		if gone(c) {
			s.consumers[i].nodes = nil // the others keep their places in the list
		}
	}
	return s
}

// afterDeletions is when pods within their grace period are gone.
func (s scenario) afterDeletions() scenario {
	return s.emptied(func(c consumer) bool { return c.leaving == going })
}

// afterEnds is when all jobs have ended.
func (s scenario) afterEnds() scenario {
	return s.emptied(func(c consumer) bool { return c.ends() || c.leaving == going })
}

// repairs are the single repairs that would be enough when jobs have ended.
func (s scenario) repairs() []string {
	ended := s.afterEnds()
	var all []string
	for _, r := range []struct {
		name string
		done scenario
	}{
		{"uncordon", ended.withNodes(func(n *node) { n.cordoned = false })}, {"bring up", ended.withNodes(func(n *node) { n.down = false })},
		{"heal", ended.withNodes((*node).heal)}, {"clear", ended.emptied(func(c consumer) bool { return c.leaving == stuck })},
		{"scale down", ended.emptied(func(c consumer) bool { return c.kind == aService })},
	} {
		if r.done.fits() {
			all = append(all, r.name)
		}
	}
	return all
}

// withNodes is the scenario with nodes changed.
func (s scenario) withNodes(edit func(*node)) scenario {
	s = s.clone()
	for i := range s.nodes {
		edit(&s.nodes[i])
	}
	return s
}

// heal makes all devices of a node healthy.
func (n *node) heal() {
	for name, count := range n.unhealthy {
		n.total[name] += count
	}
	n.unhealthy = nil
}

// atBest is when everything but DaemonSets is gone, and every node is open, up and healthy.
func (s scenario) atBest() scenario {
	return s.emptied(func(c consumer) bool { return c.kind != aDaemon }).withNodes(func(n *node) {
		n.cordoned, n.down = false, false
		n.heal()
	})
}

// outlook is what a gang without a placement can hope for.
type outlook string

// The outlooks.
const (
	soon   outlook = "soon"   // when pods that are leaving are gone
	waits  outlook = "waits"  // when jobs have ended
	repair outlook = "repair" // when something is repaired or taken away
	never  outlook = "never"
)

func (s scenario) outlook() outlook {
	switch {
	case s.afterDeletions().fits():
		return soon
	case !s.atBest().fits():
		return never
	case s.afterEnds().fits():
		return waits
	}
	return repair
}

// admitted reports whether nothing keeps the gang from the nodes: the stages before placement, by the semantics of what makes them.
func (s scenario) admitted() bool { return len(s.refusals()) == 0 }

// refusals are what keeps the gang from the nodes, each with a name.
func (s scenario) refusals() []string {
	var all []string
	add := func(refused bool, name string) {
		if refused {
			all = append(all, name)
		}
	}
	g, c := s.gang, s.control
	add(g.suspended, "suspended")
	add(!g.created && c.namespaceGone, "namespace")
	add(!g.created && c.operator != up, "operator")
	add(!g.created && g.absent != "", "absent "+string(g.absent))
	add(g.late > 0 && g.members()-g.late < g.min, "late")
	for _, q := range c.quotas {
		want := g.requested(q.resource)
		if q.resource == pods {
			want = int64(g.members())
		}
		add(!g.created && q.used+want > q.hard, "quota "+q.name)
	}
	few := s.accepted().gang.members() < min(g.min, g.members())
	add(few && slices.ContainsFunc(g.roles, s.aboveLimit), "limit")
	add(few && slices.ContainsFunc(g.roles, s.unbound), "claim")
	add(c.group != declared, "group")
	add(g.min > g.members(), "minimum")
	if q := c.queue; q != nil {
		add(q.missing || q.closed || q.older || q.stuck && !g.created, "queue")
		for name, most := range q.limits {
			add(!g.created && q.used[name]+g.requested(name) > most, "queue "+name)
		}
	}
	if k := c.kueue; k != nil {
		add(k.noQueue || k.stopped || k.inactive || k.checking, "kueue")
		for name, most := range k.limits {
			used := int64(0)
			if name == gpu {
				used = k.usedGPUs
			}
			add(used+g.requested(name) > most, "kueue "+name)
		}
	}
	add(g.trouble != "", "trouble")
	add(g.misnamed != "" || c.scheduler != up, "scheduler")
	add(g.gate != "", "gate")
	return all
}

// accepted is the scenario without the members that never come to be placed: those above a limit, and those whose claim has no volume.
func (s scenario) accepted() scenario {
	s = s.clone()
	for i, r := range s.gang.roles {
		if s.aboveLimit(r) || s.unbound(r) {
			s.gang.roles[i].replicas = 0
		}
	}
	return s
}

// aboveLimit reports whether pods of a role are still to be made, and request more than a container may.
func (s scenario) aboveLimit(r role) bool {
	for name, most := range s.control.limits {
		if !s.gang.created && r.requests[name] > most {
			return true
		}
	}
	return false
}

// unbound reports whether a role mounts a claim that gets no volume.
func (s scenario) unbound(r role) bool {
	c := s.control.claim
	return r.mounts != "" && c != nil && (c.missing || c.class != "")
}

// mounts reports whether some role mounts the claim.
func (s scenario) mounts() bool {
	return slices.ContainsFunc(s.gang.roles, func(r role) bool { return r.mounts != "" })
}

// starts reports whether the gang starts: nothing keeps it from the nodes, and it has a placement.
func (s scenario) starts() bool { return s.admitted() && s.accepted().fits() }

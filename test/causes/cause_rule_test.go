package causes

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// ruleCauses are what members themselves require of nodes and of each other.
func ruleCauses() []cause {
	return []cause{
		{name: "selector matches nothing", plant: selectsNothing, binds: only(bySelector), expect: fixed(answer.ExitUser, answer.SelectorNoMatch)},
		{name: "affinity matches nothing", plant: affinityNothing, binds: only(bySelector), expect: fixed(answer.ExitUser, answer.SelectorNoMatch)},
		{name: "selector matches too few", plant: selectsFew, binds: someSelected, expect: ruled([]string{classLabel, "nodeSelector"})},
		{name: "affinity matches too few", plant: affinityFew, binds: someSelected, expect: ruled([]string{zoneLabel, "nodeAffinity", "node affinity"})},
		{name: "anti-affinity", plant: separates, binds: only(byApart), expect: ruled([]string{"anti-affinity", "on a node of its own"}, answer.Fragmented)},
		{name: "host port among members", plant: sharesPort, binds: only(byHostPort), expect: ruled([]string{"host port"}, answer.Fragmented)},
		{name: "spread", plant: spreads, binds: only(bySpread), expect: ruled([]string{"spread"}, answer.TopologySpread)},
		{name: "all in one rack", plant: gathers, binds: only(byTogether), expect: ruled([]string{rackLabel}, answer.TopologyFragmented)},
		{name: "volume in another zone", plant: elsewhere, binds: only(byZone), expect: ruled([]string{"volume"}, answer.VolumeZone)},
		{name: "claim missing", plant: claimed(claim{missing: true}), binds: refusedBy("claim"), expect: fixed(answer.ExitUser, answer.PVCUnbound)},
		{name: "claim of no class", plant: claimed(claim{class: "fsat"}), binds: refusedBy("claim"), expect: fixed(answer.ExitUser, answer.PVCUnbound)},
	}
}

// ruled is what the documentation has for a rule that leaves too little room: a code of its own while others end, or never.
func ruled(mentions []string, waiting ...answer.Code) func(scenario) expectation {
	return func(s scenario) expectation {
		e := expectation{codes: waiting, exits: []int{answer.ExitWaiting}, mentions: mentions}
		switch s.outlook() {
		case never:
			e.codes, e.exits = []answer.Code{answer.TooBig}, []int{answer.ExitNever}
		case repair:
			e.codes, e.exits = append([]answer.Code{answer.NodesBusy, answer.NodeNotReady}, waiting...), []int{answer.ExitAdmin}
		case waits, soon:
			if len(waiting) == 0 {
				e.codes = []answer.Code{answer.NodesBusy, answer.Fragmented}
			}
		}
		return e
	}
}

// onRole changes one role, or all.
func onRole(r random, s scenario, edit func(*role)) change {
	at, every := r.IntN(len(s.gang.roles)), r.once(2)
	return func(s scenario) scenario {
		s = s.clone()
		for i := range s.gang.roles {
			if i == at || every {
				edit(&s.gang.roles[i])
			}
		}
		return s
	}
}

func selectsNothing(r random, s scenario) change {
	return onRole(r, s, func(role *role) { role.selector = map[string]string{classLabel: "h100"} })
}

func affinityNothing(r random, s scenario) change {
	return onRole(r, s, func(role *role) { role.zones = []string{"z8", "z9"} })
}

func selectsFew(r random, s scenario) change {
	value := pick(r, "a", "b")
	return onRole(r, s, func(role *role) { role.selector = map[string]string{classLabel: value} })
}

func affinityFew(r random, s scenario) change {
	values := pick(r, []string{"z1"}, []string{"z2"}, []string{"z2", "z3"})
	return onRole(r, s, func(role *role) { role.zones = values })
}

// someSelected binds if the nodes that are selected are too few, but there are some for every role.
func someSelected(s scenario) bool {
	for _, r := range s.gang.roles {
		if !slices.ContainsFunc(s.nodes, func(n node) bool { return selects(r, n) }) {
			return false
		}
	}
	return only(bySelector)(s)
}

func separates(r random, s scenario) change {
	return onRole(r, s, func(role *role) { role.apart = true })
}

func sharesPort(r random, s scenario) change {
	return onRole(r, s, func(role *role) { role.hostPort = 7000 })
}

func spreads(r random, s scenario) change {
	key := pick(r, zoneLabel, rackLabel)
	return onRole(r, s, func(role *role) { role.spread = key })
}

func gathers(_ random, _ scenario) change {
	return func(s scenario) scenario {
		s = s.clone()
		s.gang.together = rackLabel
		return s
	}
}

func elsewhere(r random, s scenario) change {
	zone := pick(r, "z1", "z2", "z3")
	mount := onRole(r, s, func(role *role) { role.mounts = "data" })
	return func(s scenario) scenario {
		s = mount(s)
		s.control.claim = &claim{zone: zone}
		return s
	}
}

func claimed(c claim) func(random, scenario) change {
	return func(r random, s scenario) change {
		mount := onRole(r, s, func(role *role) { role.mounts = "data" })
		return func(s scenario) scenario {
			s = mount(s)
			s.control.claim = new(c)
			return s
		}
	}
}

package causes

import (
	"fmt"
	"slices"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// roomCauses are shortages of each resource, by who has the rest.
func roomCauses() []cause {
	var all []cause
	for _, name := range []string{gpu, cpu, memory, disk, rdma, hugePages} {
		for _, kind := range []consumerKind{aJob, aService, aPlainPod} {
			all = append(all, cause{name: name + " used by a " + string(kind), plant: uses(name, kind, staying), binds: only(constraint(name), "scale down"), expect: shortage(name)})
		}
		all = append(all, cause{name: name + " used by a DaemonSet", plant: pervades(name), binds: only(constraint(name)), expect: shortage(name)})
		all = append(all, cause{name: name + " above any node", plant: oversized(name), binds: only(constraint(name)), expect: shortage(name)})
	}
	return append(all,
		cause{name: "pods used by a job", plant: crowds(aJob), binds: only(pods), expect: shortage(pods)},
		cause{name: "pods used by a service", plant: crowds(aService), binds: only(pods, "scale down"), expect: shortage(pods)},
		cause{name: "pods leaving", plant: uses(gpu, aJob, going), binds: both(only(gpu), hopes(soon)), expect: fixed(answer.ExitWaiting, answer.VictimsTerminating)},
		cause{name: "pods stuck", plant: uses(gpu, aJob, stuck), binds: both(only(gpu, "clear"), hopes(repair)), expect: about(gpu, fixed(answer.ExitAdmin, answer.StuckTerminating))},
		cause{name: "pods stuck with memory", plant: uses(memory, aJob, stuck), binds: both(only(memory, "clear"), hopes(repair)), expect: about(memory, fixed(answer.ExitAdmin, answer.StuckTerminating))},
		cause{name: "host port used", plant: usesPort, binds: only(byHostPort, "scale down"), expect: portTaken},
	)
}

// uses has another consumer take most of a resource on some nodes.
func uses(name string, kind consumerKind, state leaving) func(random, scenario) change {
	return func(r random, s scenario) change {
		if s.gang.requested(name) == 0 {
			return nil
		}
		var taken []consumer
		for i := range s.nodes {
			free := s.free(i, name)
			if free <= 0 || s.free(i, pods) < 1 || r.once(5) {
				continue
			}
			part := pick[int64](r, 1, 2, 3, 4) // quarters
			if n := (free*part + 3) / 4; n > 0 {
				taken = append(taken, consumer{kind: kind, each: amounts{name: n}, nodes: []int{i}, leaving: state})
			}
		}
		if len(taken) == 0 {
			return nil
		}
		return func(s scenario) scenario {
			s = s.clone()
			for i, c := range taken {
				c.name = fmt.Sprintf("%s-%s%s-%d", short(name), kind, state, i)
				s.consumers = append(s.consumers, c)
			}
			return s
		}
	}
}

// pervades has a DaemonSet take a resource on every node that has so much of it.
func pervades(name string) func(random, scenario) change {
	return func(r random, s scenario) change {
		n := s.free(r.IntN(len(s.nodes)), name) * pick[int64](r, 1, 2, 3, 4) / 4
		if s.gang.requested(name) == 0 || n <= 0 {
			return nil
		}
		daemon := consumer{name: "daemon-" + short(name), kind: aDaemon, each: amounts{name: n}}
		for i := range s.nodes {
			if s.takes(i, daemon.each) {
				daemon.nodes = append(daemon.nodes, i)
			}
		}
		return func(s scenario) scenario {
			s = s.clone()
			s.consumers = append(s.consumers, daemon)
			return s
		}
	}
}

// short is a resource in the name of a pod.
func short(name string) string {
	return map[string]string{gpu: "gpu", rdma: "rdma", disk: "disk", hugePages: "pages"}[name] + map[string]string{cpu: cpu, memory: memory}[name]
}

// oversized has members request more than any node has.
func oversized(name string) func(random, scenario) change {
	return func(r random, s scenario) change {
		if s.gang.requested(name) == 0 {
			return nil
		}
		at := r.IntN(len(s.gang.roles))
		var most int64
		for _, n := range s.nodes {
			most = max(most, n.total[name])
		}
		more := most + most/pick[int64](r, 2, 4, 8)
		if s.gang.roles[at].requests[name] == 0 || more == most {
			return nil
		}
		return func(s scenario) scenario {
			s = s.clone()
			s.gang.roles[at].requests[name] = more
			return s
		}
	}
}

// crowds has nodes accept hardly more pods than there are, and another consumer be most of them.
func crowds(kind consumerKind) func(random, scenario) change {
	return func(r random, s scenario) change {
		taker := consumer{name: "crowd-" + string(kind), kind: kind, each: amounts{cpu: 10}}
		spare := make([]int64, len(s.nodes))
		for i := range s.nodes {
			if spare[i] = r.Int64N(3); s.free(i, pods) > 1 && s.free(i, cpu) > 10 {
				taker.nodes = append(taker.nodes, i)
			}
		}
		return func(s scenario) scenario {
			s = s.clone()
			s.consumers = append(s.consumers, taker)
			for i := range s.nodes {
				s.nodes[i].total[pods] += min(0, spare[i]-s.free(i, pods))
			}
			return s
		}
	}
}

// usesPort has another consumer use the host port of members.
func usesPort(r random, s scenario) change {
	at := r.IntN(len(s.gang.roles))
	taker := consumer{name: "portal", kind: pick(r, aJob, aService), each: amounts{cpu: 10}, hostPort: 7000}
	for i := range s.nodes {
		if !r.once(4) && s.takes(i, taker.each) {
			taker.nodes = append(taker.nodes, i)
		}
	}
	return func(s scenario) scenario {
		s = s.clone()
		s.gang.roles[at].hostPort = taker.hostPort
		s.consumers = append(s.consumers, taker)
		return s
	}
}

func portTaken(s scenario) expectation {
	e := expectation{codes: []answer.Code{answer.Fragmented}, exits: []int{answer.ExitWaiting}, mentions: []string{"host port"}}
	switch s.outlook() {
	case repair:
		return expectation{codes: []answer.Code{answer.Fragmented, answer.NodesBusy}, exits: []int{answer.ExitAdmin}, mentions: []string{"host port"}}
	case never:
		return expectation{codes: []answer.Code{answer.TooBig}, exits: []int{answer.ExitNever}, mentions: []string{"host port"}}
	case soon, waits:
	}
	return e
}

// shortage is what the documentation has for a resource that is short: INSUFFICIENT for those that every node has, and for others
// whether there is too little or it is in too small pieces.
func shortage(name string) func(scenario) expectation {
	return func(s scenario) expectation {
		e := expectation{resource: name}
		switch s.outlook() {
		case never:
			e.codes, e.exits = []answer.Code{answer.TooBig}, []int{answer.ExitNever}
			return e
		case repair:
			e.exits = []int{answer.ExitAdmin}
			e.codes = []answer.Code{answer.NodesBusy, answer.Insufficient(name)}
			return e
		case soon, waits:
		}
		e.exits = []int{answer.ExitWaiting}
		e.codes = []answer.Code{answer.Insufficient(name)}
		switch name {
		case cpu, memory, disk, pods:
		default:
			e.codes = append(e.codes, answer.NodesBusy)
		}
		if s.enoughInAll(name) {
			e.codes = append(e.codes, answer.Fragmented)
		}
		return e
	}
}

// enoughInAll reports whether nodes that some member may use have enough of a resource together, for as many members as are needed.
func (s scenario) enoughInAll(name string) bool {
	var free, least int64
	for i, n := range s.nodes {
		if s.someMayUse(n) {
			free += max(0, s.free(i, name))
		}
	}
	var each []int64
	for _, r := range s.gang.roles {
		each = append(each, slices.Repeat([]int64{max(r.requests[name], s.onePod(name))}, r.replicas)...)
	}
	slices.Sort(each)
	for _, n := range each[:s.gang.min] {
		least += n
	}
	return free >= least
}

// onePod is what every member requests of a resource: one of the pods that a node takes.
func (s scenario) onePod(name string) int64 {
	if name == pods {
		return 1
	}
	return 0
}

func (s scenario) someMayUse(n node) bool {
	o := &search{scenario: s}
	for _, r := range s.gang.roles {
		if o.admits(r, n) {
			return true
		}
	}
	return false
}

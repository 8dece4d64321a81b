package causes

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// cause is a reason for which a gang does not start, and how the answer has to name it.
type cause struct {
	name string
	// plant draws a change of a scenario by which the gang no longer starts; nil if it cannot be planted there.
	plant func(r random, s scenario) change
	// alone is set for a cause that needs a gang whose members have nodes, where other causes come too late.
	alone bool
	// binds reports whether the oracle finds that a scenario with this change is blocked by it, and by no other single thing.
	binds func(s scenario) bool
	// expect is what the answer for such a scenario must have.
	expect func(s scenario) expectation
}

// change is a change of a scenario, which it leaves alone.
type change func(scenario) scenario

// expectation is what an answer has to have to name a cause.
type expectation struct {
	// codes and exits are those that the documentation has for it.
	codes []answer.Code
	exits []int
	// resource is what the finding must be about; empty for none.
	resource string
	// mentions are expressions of which the finding must match one; none if it is empty.
	mentions []string
}

// tries is how often a change is drawn until it binds.
const tries = 30

// planted is a scenario with one cause or two.
type planted struct {
	sound, scenario scenario
	causes          []cause
	changes         []change
}

// plantOne draws sound scenarios until the cause can be planted in one.
func (r random) plantOne(c cause) (planted, bool) {
	for range 4 * tries {
		sound := r.sound()
		if one, ok := r.bind(c, sound); ok {
			return planted{sound, one(sound), []cause{c}, []change{one}}, true
		}
	}
	return planted{}, false
}

// bind draws changes until one binds.
func (r random) bind(c cause, s scenario) (change, bool) {
	for range tries {
		drawn := c.plant(r, s)
		if drawn == nil {
			return nil, false
		}
		if with := drawn(s); !with.starts() && c.binds(with) {
			return drawn, true
		}
	}
	return nil, false
}

// plantTwo draws scenarios in which both causes bind alone, and neither's end is enough when both are there.
func (r random) plantTwo(a, b cause) (planted, bool) {
	for range 2 * tries {
		sound := r.sound()
		first, ok := r.bind(a, sound)
		if !ok {
			continue
		}
		second, ok := r.bind(b, sound)
		if !ok {
			continue
		}
		both := second(first(sound))
		if !both.starts() && both.coherent() && both.refusesLike(first(sound)) && both.refusesLike(second(sound)) {
			return planted{sound, both, []cause{a, b}, []change{first, second}}, true
		}
	}
	return planted{}, false
}

// coherent reports whether there is a trace of everything that was planted: pods that do not exist name no group.
func (s scenario) coherent() bool {
	g := s.gang
	switch {
	case !g.created && (s.control.group != declared || g.late > 0):
		return false
	case s.control.queue != nil && (s.control.queue.missing && s.control.queue.exists() || s.control.operator != up):
		return false // a queue that does not exist has no limits, and without a group no queue is named
	case s.control.kueue != nil: // a job that Kueue suspends has no pods and no group
		return s.control.group == declared && !g.suspended && g.min == g.members() && (!s.control.kueue.noQueue || s.control.kueue.ample(g))
	}
	return true
}

// refusesLike reports whether all that refuses another scenario refuses this one too: nothing was overwritten.
func (s scenario) refusesLike(other scenario) bool {
	all := s.refusals()
	return !slices.ContainsFunc(other.refusals(), func(name string) bool { return !slices.Contains(all, name) })
}

// ample reports whether a ClusterQueue has room for the gang.
func (k kueue) ample(g gang) bool {
	for name, most := range k.limits {
		if most < g.requested(name) || name == gpu && k.usedGPUs > 0 {
			return false
		}
	}
	return !k.stopped
}

// exists reports whether something else was planted in a queue.
func (q queue) exists() bool { return q.closed || q.older || q.stuck || len(q.limits) > 0 }

// causes are all that can be planted.
func causes() []cause {
	return slices.Concat(roomCauses(), ruleCauses(), nodeCauses(), admissionCauses(), lifeCauses())
}

// only binds if the gang would fit without this constraint, and without no other. Where something has to be repaired, that is the
// cause, unless it is one of the repairs that are named.
func only(c constraint, repairs ...string) func(scenario) bool {
	return func(s scenario) bool {
		return s.admitted() && slices.Equal(s.binding(), []constraint{c}) && (s.outlook() != repair || len(repairs) > 0 && slices.Equal(s.repairs(), repairs))
	}
}

// hopes binds if this is what the gang can hope for.
func hopes(o outlook) func(scenario) bool {
	return func(s scenario) bool { return s.outlook() == o }
}

func both(a, b func(scenario) bool) func(scenario) bool {
	return func(s scenario) bool { return a(s) && b(s) }
}

// refusedBy binds if this alone keeps the gang from nodes, and there is room.
func refusedBy(name string) func(scenario) bool {
	return func(s scenario) bool { return slices.Equal(s.refusals(), []string{name}) && s.fits() }
}

// fixed is an expectation that does not depend on the scenario.
func fixed(exit int, codes ...answer.Code) func(scenario) expectation {
	return func(scenario) expectation { return expectation{codes: codes, exits: []int{exit}} }
}

// about has an expectation require a resource.
func about(name string, expect func(scenario) expectation) func(scenario) expectation {
	return func(s scenario) expectation {
		e := expect(s)
		e.resource = name
		return e
	}
}

package causes

import (
	"fmt"
	"math/rand/v2"

	gangs "github.com/gangctl/gangctl/pkg/gang"
)

// random makes scenarios.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 17))} }

// once is true once in n times.
func (r random) once(n int) bool { return r.IntN(n) == 0 }

func pick[T any](r random, values ...T) T { return values[r.IntN(len(values))] }

// sound makes a scenario in which the gang starts.
func (r random) sound() scenario {
	for {
		s := scenario{gang: r.gang()}
		s.nodes = r.nodes(s.gang)
		s.consumers = r.consumers(s)
		if s.mounts() {
			s.control.claim = &claim{zone: pick(r, "", "z1", "z2")}
		}
		if s.gang.dialect == gangs.Volcano {
			s.control.queue = &queue{name: "q"}
		}
		if s.starts() {
			return s
		}
	}
}

// shapes are the kinds of jobs with the names of their roles: the workers, and at most one other role.
var shapes = []struct {
	kind   string
	others []string
}{
	{"TFJob", nil}, {"TFJob", []string{"Chief"}}, {"TFJob", []string{"PS"}}, {"PyTorchJob", nil}, {"PyTorchJob", []string{"Master"}},
	{"MPIJob", []string{"Launcher"}}, {"Job", nil}, {barePods, nil},
}

// gang makes a gang of at most five members.
func (r random) gang() gang {
	shape := shapes[r.IntN(len(shapes))]
	g := gang{kind: shape.kind, dialect: r.dialect(shape.kind, len(shape.others) > 0), created: true}
	workers := role{name: "Worker", replicas: 1 + r.IntN(5-len(shape.others)), requests: r.requests(true)}
	r.restrict(&workers)
	g.roles = []role{workers}
	for _, name := range shape.others {
		other := role{name: name, replicas: 1, requests: r.requests(r.once(4))}
		switch {
		case name == "PS" && workers.replicas < 4:
			other.replicas = 1 + r.IntN(2)
		case name == "Master" || name == "Chief" && r.once(2):
			other = workers
			other.name, other.replicas = name, 1
		}
		g.roles = append(g.roles, other)
	}
	if r.once(8) {
		g.together = rackLabel
	}
	g.min = g.members()
	if r.once(5) && g.dialect != gangs.YuniKorn {
		g.min = 1 + r.IntN(g.min)
	}
	return g
}

// dialect is one in which gangs of this kind can be declared.
func (r random) dialect(kind string, roles bool) dialect {
	all := []dialect{gangs.SchedulerPlugins, gangs.SchedulerPlugins, gangs.Volcano, gangs.Volcano, gangs.KubeBatch, gangs.Koordinator, gangs.KAI, gangs.Native, gangs.Labels}
	if !roles && kind != barePods {
		all = append(all, gangs.YuniKorn)
	}
	if kind == "TFJob" || kind == "PyTorchJob" {
		all = append(all, gangs.PDB)
	}
	return pick(r, all...)
}

// requests are those of one member.
func (r random) requests(devices bool) amounts {
	a := amounts{cpu: pick[int64](r, 2, 4, 8, 12) * core, memory: pick[int64](r, 8, 16, 24, 48) * gi}
	if devices {
		a[gpu] = pick[int64](r, 1, 2, 4, 8)
	}
	for _, more := range []struct {
		name string
		n    int64
	}{{rdma, 1}, {disk, 50 * gi}, {hugePages, 4 * gi}} {
		if r.once(6) {
			a[more.name] = more.n
		}
	}
	return a
}

// restrict adds rules to a role.
func (r random) restrict(role *role) {
	switch r.IntN(16) {
	case 0, 1:
		role.selector = map[string]string{classLabel: pick(r, "a", "b")}
	case 2:
		role.zones = []string{"z1", "z2"}[:1+r.IntN(2)]
	case 3:
		role.apart = true
	case 4:
		role.spread = zoneLabel
	case 5:
		role.hostPort = 9000
	case 6, 7:
		role.mounts = "data"
	}
	if r.once(4) {
		role.tolerates = []string{"dedicated"}
	}
}

// nodes are two to five nodes that have what the gang requests, most of them.
func (r random) nodes(g gang) []node {
	var all []node
	for i := range 2 + r.IntN(4) {
		n := node{name: fmt.Sprintf("n%d", i), total: amounts{
			cpu: pick[int64](r, 16, 32, 64) * core, memory: pick[int64](r, 64, 128, 256) * gi, disk: pick[int64](r, 100, 200, 500) * gi, pods: pick[int64](r, 20, 110),
		}}
		if g.requested(gpu) > 0 && !r.once(6) {
			n.total[gpu] = pick[int64](r, 4, 8, 8)
		}
		if g.requested(rdma) > 0 && !r.once(6) {
			n.total[rdma] = pick[int64](r, 2, 4)
		}
		if g.requested(hugePages) > 0 && !r.once(6) {
			n.total[hugePages] = pick[int64](r, 8, 16) * gi
		}
		n.labels = map[string]string{zoneLabel: pick(r, "z1", "z1", "z2", "z3"), classLabel: pick(r, "a", "a", "b"), rackLabel: pick(r, "r1", "r1", "r2")}
		switch r.IntN(10) {
		case 0:
			n.taint = "dedicated"
		case 1:
			n.cordoned = true
		case 2:
			n.down = r.once(2)
		}
		all = append(all, n)
	}
	return all
}

// consumers are what runs: jobs, services and plain pods where they have room, and sometimes a DaemonSet everywhere.
func (r random) consumers(s scenario) []consumer {
	if r.once(3) {
		agent := consumer{name: "agent", kind: aDaemon, each: amounts{cpu: core / 2, memory: gi}}
		for i := range s.nodes {
			agent.nodes = append(agent.nodes, i)
		}
		s.consumers = append(s.consumers, agent)
	}
	for i := range r.IntN(4) {
		c := consumer{name: fmt.Sprintf("job%d", i), kind: pick(r, aJob, aJob, aService, aPlainPod), each: amounts{
			cpu: pick[int64](r, 1, 2, 8) * core, memory: pick[int64](r, 4, 16, 32) * gi, gpu: pick[int64](r, 0, 1, 2, 4),
		}}
		if c.each[gpu] == 0 {
			delete(c.each, gpu)
		}
		for n := range s.nodes {
			if r.once(2) && s.takes(n, c.each) && (c.kind != aPlainPod || len(c.nodes) == 0) {
				c.nodes = append(c.nodes, n)
			}
		}
		if len(c.nodes) > 0 {
			s.consumers = append(s.consumers, c)
		}
	}
	return s.consumers
}

// takes reports whether a node has room for one more pod with these requests.
func (s scenario) takes(i int, each amounts) bool {
	if s.free(i, pods) < 1 {
		return false
	}
	for name, n := range each {
		if n > s.free(i, name) {
			return false
		}
	}
	return true
}

package bench

import (
	"fmt"
	"math/rand/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The gang that is asked about: it waits, because no node has 8 GPUs free.
const (
	subjectNamespace = "team-07"
	subjectName      = "llama"
	subjectWorkers   = 8
	subjectGPUs      = 8
)

// Shares of the pods: one of a DaemonSet on each node, services, members of jobs
// that have ended and of jobs that wait; the rest are members of jobs that run.
const (
	podsPerNode  = 10
	teams        = 40
	servicePart  = 0.12
	finishedPart = 0.04
	waitingPart  = 0.01
	servicePods  = 10
)

// planned is a cluster as it is to be.
type planned struct {
	now      metav1.Time
	random   *rand.Rand
	machines []*machine
	services []service
	jobs     []job
}

// machine is a node and what is still free of it.
type machine struct {
	name       string
	index      int
	gpus, cpus int64
	free       int64 // GPUs
	idle       int64 // CPUs
	pods       int
}

// service is a Deployment with its ReplicaSet.
type service struct {
	namespace, name string
	nodes           []*machine
}

// state is how far a job is.
type state int

const (
	running state = iota
	waiting
	finished
)

// job is a TFJob with its PodGroup.
type job struct {
	namespace, name string
	state           state
	workers         int
	gpus, cpus      int64
	nodes           []*machine // by worker; nil for those without
	hours           int        // age
}

// plan lays out a cluster. The same number of pods gives the same cluster.
func plan(pods int, now metav1.Time) *planned {
	p := &planned{now: now, random: rand.New(rand.NewPCG(1, 2))}
	for i := range pods / podsPerNode {
		m := &machine{name: fmt.Sprintf("gpu-%05d", i), index: i, gpus: 8, cpus: 96}
		switch i % 5 {
		case 3:
			m.gpus, m.cpus = 4, 48
		case 4:
			m.name, m.gpus, m.cpus = fmt.Sprintf("cpu-%05d", i), 0, 64
		}
		// A little of each machine stays free; never all of it.
		m.free, m.idle = max(0, m.gpus-int64(i%3)), m.cpus-8
		p.machines = append(p.machines, m)
	}
	left := pods - len(p.machines) - subjectWorkers
	for i := 0; i < int(servicePart*float64(pods))/servicePods; i++ {
		s := service{namespace: p.team(), name: fmt.Sprintf("api-%04d", i)}
		for range servicePods {
			s.nodes = append(s.nodes, p.place(0, 2))
		}
		p.services = append(p.services, s)
		left -= servicePods
	}
	parts := map[state]int{finished: int(finishedPart * float64(pods)), waiting: int(waitingPart * float64(pods))}
	parts[running] = left - parts[finished] - parts[waiting]
	for _, s := range []state{running, finished, waiting} {
		for left := parts[s]; left > 0; {
			j := p.job(s, left)
			p.jobs = append(p.jobs, j)
			left -= j.workers
		}
	}
	p.jobs = append(p.jobs, job{namespace: subjectNamespace, name: subjectName, state: waiting, workers: subjectWorkers, gpus: subjectGPUs, cpus: 16,
		nodes: make([]*machine, subjectWorkers), hours: 1})
	return p
}

func (p *planned) team() string { return fmt.Sprintf("team-%02d", p.random.IntN(teams)) }

// job makes up a job of at most so many members.
func (p *planned) job(s state, most int) job {
	sizes := []int{1, 2, 4, 4, 8, 8, 8, 16, 16, 32, 64}
	gpus := []int64{0, 0, 0, 0, 1, 1, 1, 1, 2, 4}
	j := job{namespace: p.team(), name: fmt.Sprintf("train-%05d", len(p.jobs)), state: s, hours: 1 + p.random.IntN(200), workers: min(most, sizes[p.random.IntN(len(sizes))]),
		gpus: gpus[p.random.IntN(len(gpus))], cpus: 1 + p.random.Int64N(3)}
	if s == waiting {
		j.gpus = 8 // as many at once are nowhere free
	}
	for range j.workers {
		switch s {
		case running:
			m := p.place(j.gpus, j.cpus)
			if m == nil {
				j.gpus = 0
				m = p.place(0, j.cpus)
			}
			j.nodes = append(j.nodes, m)
		case finished:
			j.nodes = append(j.nodes, p.machines[p.random.IntN(len(p.machines))])
		case waiting:
			j.nodes = append(j.nodes, nil)
		}
	}
	return j
}

// place takes room on some machine; nil if there is none.
func (p *planned) place(gpus, cpus int64) *machine {
	start := p.random.IntN(len(p.machines))
	for i := range p.machines {
		m := p.machines[(start+i)%len(p.machines)]
		if m.free >= gpus && m.idle >= cpus && m.pods < 100 && (gpus > 0 || m.gpus == 0 || m.idle > cpus*8) {
			m.free, m.idle, m.pods = m.free-gpus, m.idle-cpus, m.pods+1
			return m
		}
	}
	return nil
}

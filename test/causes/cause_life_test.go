package causes

import (
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// lifeCauses are what keeps members with a node from running, or the gang from being complete.
func lifeCauses() []cause {
	all := []cause{
		{name: "image", plant: troubled(imageTrouble), binds: refusedBy("trouble"), expect: fixed(answer.ExitUser, answer.ImagePull)},
		{name: "crash", plant: troubled(crashTrouble), binds: refusedBy("trouble"), expect: fixed(answer.ExitUser, answer.CrashLoop)},
		{name: "config", plant: troubled(configTrouble), binds: refusedBy("trouble"), expect: fixed(answer.ExitUser, answer.ConfigMissing)},
		{name: "kubelet refuses", plant: troubled(kubeletRefuse), binds: refusedBy("trouble"), expect: fixed(answer.ExitAdmin, answer.NodeRefused)},
		{name: "no sandbox", plant: troubled(noSandbox), binds: refusedBy("trouble"), expect: fixed(answer.ExitAdmin, answer.SandboxFailed)},
		{name: "partly placed", plant: partly, binds: incomplete, expect: fixed(answer.ExitDegraded, answer.MemberLost)},
	}
	for i := range all {
		all[i].alone = true
	}
	return all
}

// troubled gives all members the nodes on which they fit, and the last one a trouble.
func troubled(what trouble) func(random, scenario) change {
	return func(r random, s scenario) change {
		if s.gang.min != s.gang.members() {
			return nil
		}
		p, _ := s.place()
		return edits(func(s *scenario) {
			s.gang.bindsFirst(p)
			s.gang.trouble = what
		})(r, s)
	}
}

// partly gives all members but one the nodes on which they fit, and what the last one would need to a job.
func partly(r random, s scenario) change {
	p, _ := s.place()
	if s.gang.members() < 2 || s.gang.min != s.gang.members() {
		return nil
	}
	name := pick(r, s.gang.resources()...)
	fill := uses(name, aJob, staying)(r, s)
	if fill == nil {
		return nil
	}
	last := len(p) - 1
	return func(s scenario) scenario {
		s = s.clone()
		s.gang.bindsFirst(p)
		for n := range s.nodes {
			if s.gang.bound[last][n] > 0 {
				s.gang.bound[last][n]--
				break
			}
		}
		return fill(s)
	}
}

// incomplete binds if those that run have room, and the others have none.
func incomplete(s scenario) bool {
	bound := s.clone()
	for i := range bound.gang.roles {
		bound.gang.roles[i].replicas = 0
		for _, n := range s.gang.bound[i] {
			bound.gang.roles[i].replicas += n
		}
	}
	bound.gang.min = bound.gang.members()
	return s.admitted() && !bound.overcommitted() && !s.fits()
}

// overcommitted reports whether those that run request more than some node has.
func (s scenario) overcommitted() bool {
	o := s.start()
	for i := range o.names {
		for n := range s.nodes {
			if o.left[i][n] < 0 {
				return true
			}
		}
	}
	return false
}

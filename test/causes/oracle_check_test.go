package causes

import (
	"slices"
	"testing"
)

// The oracle is checked by hand: who judges others has to be right itself.
func TestOracle(t *testing.T) {
	two := func(edit func(*scenario)) scenario {
		s := scenario{
			nodes: []node{{name: "n0", total: amounts{cpu: 8 * core, pods: 10, gpu: 4}, labels: map[string]string{zoneLabel: "z1"}},
				{name: "n1", total: amounts{cpu: 8 * core, pods: 10, gpu: 4}, labels: map[string]string{zoneLabel: "z2"}}},
			gang: gang{roles: []role{{name: "Worker", replicas: 2, requests: amounts{cpu: core, gpu: 2}}}, min: 2, created: true},
		}
		edit(&s)
		return s
	}
	workers := func(edit func(*role)) func(*scenario) { return func(s *scenario) { edit(&s.gang.roles[0]) } }
	uses := func(c consumer) func(*scenario) { return func(s *scenario) { s.consumers = append(s.consumers, c) } }
	for _, c := range []struct {
		name    string
		edit    func(*scenario)
		binding []constraint // nil if it fits
	}{
		{"fits", func(*scenario) {}, nil},
		{"exactly", workers(func(r *role) { r.requests[gpu] = 4 }), nil},
		{"one device too many", workers(func(r *role) { r.requests[gpu] = 5 }), []constraint{gpu}},
		{"fragmented", func(s *scenario) {
			s.gang.roles[0].requests[gpu] = 3
			uses(consumer{kind: aJob, each: amounts{gpu: 2}, nodes: []int{0}})(s)
		}, []constraint{gpu}},
		{"part is enough", func(s *scenario) {
			s.gang.roles[0].requests[gpu], s.gang.min = 4, 1
			uses(consumer{kind: aJob, each: amounts{gpu: 1}, nodes: []int{0}})(s)
		}, nil},
		{"no pods left", func(s *scenario) { s.nodes[0].total[pods], s.nodes[1].total[pods] = 1, 0 }, []constraint{pods}},
		{"cordoned", func(s *scenario) {
			s.gang.roles[0].apart = true
			s.nodes[1].cordoned = true
		}, []constraint{byApart, byCordon}},
		{"tainted and tolerated", func(s *scenario) {
			s.nodes[0].taint, s.nodes[1].taint = "dedicated", "dedicated"
			s.gang.roles[0].tolerates = []string{"dedicated"}
		}, nil},
		{"tainted", func(s *scenario) { s.nodes[0].taint, s.nodes[1].taint = "dedicated", "dedicated" }, []constraint{byTaint}},
		{"port of another", func(s *scenario) {
			s.gang.roles[0].hostPort = 80
			uses(consumer{kind: aJob, hostPort: 80, nodes: []int{0}})(s)
		}, []constraint{byHostPort}},
		{"spread over a zone without devices", func(s *scenario) {
			s.gang.roles[0].spread = zoneLabel
			s.nodes[1].total[gpu] = 0
		}, []constraint{bySpread, gpu}},
		{"together", func(s *scenario) {
			s.gang.together = zoneLabel
			s.gang.roles[0].requests[gpu] = 4
		}, []constraint{byTogether, gpu}},
		{"data elsewhere", func(s *scenario) {
			s.control.claim = &claim{zone: "z3"}
			s.gang.roles[0].mounts = "data"
		}, []constraint{byZone}},
		{"a member runs already", func(s *scenario) {
			s.gang.roles[0].requests[gpu] = 4
			s.gang.bound = placement{{1, 0}}
			s.nodes[1].down = true
		}, []constraint{byReady, gpu}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := two(c.edit)
			if s.fits() != (c.binding == nil) {
				t.Errorf("fits: %v", s.fits())
			}
			got, want := s.binding(), slices.Clone(c.binding)
			if slices.Sort(got); c.binding != nil && !slices.Equal(got, sorted(want)) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func sorted(list []constraint) []constraint {
	slices.Sort(list)
	return list
}

// What a gang can hope for follows from what would go, and what would be repaired.
func TestOutlook(t *testing.T) {
	for want, edit := range map[outlook]func(*scenario){
		soon:   func(s *scenario) { s.consumers[0].leaving = going },
		waits:  func(*scenario) {},
		repair: func(s *scenario) { s.consumers[0].kind = aService },
		never:  func(s *scenario) { s.consumers[0].kind = aDaemon },
	} {
		s := scenario{
			nodes:     []node{{name: "n0", total: amounts{cpu: core, pods: 10}}},
			consumers: []consumer{{kind: aJob, each: amounts{cpu: 1}, nodes: []int{0}}},
			gang:      gang{roles: []role{{name: "Worker", replicas: 1, requests: amounts{cpu: core}}}, min: 1, created: true},
		}
		edit(&s)
		if got := s.outlook(); s.fits() || got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

package agreement

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestASeedMakesOneScenario(t *testing.T) {
	o := Options{Gangs: 5}
	for seed := range uint64(20) {
		if a, b := New(seed, o), New(seed, o); !reflect.DeepEqual(a, b) {
			t.Errorf("seed %d makes two scenarios", seed)
		}
	}
	if reflect.DeepEqual(New(1, o).Nodes, New(2, o).Nodes) {
		t.Error("two seeds make the same nodes")
	}
}

// What the generator is there for must occur, and often enough.
func TestScenariosAreVaried(t *testing.T) {
	count := map[string]int{}
	saw := func(what string, is bool) {
		if is {
			count[what]++
		}
	}
	for seed := range uint64(150) {
		s := New(seed, Options{Gangs: 6})
		for _, n := range s.Nodes {
			saw("cordoned node", n.Spec.Unschedulable)
			saw("failed node", failed(n))
			saw("tainted node", len(n.Spec.Taints) > 0)
		}
		for _, r := range s.Residents {
			saw("terminating resident", r.Terminating)
			saw("ended resident", r.Ended)
			saw("resident for the scheduler", r.Pod.Spec.NodeName == "")
		}
		saw("leavers", len(s.Leavers) > 0)
		saw("defaults", s.Defaults != nil)
		for _, k := range s.Claims {
			saw("claim of class "+*k.Spec.StorageClassName, true)
		}
		for _, g := range s.Gangs {
			if n := len(g.Pods); n < 1 || n > 12 {
				t.Fatalf("seed %d: gang %s has %d members", seed, g.Name, n)
			}
			saw(string(g.Form), true)
			saw("held by "+string(g.Hold), true)
			saw("trap", g.Trap)
			saw("missing "+g.Missing(), true)
			saw("a part is enough", g.Missing() == "" && int(g.Min) < len(g.Pods))
			p := g.Pods[0]
			saw("selector", p.Spec.NodeSelector != nil)
			saw("spread", len(p.Spec.TopologySpreadConstraints) > 0)
			saw("port", len(p.Spec.Containers[0].Ports) > 0)
			saw("volume", len(p.Spec.Volumes) > 0)
			saw("devices", len(p.Spec.ResourceClaims) > 0)
			saw("overhead", p.Spec.RuntimeClassName != nil)
			saw("priority", p.Spec.PriorityClassName != "")
			if a := p.Spec.Affinity; a != nil {
				saw("affinity", a.PodAffinity != nil)
				saw("anti-affinity", a.PodAntiAffinity != nil)
				saw("node affinity", a.NodeAffinity != nil)
			}
		}
	}
	for _, what := range []string{
		"cordoned node", "failed node", "tainted node", "terminating resident", "ended resident", "resident for the scheduler", "leavers",
		string(ByObject), string(ByLabels), string(ByJob), string(Alone), "held by gate", "held by object", "held by never", "trap", "missing members", "missing object",
		"a part is enough", "selector", "spread", "port", "volume", "devices", "overhead", "defaults", "claim of class ", "claim of class " + staticClass, "claim of class " + dynamicClass, "priority", "affinity", "anti-affinity", "node affinity",
	} {
		if count[what] < 5 {
			t.Errorf("%s: %d times in 150 scenarios", what, count[what])
		}
	}
}

func TestWithoutTrapsMembersAreAlike(t *testing.T) {
	for seed := range uint64(100) {
		for _, g := range New(seed, Options{Gangs: 6, NoTraps: true}).Gangs {
			if g.Trap {
				t.Errorf("seed %d: gang %s is a trap", seed, g.Name)
			}
			for _, p := range g.Pods {
				if !reflect.DeepEqual(p.Spec, g.Pods[0].Spec) || !reflect.DeepEqual(p.Labels, g.Pods[0].Labels) {
					t.Errorf("seed %d: %s differs from %s", seed, p.Name, g.Pods[0].Name)
				}
			}
		}
	}
}

// Residents that are put on a node fit there: no kubelet would have taken them otherwise.
func TestResidentsFitTheirNodes(t *testing.T) {
	for seed := range uint64(100) {
		s := New(seed, Options{Gangs: 1})
		for _, n := range s.Nodes {
			used := corev1.ResourceList{}
			for _, r := range s.Residents {
				if r.Pod.Spec.NodeName != n.Name {
					continue
				}
				for name, q := range r.Pod.Spec.Containers[0].Resources.Requests {
					sum := used[name]
					sum.Add(q)
					used[name] = sum
				}
			}
			for name, q := range used {
				if q.Cmp(n.Status.Allocatable[name]) > 0 {
					t.Errorf("seed %d: %s has %s of %s %s taken", seed, n.Name, q.String(), n.Status.Allocatable.Name(name, "").String(), name)
				}
			}
		}
	}
}

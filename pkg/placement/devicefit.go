package placement

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
)

// shareDevices looks up what the classes ask for by resource claims. A claim that exists by name is for one member if only one uses
// it; what it means that several do is not modelled.
func (t *task) shareDevices() {
	if t.opts.Ignore.Has(DRADevices) {
		return
	}
	users := map[*resourceapi.ResourceClaim]int{}
	for i := range t.classes {
		for _, claim := range t.c.devices(t.classes[i].rules.pod).shared {
			users[claim] += t.classes[i].count
		}
	}
	for i := range t.classes {
		k := &t.classes[i]
		d := t.c.devices(k.rules.pod)
		k.claims = d.own
		for _, claim := range d.shared {
			if users[claim] == 1 {
				k.claims = append(k.claims, claim)
			} else {
				t.notes[fmt.Sprintf("ResourceClaim %s, which members share, is not allocated yet", claim.Name)] = true
			}
		}
		t.claiming = t.claiming || len(k.claims) > 0
	}
}

// devices makes the kind of a site unlike any other if members ask for devices: they are allocated one by one.
func (t *task) devices(s *site, key []byte) []byte {
	if t.claiming {
		return append(key, s.n.obj.Name...)
	}
	return key
}

// deviceSlots limits the slots of classes to the devices that can be allocated.
func (t *task) deviceSlots(s *site) {
	if !t.claiming {
		return
	}
	for i := range t.classes {
		if len(t.classes[i].claims) == 0 || !s.ok[i] {
			continue
		}
		counts := make(pattern, len(t.classes))
		n, _ := Largest(1, int64(s.slots[i]), func(n int64) bool {
			counts[i] = int(n) - 1
			return t.allocatable(s, counts, i)
		})
		if s.slots[i] = int(n); n == 0 {
			s.ok[i] = false
		}
	}
}

// allocatable tells whether the devices of the members on a site and of one more of class i can be allocated together.
func (t *task) allocatable(s *site, counts pattern, i int) bool {
	if len(t.classes[i].claims) == 0 {
		return true
	}
	key := fmt.Sprint(s.pos, counts, i)
	if known, ok := t.tried[key]; ok {
		return known
	}
	var claims []*resourceapi.ResourceClaim
	for j := range t.classes {
		n := counts[j]
		if j == i {
			n++
		}
		for m := range n {
			claims = append(claims, numbered(t.classes[j].claims, fmt.Sprintf("%d-%d", j, m))...)
		}
	}
	ok := t.c.refused(s.n, claims) == ""
	t.tried[key] = ok
	return ok
}

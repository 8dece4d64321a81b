package placement

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// alike groups the sites by what they take and where they are. Domains of which every node has its own count only by what is
// in them.
func (s *seeker) alike() [][]int {
	numbers := map[string]int{}
	var out [][]int
	for at, site := range s.sites {
		var key strings.Builder
		fmt.Fprint(&key, site.kind)
		for k := range s.f.keys {
			d := s.f.domain[k][site.pos]
			if d >= 0 && s.f.single[k] {
				d = -2
			}
			fmt.Fprintf(&key, "/%d", d)
		}
		for i := range s.t.classes {
			if r := s.f.affinity[i]; r != nil {
				for j, k := range r.keys {
					if d := s.f.domain[k][site.pos]; d >= 0 {
						fmt.Fprintf(&key, "/a%d", r.base[j][d])
					}
				}
			}
			for _, r := range s.f.spread[i] {
				if d := s.f.domain[r.key][site.pos]; d >= 0 {
					fmt.Fprintf(&key, "/s%d%t", r.base[d], r.counted[site.pos])
				}
			}
		}
		number, ok := numbers[key.String()]
		if !ok {
			number = len(numbers)
			numbers[key.String()] = number
			out = append(out, nil)
		}
		out[number] = append(out[number], at)
	}
	return out
}

// key names the placement on the board, the same for placements that differ only by sites that are alike.
func (s *seeker) key() string {
	var key strings.Builder
	var part []byte
	for g, group := range s.groups {
		var parts []string
		for _, at := range group {
			if s.used[at] == 0 {
				break
			}
			part = binary.BigEndian.AppendUint32(part[:0], uint32(g))
			for _, n := range s.counts[at] {
				part = binary.BigEndian.AppendUint32(part, uint32(n))
			}
			parts = append(parts, string(part))
		}
		slices.Sort(parts)
		for _, p := range parts {
			key.WriteString(p) // all of the same length
		}
	}
	key.Write(binary.BigEndian.AppendUint64(nil, s.closed))
	return key.String()
}

package placement

// fullness is how much of a node is in use, from 0 to 1, in the devices that the gang asks for; in cpu if it asks for none.
func (t *task) fullness(s *site) float64 {
	var sum float64
	kinds := 0
	share := func(pos int) {
		if total := s.n.alloc.at(pos); total > 0 {
			sum += float64(s.n.used.at(pos)) / float64(total)
			kinds++
		}
	}
	for pos := posScalars; pos < len(s.free); pos++ {
		for i := range t.classes {
			if t.classes[i].rules.need[pos] > 0 {
				share(pos)
				break
			}
		}
	}
	if kinds == 0 {
		share(posCPU)
	}
	if kinds == 0 {
		return 0
	}
	return sum / float64(kinds)
}

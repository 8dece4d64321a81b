package gang

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Indexes is a set of indexes, as ranges in ascending order that do not overlap: it takes no more room than its text, however many they are.
type Indexes []indexRange

// indexRange is from first through last.
type indexRange struct{ first, last int }

// ParseIndexes reads the indexes below a bound of a text like 1,3-5,7, as a Job of Kubernetes has them in its status. It leaves out what is no range
// beyond those before it.
func ParseIndexes(text string, below int32) Indexes {
	var all Indexes
	next := 0
	for part := range strings.SplitSeq(text, ",") {
		from, through, isRange := strings.Cut(part, "-")
		if !isRange {
			through = from
		}
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(through)
		last = min(last, int(below)-1)
		if err != nil || err2 != nil || first < next || last < first {
			continue
		}
		all = append(all, indexRange{first, last})
		next = last + 1
	}
	return all
}

// Count is how many indexes there are.
func (x Indexes) Count() int32 {
	var n int32
	for _, r := range x {
		n += int32(r.last - r.first + 1) // below a bound that is an int32
	}
	return n
}

// Through is the last index of the range that an index is in; found is false for one that is in none.
func (x Indexes) Through(index int) (last int, found bool) {
	i, found := slices.BinarySearchFunc(x, index, func(r indexRange, index int) int {
		switch {
		case r.last < index:
			return -1
		case r.first > index:
			return 1
		}
		return 0
	})
	if !found {
		return 0, false
	}
	return x[i].last, true
}

// maxShown is how many ranges are written out.
const maxShown = 4

// String is a text like 1,3-5,7, which ends in +2 if there are two ranges more than are written out.
func (x Indexes) String() string {
	var parts []string
	for i, r := range x {
		if i == maxShown {
			parts = append(parts, fmt.Sprintf("+%d", len(x)-i))
			break
		}
		if r.first == r.last {
			parts = append(parts, strconv.Itoa(r.first))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d-%d", r.first, r.last))
	}
	return strings.Join(parts, ",")
}

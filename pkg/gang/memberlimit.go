package gang

import "math"

// Users may write any number of replicas, of roles and of members. What is made of an object is bounded by these, and by the pods
// that exist; what is beyond is counted, and not listed.
const (
	// maxListed is how many members without a pod are listed of one gang.
	maxListed = 1000
	// maxRoles is how many roles of a job have members of their own. Jobs of all kinds that are read have less than ten.
	maxRoles = 64
	// maxRoleMins is how many roles a group object may have minimums of.
	maxRoleMins = 1000
)

// Sum adds numbers of members. Negative ones are 0, and what an int32 cannot hold is its largest value.
func Sum(numbers ...int32) int32 {
	var sum int64
	for _, n := range numbers {
		sum += int64(max(n, 0))
	}
	return int32(min(sum, math.MaxInt32))
}

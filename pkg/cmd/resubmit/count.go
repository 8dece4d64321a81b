package resubmit

import (
	"regexp"
	"strconv"
)

// counts are the fields that say how many members a job has, the flag of submit that does, and how many more members that counts.
var counts = []struct {
	field *regexp.Regexp
	flag  string
	more  int
}{
	{regexp.MustCompile(`^spec\.(?:tf|mpi)ReplicaSpecs\.Worker\.replicas=(\d+)$`), "workers", 0},
	{regexp.MustCompile(`^spec\.tfReplicaSpecs\.PS\.replicas=(\d+)$`), "ps", 0},
	{regexp.MustCompile(`^spec\.tfReplicaSpecs\.Chief\.replicas=(\d+)$`), "chief", 0},
	{regexp.MustCompile(`^spec\.tfReplicaSpecs\.Evaluator\.replicas=(\d+)$`), "evaluator", 0},
	{regexp.MustCompile(`^spec\.pytorchReplicaSpecs\.Worker\.replicas=(\d+)$`), "workers", 1}, // submit counts the Master
	{regexp.MustCompile(`^spec\.(?:parallelism|completions)=(\d+)$`), "workers", 0},
}

// word is the word of submit's command line that changes a field: a number of members has a flag of its own there, because the
// gang's minimum and its sums go by it.
func word(set string) string {
	for _, c := range counts {
		m := c.field.FindStringSubmatch(set)
		if m == nil {
			continue
		}
		if n, err := strconv.Atoi(m[1]); err == nil {
			return "--" + c.flag + "=" + strconv.Itoa(n+c.more)
		}
	}
	return "--set=" + set
}

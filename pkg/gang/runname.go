package gang

import (
	"regexp"
	"strings"
)

var (
	// runPart is the last part of a name by which one run of a job differs from the next: a number, which some word may introduce, a time, the random end that Kubernetes adds
	// to generated names, or the beginning of a hash.
	runPart = regexp.MustCompile(`^(?:(?:v|r|run|try|trial|attempt|seed|exp)?[0-9]+|[0-9]{8}t[0-9]{4,6}z?|[bcdfghjklmnpqrstvwxz2456789]{5}|[a-f]*[0-9][0-9a-f]{6,})$`)
	// datePart is what of a date, or of an index of more than one number, stands before it. One digit alone is rather the version of a model.
	datePart = regexp.MustCompile(`^[0-9]{2,}$`)
)

// RunsName is the name that the runs of one job share: its own without the number, date or random end by which they differ.
func RunsName(name string) string {
	differs := runPart
	for {
		at := strings.LastIndexAny(name, "-._")
		if at < 1 || !differs.MatchString(name[at+1:]) {
			return name
		}
		name, differs = name[:at], datePart
	}
}

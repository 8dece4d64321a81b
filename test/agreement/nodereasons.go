package agreement

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang/unplaced"
	"github.com/gangctl/gangctl/pkg/placement"
)

// rejections counts nodes by what rejects a pod there.
type rejections map[string]int

// reasonPatterns match the scheduler's reasons for the constraints that gangctl distinguishes, in the order in which it checks them: it names
// the first that a node violates, and all resources that are short.
var reasonPatterns = []struct {
	topic       string
	pattern     *regexp.Regexp
	constraints []placement.Constraint
}{
	{"cordon", regexp.MustCompile(`^node\(s\) were unschedulable`), []placement.Constraint{placement.Cordon}},
	{"taint", regexp.MustCompile(`^node\(s\) had (untolerated )?taint`), []placement.Constraint{placement.Taint, placement.NotReady}},
	{"selector", regexp.MustCompile(`^node\(s\) didn't match Pod's node affinity/selector`), []placement.Constraint{placement.NodeSelector, placement.NodeAffinity}},
	{"port", regexp.MustCompile(`^node\(s\) didn't have free ports`), []placement.Constraint{placement.HostPort}},
	{"resource", regexp.MustCompile(`^(Insufficient (?P<name>\S+)|Too many pods)$`), nil},
	{"volume", regexp.MustCompile(`(?i)volume`), []placement.Constraint{placement.VolumeClaim, placement.VolumeLimits, placement.VolumeNode, placement.VolumeZone}},
	{"spread", regexp.MustCompile(`^node\(s\) didn't match pod topology spread constraints`), []placement.Constraint{placement.TopologySpread}},
	{"affinity", regexp.MustCompile(`^node\(s\) didn't match pod affinity rules`), []placement.Constraint{placement.PodAffinity}},
	{"antiAffinity", regexp.MustCompile(`anti-affinity rules`), []placement.Constraint{placement.PodAntiAffinity}},
	{"devices", regexp.MustCompile(`(?i)claim|device`), []placement.Constraint{placement.DRADevices}},
}

// unavailable matches the scheduler's message about a pod that no node takes.
var unavailable = regexp.MustCompile(`0/\d+ nodes are available: (.*?)\.(?: |$)`)

// parseRejections reads the counts of a message of the scheduler; ok is false for a message that does not count nodes.
func parseRejections(message string) (r rejections, ok bool) {
	m := unavailable.FindStringSubmatch(message)
	if m == nil {
		return nil, false
	}
	r = rejections{}
	for part := range strings.SplitSeq(m[1], ", ") {
		number, text, _ := strings.Cut(part, " ")
		n, err := strconv.Atoi(number)
		topic := topicOf(text)
		if err != nil || topic == "" {
			return nil, false
		}
		r[topic] += n
	}
	return r, true
}

// topicOf is the topic of one reason of the scheduler; empty for a reason that is not about nodes. Of a shortage it names the resource.
func topicOf(text string) string {
	for _, p := range reasonPatterns {
		switch m := p.pattern.FindStringSubmatch(text); {
		case m == nil:
		case p.topic != "resource":
			return p.topic
		case m[2] != "":
			return "resource " + m[2]
		default:
			return "resource " + string(corev1.ResourcePods)
		}
	}
	return ""
}

// computed counts the reasons that the scheduler would give for the members of a role, from the rows of gangctl's answer.
func computed(rows []answer.NodeRow, role string) rejections {
	r := rejections{}
	for _, row := range rows {
		if row.Role == role {
			for _, topic := range firstOf(row.Violations) {
				r[topic]++
			}
		}
	}
	return r
}

// firstOf are the topics that the scheduler names of one node.
func firstOf(violations []answer.Violation) []string {
	for _, p := range reasonPatterns {
		var found []string
		for _, v := range violations {
			name, short := placement.Constraint(v.Constraint).ResourceName()
			switch {
			case short && p.topic == "resource":
				found = append(found, "resource "+string(name))
			case slices.Contains(p.constraints, placement.Constraint(v.Constraint)):
				return []string{p.topic}
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// roles are the names of the roles in the rows of an answer.
func roles(rows []answer.NodeRow) []string {
	names := map[string]bool{}
	for _, row := range rows {
		names[row.Role] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// NodeByNode compares gangctl's reasons for every node with those that the scheduler counts. It returns the difference; empty without. What
// the scheduler reports after it has assumed other members is about another state, and is not compared.
func NodeByNode(a *answer.Answer, w Outcome) string {
	if a.Nodes == nil || w.Members > 1 && !w.mentions("0 scheduled") {
		return ""
	}
	for _, message := range w.Messages {
		counted, ok := parseRejections(message)
		if !ok {
			continue
		}
		var all []string
		same := false
		for _, role := range roles(a.Nodes.Rows) {
			c := computed(a.Nodes.Rows, role)
			same = same || maps.Equal(c, counted)
			all = append(all, c.String())
		}
		if !same {
			return fmt.Sprintf("the scheduler counts %s; gangctl has %s", counted, strings.Join(all, ", or "))
		}
	}
	return ""
}

// String lists the counts in a fixed order.
func (r rejections) String() string {
	var out []string
	for _, topic := range slices.Sorted(maps.Keys(r)) {
		out = append(out, fmt.Sprintf("%d %s", r[topic], topic))
	}
	return strings.Join(out, ", ")
}

// plannedAsWhole reports whether a message is that of the planner, about the gang.
func (w Outcome) plannedAsWhole() bool {
	return slices.ContainsFunc(w.Messages, func(m string) bool {
		_, _, ok := unplaced.FromCondition(strings.TrimPrefix(m, corev1.PodReasonUnschedulable+": "))
		return ok
	})
}

func (w Outcome) mentions(text string) bool {
	return slices.ContainsFunc(w.Messages, func(m string) bool { return strings.Contains(m, text) })
}

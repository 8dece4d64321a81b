// Package phrase formats the values that answers are made of: names, amounts, ages.
package phrase

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/gang"
)

// maxNames is how many names a sentence can carry.
const maxNames = 4

// Names joins names, and counts those beyond the fourth.
func Names(names []string) string {
	return NamesOf(names, func(name string) string { return name })
}

// NamesOf joins the names of some things, as [Names] does. It names none that are only counted.
func NamesOf[T any](all []T, name func(T) string) string {
	var shown []string
	for _, x := range all[:min(len(all), maxNames)] {
		shown = append(shown, name(x))
	}
	return FirstNames(shown, len(all))
}

// FirstNames joins the first names of so many in all, as [Names] does.
func FirstNames(first []string, all int) string {
	if all == 0 {
		return "none"
	}
	first = first[:min(len(first), maxNames)]
	text := strings.Join(first, ", ")
	if more := all - len(first); more > 0 {
		text += fmt.Sprintf(", +%d", more)
	}
	return text
}

// Or joins alternatives: a, b or c. It counts those beyond the fourth.
func Or(names []string) string {
	if len(names) < 2 {
		return Names(names)
	}
	if others := len(names) - maxNames; others > 0 {
		return fmt.Sprintf("%s or %d more", strings.Join(names[:maxNames], ", "), others)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// And joins all names, however many there are: a, b and c.
func And(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// AreNames joins names and their verb: a is, or a, b are.
func AreNames(names []string) string {
	return Names(names) + " " + Verb(len(names), "is", "are")
}

// Fraction reads like 1/2.
func Fraction(n, of int32) string { return fmt.Sprintf("%d/%d", n, of) }

// Ending reads like: exit code 137 (OOMKilled).
func Ending(t *corev1.ContainerStateTerminated) string {
	meaning := t.Reason
	if meaning == "" || meaning == "Error" {
		meaning = ExitCode(t.ExitCode)
	}
	if meaning == "" {
		return fmt.Sprintf("exit code %d", t.ExitCode)
	}
	return fmt.Sprintf("exit code %d (%s)", t.ExitCode, meaning)
}

// ExitCode is what an exit code means by the conventions of shells and runtimes, and what that is a sign of; "" if it means what the program has it mean.
func ExitCode(code int32) string {
	switch code {
	case 126:
		return "the command is no program that can be run"
	case 127:
		return "the command was not found"
	case 134:
		return "SIGABRT: the program aborted"
	case 135:
		return "SIGBUS, often for lack of room in /dev/shm"
	case 137:
		return "SIGKILL: it was killed, by the kubelet or for lack of memory"
	case 139:
		return "SIGSEGV: native code crashed"
	case 143:
		return "SIGTERM: it was told to end"
	}
	return ""
}

// Count is a number with its noun: 1 worker, 2 workers.
func Count[N int | int32 | int64](n N, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Verb is the form of a verb for so many objects: it holds, they hold.
func Verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Age is a duration in one or two units: 4s, 12m, 3h20m. One that is negative, as clocks differ, is 0s. All ages are written by it.
func Age(d time.Duration) string { return duration.HumanDuration(max(0, d)) }

// Since is the [Age] at a time of what began at another; "-" for what has not begun.
func Since(began, now time.Time) string {
	if began.IsZero() {
		return "-"
	}
	return Age(now.Sub(began))
}

// Clock is a time of day, with the date where it is not that of now. Times are UTC, as those of the API.
func Clock(t, now time.Time) string {
	t = t.UTC()
	if t.Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}

// Role is the users' name of a simulated role. A role whose members differ is simulated as several, which are numbered: Worker#2.
func Role(simulated string) string {
	name, _, _ := strings.Cut(simulated, "#")
	return name
}

// Member is how a role's members are called in a sentence: worker, PS. Users give roles of some kinds names, often in the plural.
func Member(role string) string {
	role = strings.ToLower(Role(role))
	if role == "ps" {
		return "PS"
	}
	switch role {
	case "gpu", "gpus", "cpu", "cpus", "memory", "pod", "pods": // what members request, or are
		return role + " member"
	}
	if one, plural := strings.CutSuffix(role, "s"); plural && one != "" && !strings.HasSuffix(one, "s") {
		return one
	}
	return role
}

// Plain is a text of which a part may be what users wrote as others may see it, in conditions, events and annotations: on one line, without control characters.
// Terminals, dashboards and logs show those as they are.
func Plain(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(iostreams.Escape(text))
}

// Shorten cuts a text to a limit in bytes, as APIs have it, between two characters, and
// shows that it did. The limit is 3 or more.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const dots = "…"
	cut := 0
	for i := range text {
		if i > limit-len(dots) {
			break
		}
		cut = i
	}
	return text[:cut] + dots
}

// Progress is how far a job has come, by its own account: 42%, about 12m left. It is empty where nothing is reported, or the estimated end
// has passed.
func Progress(p *gang.Progress, now time.Time) string {
	var parts []string
	if p != nil && p.Percent != nil {
		parts = append(parts, fmt.Sprintf("%d%%", *p.Percent))
	}
	if p != nil && p.End.After(now) {
		parts = append(parts, "about "+Age(p.End.Sub(now))+" left")
	}
	return strings.Join(parts, ", ")
}

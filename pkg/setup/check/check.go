// Package check knows what has to be true of a cluster so that gangs run on it: each check as data, judged by a pure function
// over facts that were collected once (package look). What could not be looked at is never taken for well.
package check

import (
	"slices"
	"strings"
)

// Status is what a check found, as it is written in JSON and in the table.
type Status string

// The statuses, from good to bad. A check that could not look fails like one that found something.
const (
	OK      Status = "ok"
	Warn    Status = "warn"
	Fail    Status = "fail"
	Unknown Status = "unknown"
)

var severity = []Status{OK, Warn, Fail, Unknown}

// Failed reports whether the status makes the whole report one that failed.
func (s Status) Failed() bool { return s == Fail || s == Unknown }

// worse is the worse of two statuses.
func worse(a, b Status) Status {
	if slices.Index(severity, b) > slices.Index(severity, a) {
		return b
	}
	return a
}

// Finding is one thing that a check found.
type Finding struct {
	Status Status `json:"status"`
	// Message is one lower-case sentence without a full stop.
	Message string `json:"message"`
	// Hint is what to do next, usually a command; it may be empty.
	Hint string `json:"hint,omitempty"`
	// Fix is YAML for `kubectl apply -f -` that puts it right; it may be empty.
	Fix string `json:"fix,omitempty"`
}

// Category groups checks. Its words are the headings of the table.
type Category string

// The categories, in the order in which they are shown.
const (
	API       Category = "api"
	Versions  Category = "versions"
	Rights    Category = "rights"
	CRDs      Category = "custom resources"
	Schedule  Category = "schedulers"
	Operators Category = "operators"
	RBAC      Category = "rbac"
	Devices   Category = "devices"
	Clocks    Category = "clocks"
	Install   Category = "installation"
	Smoke     Category = "smoke test"
)

// Check is one thing that has to be true.
type Check struct {
	// ID is a stable name, such as scheduler-alive.
	ID       string
	Category Category
	// Title is a sentence that is true when the check is ok.
	Title string
	// Needs are the resources that must have been listed for it: RESOURCE or RESOURCE.GROUP.
	Needs []string
	// Judge looks at the facts. No findings mean that there is nothing to judge here.
	Judge func(*Facts) []Finding
}

// Outcome is a check and what it found.
type Outcome struct {
	ID       string    `json:"id"`
	Category Category  `json:"category"`
	Title    string    `json:"title"`
	Status   Status    `json:"status"`
	Findings []Finding `json:"findings"`
}

// Run judges the facts by each check, in their order. A check that finds nothing to judge is left out.
func Run(checks []Check, f *Facts) []Outcome {
	var all []Outcome
	for _, c := range checks {
		findings := c.unseen(f)
		if findings == nil {
			findings = c.Judge(f)
		}
		if len(findings) > 0 {
			all = append(all, NewOutcome(c.ID, c.Category, c.Title, findings...))
		}
	}
	return all
}

// NewOutcome is the outcome of a check that was made elsewhere; its status is that of its worst finding.
func NewOutcome(id string, category Category, title string, findings ...Finding) Outcome {
	o := Outcome{ID: id, Category: category, Title: title, Status: OK, Findings: findings}
	for _, f := range findings {
		o.Status = worse(o.Status, f.Status)
	}
	return o
}

// unseen is the finding for what the check needs and nobody could list; nil if all is there.
func (c Check) unseen(f *Facts) []Finding {
	var denied, failed []string
	for _, resource := range c.Needs {
		why, unseen := f.Unseen[resource]
		switch {
		case !unseen:
		case f.Denied[resource]:
			denied = append(denied, resource)
		default:
			failed = append(failed, "list "+resource+": "+why)
		}
	}
	if len(denied) > 0 {
		failed = append([]string{"you may not list " + strings.Join(denied, ", ")}, failed...)
	}
	if len(failed) == 0 {
		return nil
	}
	return []Finding{{Status: Unknown, Message: "could not look: " + strings.Join(failed, "; ")}}
}

func okf(format string, args ...any) Finding { return findf(OK, format, args...) }

func warnf(format string, args ...any) Finding { return findf(Warn, format, args...) }

func failf(format string, args ...any) Finding { return findf(Fail, format, args...) }

// Package check knows what has to be true of a cluster so that gangs run on it: each check as data, judged by a pure function
// over facts that were collected once (package facts). A check whose facts are incomplete is never ok.
package check

import (
	"slices"
	"strings"
	"time"
)

// Status is the result of a check, as it is written in JSON and in the table.
type Status string

// The statuses, from good to bad. A check that could not be made fails like one that found something.
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

// Category groups checks. Its values are the headings of the table.
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
	// Judge evaluates the facts. No findings mean that there is nothing to judge here.
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

// run judges the facts by each check, in their order. A check that finds nothing to judge is left out.
func run(checks []Check, f *Facts) []Outcome {
	var all []Outcome
	for _, c := range checks {
		findings := c.unlisted(f)
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

// unlisted is the finding for lists that the check needs and that failed; nil if all are there.
func (c Check) unlisted(f *Facts) []Finding {
	var denied, failed []string
	for _, resource := range c.Needs {
		why, unlisted := f.Unlisted[resource]
		switch {
		case !unlisted:
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
	return []Finding{{Status: Unknown, Message: "could not check: " + strings.Join(failed, "; ")}}
}

func okf(format string, args ...any) Finding { return findf(OK, format, args...) }

func warnf(format string, args ...any) Finding { return findf(Warn, format, args...) }

func failf(format string, args ...any) Finding { return findf(Fail, format, args...) }

// APIVersion is that of the report in JSON; fields are only added.
const APIVersion = "gangctl.check/v1"

// Report has the results of all checks.
type Report struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Time       time.Time `json:"time"`
	// Server is the version of the API server, User the caller; both as it reports them.
	Server string `json:"server"`
	User   string `json:"user,omitempty"`
	// Status is that of the worst check.
	Status  Status    `json:"status"`
	Summary Summary   `json:"summary"`
	Checks  []Outcome `json:"checks"`
	// Grant is YAML for `kubectl apply -f -` with which checks that could not be made can; empty if all could.
	Grant string `json:"grant,omitempty"`
	// Smoke is the gang that was placed, if one was.
	Smoke *Placed `json:"smoke,omitempty"`
}

// Summary counts checks by their status.
type Summary struct {
	OK      int `json:"ok"`
	Warn    int `json:"warn"`
	Fail    int `json:"fail"`
	Unknown int `json:"unknown"`
}

// Placed has the times that a smoke test measured, in seconds from the creation of the gang; 0 for what was not reached.
type Placed struct {
	Namespace string  `json:"namespace"`
	Scheduler string  `json:"scheduler"`
	Dialect   string  `json:"dialect"`
	Bound     float64 `json:"boundSeconds"`
	Running   float64 `json:"runningSeconds"`
	Deleted   float64 `json:"deletedSeconds"`
}

// NewReport sums up what the checks found, and further outcomes that were found elsewhere.
func NewReport(checks []Check, f *Facts, further ...Outcome) *Report {
	outcomes := append(run(checks, f), further...)
	r := &Report{APIVersion: APIVersion, Kind: "CheckReport", Time: f.View.Now.UTC(), Server: f.View.Snap.Server.Version, User: f.User,
		Status: OK, Checks: outcomes, Grant: unlistedGrant(checks, f)}
	for _, o := range outcomes {
		r.Status = worse(r.Status, o.Status)
		switch o.Status {
		case OK:
			r.Summary.OK++
		case Warn:
			r.Summary.Warn++
		case Fail:
			r.Summary.Fail++
		case Unknown:
			r.Summary.Unknown++
		}
	}
	return r
}

package check

import (
	"strings"
	"time"
)

// APIVersion is that of the report in JSON; fields are only added.
const APIVersion = "gangctl.check/v1"

// Report is what all checks found.
type Report struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Time       time.Time `json:"time"`
	// Server is the version of the API server, User who asked it; both as it says.
	Server string `json:"server"`
	User   string `json:"user,omitempty"`
	// Status is that of the worst check.
	Status  Status    `json:"status"`
	Summary Summary   `json:"summary"`
	Checks  []Outcome `json:"checks"`
	// Grant is YAML for `kubectl apply -f -` with which checks that could not look can; empty if all could.
	Grant string `json:"grant,omitempty"`
	// Smoke tells of the gang that was placed, if one was.
	Smoke *Placed `json:"smoke,omitempty"`
}

// Summary counts checks by their status.
type Summary struct {
	OK      int `json:"ok"`
	Warn    int `json:"warn"`
	Fail    int `json:"fail"`
	Unknown int `json:"unknown"`
}

// Placed is what a smoke test measured, in seconds from the creation of the gang; 0 for what was not reached.
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
	outcomes := append(Run(checks, f), further...)
	r := &Report{APIVersion: APIVersion, Kind: "CheckReport", Time: f.World.Now.UTC(), Server: f.World.Snap.Server.Version, User: f.User,
		Status: OK, Checks: outcomes, Grant: unseenGrant(checks, f)}
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

func joined(words []string) string { return strings.Join(words, ", ") }

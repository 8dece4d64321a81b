package answer

// Verdict is the result of a diagnosis, and begins its text.
type Verdict string

// The verdicts.
const (
	Running   Verdict = "RUNNING"  // nothing to explain; at least minMember members run
	Done      Verdict = "DONE"     // the job has succeeded
	FitsNow   Verdict = "FITS_NOW" // a full placement exists and nothing stands in the way
	Waiting   Verdict = "WAITING"  // starts without any action
	Starting  Verdict = "STARTING" // is placed, and starts without any action
	Blocked   Verdict = "BLOCKED"  // waiting is useless
	Degraded  Verdict = "DEGRADED" // members hold resources, but the gang cannot run
	Uncertain Verdict = "UNKNOWN"  // evidence or permission is missing
	Failed    Verdict = "FAILED"   // terminal
)

// Who has to act.
type Who string

// Those who may act.
const (
	Nobody Who = "nobody"
	User   Who = "user"
	Admin  Who = "admin"
)

// The exit codes of verdicts; they are part of the interface.
const (
	ExitOK       = 0
	ExitWaiting  = 3
	ExitUser     = 4
	ExitAdmin    = 5
	ExitNever    = 6
	ExitDegraded = 7
	ExitUnknown  = 8
	ExitFailed   = 9
)

// ExitCode is the exit code of a verdict.
func ExitCode(v Verdict, who Who, never bool) int {
	switch v {
	case Running, Done:
		return ExitOK
	case FitsNow, Waiting, Starting:
		return ExitWaiting
	case Degraded:
		return ExitDegraded
	case Failed:
		return ExitFailed
	case Blocked:
		switch {
		case never:
			return ExitNever
		case who == User:
			return ExitUser
		default:
			return ExitAdmin
		}
	default:
		return ExitUnknown
	}
}

// Starts reports whether the gang starts, or runs, without help and without waiting for something else to end.
func (v Verdict) Starts() bool {
	return v == Running || v == FitsNow || v == Starting || v == Done
}

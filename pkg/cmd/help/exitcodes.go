package help

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// meaning is the description of an exit code.
type meaning struct {
	Code int
	// Lines are COMMANDS: MEANING.
	Lines []string
}

// answering are the commands that end with the exit code of an answer.
const answering = "why-pending, fit, submit --dry-run=fit: "

// meanings are all exit codes, in order.
func meanings() []meaning {
	code := func(c failure.Code) int { return int(c) }
	m := map[int][]string{}
	add := func(code int, lines ...string) { m[code] = append(m[code], lines...) }
	add(code(failure.CodeOK), "all: what was requested is done",
		"why-pending: "+verdicts(answer.ExitOK)+"; without a name: no gang waits", "fit, submit --dry-run=fit: "+string(answer.FitsNow)+": the gang would start now")
	add(code(failure.CodeError), "all: an error, reported on standard error")
	add(code(failure.CodeUsage), "all: a mistake on the command line; nothing was done")
	add(answer.ExitWaiting, answering+verdicts(answer.ExitWaiting, answer.FitsNow)+": it starts by itself", "why-pending: "+string(answer.FitsNow)+": there is room, and nothing in the way")
	add(answer.ExitUser, answering+verdicts(answer.ExitUser)+": you can remove what is in the way")
	add(answer.ExitAdmin, answering+verdicts(answer.ExitAdmin)+": an administrator or another user has to remove what is in the way")
	add(answer.ExitAdmin, "check: a check failed, or could not be made")
	add(answer.ExitNever, answering+verdicts(answer.ExitNever)+": it exceeds a hard limit and never starts as it is")
	add(answer.ExitDegraded, answering+verdicts(answer.ExitDegraded)+": members hold resources, but the gang cannot run")
	add(answer.ExitUnknown, answering+verdicts(answer.ExitUnknown)+": evidence or a right is missing, and the answer names it")
	add(answer.ExitFailed, answering+verdicts(answer.ExitFailed)+": the job has failed")
	add(code(failure.CodeTimedOut), "wait, submit --wait, delete, resize, install --wait: the time of --timeout is over; what was begun goes on")
	add(code(failure.CodeJobFailed), "wait, submit --wait, --follow: the job failed, or was deleted meanwhile")
	add(code(failure.CodeInterrupted), "all: interrupted by Ctrl-C; what goes on in the cluster is reported")
	var all []meaning
	for c, lines := range m {
		all = append(all, meaning{Code: c, Lines: lines})
	}
	slices.SortFunc(all, func(a, b meaning) int { return a.Code - b.Code })
	return all
}

// verdicts are the names of those with an exit code, without some.
func verdicts(code int, without ...answer.Verdict) string {
	var names []string
	for _, v := range allVerdicts() {
		if slices.Contains(without, v) {
			continue
		}
		for _, who := range []answer.Who{answer.Nobody, answer.User, answer.Admin} {
			for _, never := range []bool{false, true} {
				if answer.ExitCode(v, who, never) == code && !slices.Contains(names, string(v)) {
					names = append(names, string(v))
				}
			}
		}
	}
	return strings.Join(names, ", ")
}

// allVerdicts are the verdicts of answers.
func allVerdicts() []answer.Verdict {
	return []answer.Verdict{answer.Running, answer.Done, answer.FitsNow, answer.Waiting, answer.Starting, answer.Blocked, answer.Degraded,
		answer.Uncertain, answer.Failed}
}

// newExitCodes returns the topic of every exit code of gangctl, and what it means in which command.
func newExitCodes() *cobra.Command {
	var long strings.Builder
	long.WriteString("The exit codes of gangctl. Without a name, why-pending ends with the highest of those of all gangs.\n")
	for _, m := range meanings() {
		for i, line := range m.Lines {
			label := ""
			if i == 0 {
				label = fmt.Sprint(m.Code)
			}
			fmt.Fprintf(&long, "\n    %3s  %s", label, line)
		}
	}
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: long.String()}
}

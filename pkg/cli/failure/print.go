package failure

import (
	"fmt"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
)

// Print writes `error: …` and `hint: …` to standard error. A message of several lines gets one `error:` a line. An error
// without a message only carries an exit code: what there was to say has been printed.
func Print(s *iostreams.IOStreams, e *Error) {
	if e.Message == "" {
		return
	}
	for line := range strings.SplitSeq(e.Message, "\n") {
		fmt.Fprintf(s.ErrOut, "%s %s\n", s.ErrStyled(iostreams.Red, "error:"), line)
	}
	if e.Hint != "" {
		fmt.Fprintf(s.ErrOut, "%s %s\n", s.ErrStyled(iostreams.Cyan, "hint:"), e.Hint)
	}
}

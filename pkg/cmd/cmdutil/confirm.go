package cmdutil

import (
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/prompt"
)

// Confirmation is the prompt that the user has to confirm before what was shown is applied.
type Confirmation struct {
	// Yes is --yes: it is confirmed already.
	Yes bool
	// Line is the command, to which --yes can be added.
	Line string
	// Stays is what is so if it is not confirmed, the end of a sentence.
	Stays string
	// See is how to see more of it; may be empty. Else is a hint for whoever declines; may be empty.
	See, Else string
}

// Prompt returns nil once it is confirmed: by --yes, or at the terminal.
func (c Confirmation) Prompt(p prompt.Prompter) error {
	if c.Yes {
		return nil
	}
	if !p.Available() {
		return failure.Errorf("cannot prompt whether to apply it: stdin and stderr must be terminals").WithHint("%s", onLines(c.See, "to apply it all the same: "+c.Line+" --yes"))
	}
	yes, err := p.Confirm("Apply it?")
	if err != nil {
		return err
	}
	if !yes {
		return failure.Errorf("not confirmed; %s", c.Stays).WithHint("%s", onLines(c.See, c.Else))
	}
	return nil
}

// onLines are those of two texts that are not empty, each on a line.
func onLines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

package root

import (
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

func TestPluginIsCalledByItsName(t *testing.T) {
	for program, want := range map[string]string{
		"": "gangctl", "/usr/bin/gangctl": "gangctl", "/home/ann/.krew/bin/kubectl-gang": "kubectl gang", "kubectl-gang.exe": "kubectl gang", "kubectl-gangs": "gangctl",
	} {
		_, f, output := newRoot(t, "list", "--help")
		f.Program = program
		if code := Execute(t.Context(), f, NewCommand(f)); code != failure.CodeOK {
			t.Fatal(code)
		}
		help, _ := output()
		if !strings.Contains(help, "Usage:\n  "+want+" list") || !strings.Contains(help, "…): "+want+" --help") || !strings.Contains(help, "\n  "+want+" list") ||
			want != "gangctl" && strings.Contains(help, "gangctl list") {
			t.Errorf("%q:\n%s", program, help)
		}
		_, f, output = newRoot(t, "squeue")
		f.Program = program
		code := Execute(t.Context(), f, NewCommand(f))
		if _, stderr := output(); code != failure.CodeUsage || !strings.HasSuffix(stderr, "hint: did you mean '"+want+" list'?\n") {
			t.Errorf("%q: %d, %s", program, code, stderr)
		}
	}
}

package whypending

import (
	"errors"
	"strings"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// A terminal breaks the text at its width; a pipe gets every line whole.
func TestTerminalWidth(t *testing.T) {
	file := saved(t)
	first := func(columns int) string {
		io, _, out, _ := iostreams.Test(clocktesting.NewFakeClock(clustertest.Now))
		if columns > 0 {
			io.SetTerminal(columns)
			io.SetColor(iostreams.ColorNever)
		}
		cmd := NewCommand(&cmdutil.Factory{IO: io, Namespace: func() (string, error) { return "team", nil },
			Client: func() (*kube.Client, error) { return nil, errors.New("no cluster") }}, nil)
		_ = commandtest.Execute(t.Context(), cmd, "llama", "-q", "--from", file) // ends with the answer's exit code
		return out.String()
	}
	piped, narrow := first(0), first(40)
	if strings.Count(piped, "\n") != 1 || len(piped) < 80 {
		t.Errorf("a pipe gets %q", piped)
	}
	lines := strings.Split(strings.TrimSuffix(narrow, "\n"), "\n")
	for i, line := range lines {
		if len(line) > 40 || i > 0 && !strings.HasPrefix(line, "         ") {
			t.Errorf("line %d of a terminal: %q", i+1, line)
		}
	}
	if strings.Join(strings.Fields(narrow), " ") != strings.Join(strings.Fields(piped), " ") {
		t.Errorf("a terminal gets other words: %q", narrow)
	}
}

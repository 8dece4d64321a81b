package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangctl/gangctl/internal/prerequisite"
	"github.com/gangctl/gangctl/test/shell"
)

// shells completes what only the cluster knows, in every shell that is there.
func shells(t *testing.T, w *environment) {
	const namespace = "completed"
	w.namespace(t, namespace)
	for i := range 110 {
		w.namespace(t, fmt.Sprintf("crowd-%03d", i))
	}
	w.job(t, namespace, "llama-small", "running")
	w.must(t, namespace, "gangctl submit tf llama-large --image i --workers 400 --gpus 8 -- true && gangctl submit tf other --image i -- true")
	scripts, err := filepath.Abs("../../../completions")
	must(t, err)
	// A server that is slow is not waited for, and without a message: on a busy machine people press tab again, here for a minute.
	patiently := func(complete func() (string, error), enough func(string) bool) (got string, err error) {
		for start := time.Now(); time.Since(start) < time.Minute; {
			if got, err = complete(); err != nil || enough(got) {
				break
			}
		}
		return got, err
	}
	complete := func(t *testing.T, s shell.Shell, line string, enough func(string) bool) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		got, err := patiently(func() (string, error) {
			got, err := s.Complete(ctx, shell.Session{Scripts: scripts, Home: t.TempDir(), Env: w.environment(t, namespace)}, line)
			return got, err
		}, enough)
		must(t, err)
		return got
	}
	for _, s := range shell.Shells() {
		t.Run(s.Name, func(t *testing.T) {
			prerequisite.Program(t, s.Name)
			for line, want := range map[string][]string{
				"gangctl get llama-":                         {`llama-small\W+Running`, `llama-large\W+Pending`},
				"gangctl delete llama-small llama-":          {`large`},
				"gangctl list -n comp":                       {`leted`},
				"gangctl why-pending x --node node-":         {`node-1\b`, `node-12\b`},
				"gangctl logs llama-small --role ":           {`ps\W+1 member`, `worker\W+4 members`},
				"gangctl submit tf --priority-class system-": {`system-cluster-critical`, `system-node-critical`},
			} {
				lacks := func(got string) int {
					return slices.IndexFunc(want, func(word string) bool { return !regexp.MustCompile(word).MatchString(got) })
				}
				got := complete(t, s, line, func(got string) bool { return lacks(got) < 0 })
				if i := lacks(got); i >= 0 {
					t.Errorf("%s: got %q, which lacks %s", line, got, want[i])
				}
				if strings.Contains(got, "other") {
					t.Errorf("%s: got %q, of which not all begins so", line, got)
				}
			}
			offered := func(got string) int { return len(regexp.MustCompile(`crowd-\d`).FindAllString(got, -1)) }
			got := complete(t, s, "gangctl list -n crowd-", func(got string) bool { return offered(got) >= 100 })
			if n := offered(got); n < 100 || n > 101 { // zsh also shows what was typed
				t.Errorf("%d namespaces are offered, want 100: %q", n, got)
			}
		})
	}
	w.must(t, namespace, "gangctl delete llama-large other --wait=false")
	t.Run("kubectl", func(t *testing.T) {
		const want = "llama-small\tRunning\n:4\n"
		got, err := patiently(func() (string, error) {
			cmd := exec.Command(filepath.Join(scripts, "kubectl_complete-gang"), "get", "llama-s")
			cmd.Env = w.environment(t, namespace)
			out, err := cmd.Output()
			return string(out), err
		}, func(got string) bool { return got == want })
		if err != nil || got != want {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// Package shell completes gangctl's command line in real shells.
package shell

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/gangctl/gangctl/pkg/cmd/factory"
	"github.com/gangctl/gangctl/pkg/cmd/root"
	"github.com/gangctl/gangctl/pkg/iostreams"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gangctl": gangctl, "kubectl-gang": gangctl})
}

func gangctl() {
	f := &factory.Factory{IO: iostreams.System(os.Getenv), Program: os.Args[0], Args: os.Args[1:], Getenv: os.Getenv}
	os.Exit(int(root.Execute(context.Background(), f, root.NewCommand(f))))
}

// words stands for the one function of the package bash-completion that the script calls (it splits at blanks only), and for
// compopt, which bash allows only while somebody presses tab.
const words = `compopt() { :; }
_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}; }
`

// complete lets bash complete the last of the words with the shipped script. What reaches the terminal is part of the answer.
func complete(t *testing.T, kubeconfig string, typed ...string) (string, time.Duration) {
	t.Helper()
	script := words + `source ../../completions/gangctl.bash
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
__start_gangctl
printf '%s\n' "${COMPREPLY[@]}"`
	return run(t, kubeconfig, exec.Command("bash", append([]string{"--norc", "-c", script, "bash"}, typed...)...))
}

func run(t *testing.T, kubeconfig string, cmd *exec.Cmd) (string, time.Duration) {
	t.Helper()
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CONFIG_HOME=", "KUBECONFIG="+kubeconfig)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out), time.Since(start)
}

func TestBash(t *testing.T) {
	for typed, want := range map[string]string{
		"gangctl why": "why-pending\n", "gangctl submit tf --dialect sched": "scheduler-plugins\n", "gangctl --color nev": "never\n", "gangctl config use": "use-profile\n",
	} {
		if got, _ := complete(t, os.DevNull, strings.Fields(typed)...); strings.TrimRight(got, " \n") != strings.TrimSpace(want) {
			t.Errorf("%s: got %q, want %q", typed, got, want)
		}
	}
}

func TestScriptsAreClean(t *testing.T) {
	for _, script := range []string{"gangctl.bash", "kubectl_complete-gang"} {
		if out, err := exec.Command("bash", "-n", "../../completions/"+script).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
}

func TestKubectlPlugin(t *testing.T) {
	if got, _ := run(t, os.DevNull, exec.Command("../../completions/kubectl_complete-gang", "why")); !strings.HasPrefix(got, "why-pending\t") || !strings.HasSuffix(got, "\n:4\n") {
		t.Errorf("got %q", got)
	}
}

// An API server that refuses connections, or never answers, costs the shell the budget of two seconds at most, and says nothing.
func TestDeadServerIsSilent(t *testing.T) {
	for _, name := range []string{"closed", "hangs"} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if name == "closed" {
				l.Close()
			} else {
				defer l.Close()
			}
			kubeconfig := filepath.Join(t.TempDir(), "config")
			content := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- {name: c, cluster: {server: 'http://" + l.Addr().String() + "'}}\ncontexts:\n- {name: c, context: {cluster: c}}\n"
			if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, took := complete(t, kubeconfig, "gangctl", "get", "")
			// The budget of two seconds, and what it takes to start two programs on a busy machine.
			if strings.TrimSpace(got) != "" || took > 3*time.Second {
				t.Errorf("%v: %q", took, got)
			}
		})
	}
}

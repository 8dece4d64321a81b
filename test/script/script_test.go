// Package script runs gangctl's command line, without a cluster, through the scripts in testdata.
package script

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/root"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gangctl": gangctl})
}

// gangctl is the program without its signal handling, and of a version that scripts can compare.
func gangctl() {
	f := &cmdutil.Factory{
		IO: iostreams.System(os.Getenv), Args: os.Args[1:], Getenv: os.Getenv, Suffix: func() string { return "x7k2p" },
		Version: version.Info{Version: "v1.2.3", Commit: "0123456789abcdef", GoVersion: "go1.26", Platform: "linux/amd64", Kubernetes: "v0.37.1"},
	}
	os.Exit(int(root.Execute(context.Background(), f, root.NewCommand(f))))
}

func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("CLOSED", kubetest.Refusing(t))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exit": exit},
	})
}

// exit runs a program, as exec does, and fails unless it ends with the given code: exit CODE PROGRAM ARGUMENT…
func exit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit CODE PROGRAM ARGUMENT…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "exit status 0"
	if err != nil {
		got = err.Error()
	}
	if want := "exit status " + args[0]; got != want {
		ts.Fatalf("got %s, want %s", got, want)
	}
}

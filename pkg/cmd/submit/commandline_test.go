package submit

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// kept is the command line that a job of `gangctl ARGS` keeps, under a root that has the connection flags.
func kept(t *testing.T, args ...string) string {
	t.Helper()
	streams, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	f := &cmdutil.Factory{IO: streams, Args: args, Suffix: func() string { return "abcde" }}
	line := ""
	submit := &cobra.Command{Use: "submit"}
	submit.AddCommand(newKindCommand(f, tfKind(), func(_ context.Context, o *Options) error {
		spec, err := o.spec("research", o.request().Default())
		line = spec.CommandLine
		return err
	}))
	root := &cobra.Command{Use: "gangctl", SilenceErrors: true, SilenceUsage: true}
	kube.NewFactory("test", io.Discard).AddFlags(root.PersistentFlags())
	root.AddCommand(submit)
	root.SetArgs(args)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return line
}

func TestCommandLineKeepsNoCredentials(t *testing.T) {
	tests := []struct{ args, want string }{
		{"submit tf a --image i --token secret", "gangctl submit tf a --image i"},
		{"--token secret submit tf a --image i", "gangctl submit tf a --image i"},
		{"submit --token=secret tf a --image=i", "gangctl submit tf a --image=i"},
		{"submit tf a --as secret --image i --as-group=secret", "gangctl submit tf a --image i"},
		{"submit tf a --client-key /secret --image i --client-certificate=/secret", "gangctl submit tf a --image i"},
		{"submit tf a --proxy-url http://u:secret@p --image i", "gangctl submit tf a --image i"},
		{"submit tf a --server https://secret -s https://secret -shttps://secret -s=secret --image i", "gangctl submit tf a --image i"},
		{"submit tf a --insecure-skip-tls-verify --image i --insecure-skip-tls-verify=false", "gangctl submit tf a --image i"},
		{"submit tf a --token -- --image i -- x", "gangctl submit tf a --image i -- x"}, // pflag takes the first -- for the token
		{"submit tf a --token --image --image i", "gangctl submit tf a --image i"},
		{"submit tf a --image i --working-dir --token --env --as=x", "gangctl submit tf a --image i --working-dir --token --env --as=…"}, // values that look like flags
		{"submit tf a --image i -n ml -o yaml --wait", "gangctl submit tf a --image i -n ml -o yaml --wait"},
		{"submit tf a --image i -nml -oyaml", "gangctl submit tf a --image i -nml -oyaml"},
		{"submit tf a --image i --namespace=ml", "gangctl submit tf a --image i --namespace=ml"},
		{"submit tf a --image i --env A=secret --env=B=secret --env C= -- x --env D=arg", "gangctl submit tf a --image i --env A=… --env=B=… --env C=… -- x --env D=arg"},
		{"submit tf a --image i --sync-git https://secret@e.com/a", "gangctl submit tf a --image i --sync-git https://…@e.com/a"},
		{"submit tf a --image i --set spec.tfReplicaSpecs.Worker.template.spec.containers[0].env[0].value=secret --set=spec.successPolicy=AllWorkers",
			"gangctl submit tf a --image i --set 'spec.tfReplicaSpecs.Worker.template.spec.containers[0].env[0].value=…' --set=spec.successPolicy=AllWorkers"},
		{"submit tf a --image i --token secret -- run --token mine -s x -- --as me",
			"gangctl submit tf a --image i -- run --token mine -s x -- --as me"},
	}
	for _, tt := range tests {
		if got := kept(t, strings.Fields(tt.args)...); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.args, got, tt.want)
		}
	}
}

// A long command is the job's, and does not make it larger twice.
func TestCommandLineIsBounded(t *testing.T) {
	fits := strings.Repeat("x", maxCommandLine-len("gangctl submit tf a --image i -- "))
	if got := kept(t, "submit", "tf", "a", "--image", "i", "--", fits); len(got) != maxCommandLine {
		t.Errorf("got %d bytes, want all %d", len(got), maxCommandLine)
	}
	if got := kept(t, "submit", "tf", "a", "--image", "i", "--", fits+"x"); got != "" {
		t.Errorf("got %d bytes, want none", len(got))
	}
}

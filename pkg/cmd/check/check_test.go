package check

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/setup/check"
)

func command(f *cmdutil.Factory, runF func(context.Context, *Options) error, args ...string) error {
	cmd := NewCommand(f, runF)
	cmd.PersistentFlags().StringP("namespace", "n", "", "") // the root's
	return commandtest.Execute(context.Background(), cmd, args...)
}

func TestOptions(t *testing.T) {
	tests := []struct {
		args  string
		want  Options
		wrong string
	}{
		{args: "", want: Options{Target: "gangctl-system", Scheduler: "gang-scheduler"}},
		{args: "--pre", want: Options{Before: true, Target: "gangctl-system", Scheduler: "gang-scheduler"}},
		{args: "--pre -n ml", want: Options{Before: true, Target: "ml", Scheduler: "gang-scheduler"}},
		{args: "-n ml", want: Options{Target: "gangctl-system", Scheduler: "gang-scheduler"}},
		{args: "--smoke --scheduler volcano --timeout 5s", want: Options{Smoke: true, Target: "gangctl-system", Scheduler: "volcano", Timeout: 5 * time.Second}},
		{args: "x", wrong: `check takes no arguments, got "x"`},
		{args: "--pre --smoke", wrong: "--pre and --smoke cannot be used together"},
		{args: "--timeout 5s", wrong: "--timeout has no effect without --smoke"},
		{args: "--smoke-image x", wrong: "--smoke-image has no effect without --smoke"},
		{args: "--scheduler x", wrong: "--scheduler has no effect without --smoke"},
		{args: "--smoke --timeout 5ms", wrong: "--timeout 5ms: must be 1s or more"},
		{args: "--smoke --smoke-image=", wrong: "--smoke-image: must name an image"},
		{args: "-o wide", wrong: `--output "wide": must be one of json, yaml, jsonpath=, jsonpath-as-json=, go-template=`},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
			var got *Options
			err := command(&cmdutil.Factory{IO: io, Namespace: func() (string, error) { return "ml", nil }}, func(_ context.Context, o *Options) error {
				got = o
				return nil
			}, strings.Fields(tt.args)...)
			if tt.wrong != "" {
				if e := failure.From(err); e == nil || e.Code != failure.CodeUsage || !strings.HasPrefix(e.Message, tt.wrong) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := tt.want
			if want.Timeout == 0 {
				want.Timeout = time.Minute
			}
			if got.Before != want.Before || got.Smoke != want.Smoke || got.Target != want.Target || got.Scheduler != want.Scheduler || got.Timeout != want.Timeout {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestText(t *testing.T) {
	facts := func(status check.Status, message string) check.Finding {
		return check.Finding{Status: status, Message: message}
	}
	broken := facts(check.Fail, "b is down")
	broken.Hint, broken.Fix = "look\nagain", "kind: Role\n"
	r := &check.Report{User: "ann", Summary: check.Summary{OK: 1, Warn: 1, Fail: 1}, Grant: "kind: ClusterRole\n", Checks: []check.Outcome{
		check.NewOutcome("a", check.API, "it answers", facts(check.OK, "v1")),
		check.NewOutcome("b", check.Schedule, "all live", facts(check.OK, "a lives"), broken),
		check.NewOutcome("c", check.Schedule, "none fights", facts(check.Warn, "hm")),
	}}
	const want = `API
ok       it answers: v1

SCHEDULERS
fail     all live
         - ok: a lives
         - b is down
         hint: look
         again
warn     none fights: hm

3 checks: 1 ok, 1 with warnings, 1 failed

What is missing is granted by:
kubectl apply -f - <<'EOF'
kind: Role
EOF

To check everything, ann needs:
kubectl apply -f - <<'EOF'
kind: ClusterRole
EOF
`
	plain := func(_ iostreams.Style, text string) string { return text }
	io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(clustertest.Now))
	if got := Text(r, io, plain); got != want {
		t.Errorf("got\n%s", got)
	}
	narrow, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(clustertest.Now))
	narrow.SetTerminal(20)
	for _, line := range strings.Split(Text(r, narrow, plain), "\n")[:8] {
		if len(line) > 20 {
			t.Errorf("a line is wider than the terminal: %q", line)
		}
	}
	colored := Text(r, io, func(s iostreams.Style, text string) string { return "<" + string(s) + ">" + text + "</>" })
	for _, part := range []string{"<32>ok</>       it answers", "<1;31>fail</>     all live", "- <32>ok</>: a lives", "<36>hint:</> look"} {
		if !strings.Contains(colored, part) {
			t.Errorf("%q is not in\n%s", part, colored)
		}
	}
}

// run runs the command against a server of which the caller may see some.
func run(t *testing.T, change func(*kubetest.Cluster), args ...string) (stdout string, failed *failure.Error) {
	t.Helper()
	c := kubetest.Serve(t, clustertest.New().Nodes(2, 8).Done())
	if change != nil {
		change(c)
	}
	io, _, out, _ := iostreams.Test(clocktesting.NewFakeClock(clustertest.Now))
	f := &cmdutil.Factory{IO: io, Namespace: func() (string, error) { return "team", nil }, Client: c.Client, Suffix: func() string { return "x7k2p" },
		Version: version.Info{Version: "v1.2.3", Kubernetes: "v0.37.1"}}
	failed = failure.From(command(f, nil, args...))
	return out.String(), failed
}

// A server that does not even know some kinds, and one that refuses: nothing passes for well that was not seen.
func TestCouldNotLook(t *testing.T) {
	out, failed := run(t, func(c *kubetest.Cluster) { c.Deny("ann", "/apis/apps/v1/deployments") })
	if failed == nil || failed.Code != CodeFailed || failed.Message != "" {
		t.Fatalf("got %+v", failed)
	}
	for _, want := range []string{
		"unknown  a gang scheduler is alive: could not check: you may not list deployments.apps\n",
		"unknown  you may submit jobs and follow them: could not query your rights: ",
		"unknown  the gang scheduler holds every right that it uses: could not check: you may not list deployments.apps; list clusterroles.rbac.authorization.k8s.io: ",
		"  - deployments\n", "To check everything, you need:\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not reported:\n%s", want, out)
		}
	}
}

func TestJSON(t *testing.T) {
	for _, args := range [][]string{{"-o", "json"}, {"-o", "json", "--pre"}} {
		out, failed := run(t, nil, args...)
		if failed == nil || failed.Code != CodeFailed || !strings.HasPrefix(out, "{\n  \"apiVersion\": \"gangctl.check/v1\",\n  \"kind\": \"CheckReport\",\n") {
			t.Errorf("%q: %v\n%s", args, failed, out)
		}
	}
}

// What does not accept the caller is one error, and no report.
func TestNoAnswer(t *testing.T) {
	for _, args := range [][]string{nil, {"--pre"}} {
		out, failed := run(t, func(c *kubetest.Cluster) {
			c.Fail("/apis/apps/v1/deployments", kubetest.Status(401, metav1.StatusReasonUnauthorized, "Unauthorized", nil))
		}, args...)
		if failed == nil || failed.Code != failure.CodeError || out != "" || !strings.Contains(failed.Message, "does not accept your credentials") {
			t.Errorf("%q: %+v\n%s", args, failed, out)
		}
	}
}

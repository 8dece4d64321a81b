package attach

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

const (
	jobPath  = "/apis/kubeflow.org/v1/namespaces/research/tfjobs/llama"
	podsPath = "/api/v1/namespaces/research/pods"
)

// The channels of v5.channel.k8s.io, the protocol of the API server for commands.
const (
	stdin, stdout, stderr, outcome = 0, 1, 2, 3
	closed                         = 255
)

// run runs the command line; width 0 is a pipe.
func run(t *testing.T, client func() (*kube.Client, error), width int, in string, args ...string) (out, errOut string, failed *failure.Error) {
	t.Helper()
	f, streams := commandtest.Factory("research", time.Now(), width, client)
	streams.In.WriteString(in)
	return commandtest.Run(t.Context(), NewCommand(f, nil), streams, args...)
}

// gang serves a job of three workers, the last of which does not run, and what a container does with a command.
func gang(t *testing.T, container func(r *http.Request, in string) (out, errOut, status string)) *kubetest.Server {
	t.Helper()
	s := kubetest.New(t)
	s.Answer("GET "+jobPath, 200, kubetest.Job("research", "llama", 3))
	var pods []*corev1.Pod
	for i, node := range []string{"n1", "n1", ""} {
		p := kubetest.Pod("research", "llama", i, node, "no room")
		p.Spec.Containers = []corev1.Container{{Name: "sidecar"}, {Name: "tensorflow"}}
		pods = append(pods, p)
	}
	s.Answer("GET "+podsPath, 200, kubetest.PodList(pods...))
	s.HandleFunc("GET "+podsPath+"/{pod}/exec", func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		in := ""
		for r.FormValue("stdin") == "true" {
			_, data, err := conn.ReadMessage()
			if err != nil || data[0] == closed {
				break
			}
			if data[0] == stdin {
				in += string(data[1:])
			}
		}
		out, errOut, status := container(r, in)
		for channel, text := range []string{stdout: out, stderr: errOut, outcome: status} {
			if text == "" {
				continue
			}
			if err := conn.WriteMessage(websocket.BinaryMessage, append([]byte{byte(channel)}, text...)); err != nil {
				t.Error(err)
			}
		}
		_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
		_, _, _ = conn.ReadMessage()
	})
	return s
}

const success = `{"metadata":{},"status":"Success"}`

// What is requested arrives in the right container, and what it prints comes back.
func TestCommand(t *testing.T) {
	requested := map[string][]string{}
	s := gang(t, func(r *http.Request, in string) (string, string, string) {
		_ = r.ParseForm()
		requested = r.Form
		requested["pod"] = []string{r.PathValue("pod")}
		return "out " + in, "err", success
	})
	out, errOut, failed := run(t, s.Client, 0, "hello", "llama", "--index", "1", "-i", "--", "cat", "-n", "--", "a b")
	if failed != nil || out != "out hello" || errOut != "err" {
		t.Errorf("got %+v, %q, %q", failed, out, errOut)
	}
	want := map[string][]string{"pod": {"llama-worker-1"}, "container": {"tensorflow"}, "command": {"cat", "-n", "--", "a b"}, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}}
	if diff := cmp.Diff(want, requested); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if _, _, failed := run(t, s.Client, 0, "ignored", "llama", "-c", "sidecar", "--", "date"); failed != nil || requested["container"][0] != "sidecar" || requested["stdin"] != nil {
		t.Errorf("got %+v, %v", failed, requested)
	}
}

// On a terminal there is one on the other side too, and a shell without a command.
func TestShell(t *testing.T) {
	var requested *http.Request
	s := gang(t, func(r *http.Request, in string) (string, string, string) {
		requested = r
		return "bash$ " + in, "", success
	})
	out, _, failed := run(t, s.Client, 80, "exit\n", "llama")
	if failed != nil || out != "bash$ exit\n" || requested.FormValue("tty") != "true" || requested.FormValue("command") != "sh" || requested.FormValue("stderr") == "true" {
		t.Errorf("got %+v, %q, %v", failed, out, requested.URL)
	}
}

// The exit code of the command is that of gangctl.
func TestExitCode(t *testing.T) {
	s := gang(t, func(*http.Request, string) (string, string, string) {
		return "", "no GPU\n", `{"metadata":{},"status":"Failure","reason":"NonZeroExitCode","message":"x","details":{"causes":[{"reason":"ExitCode","message":"9"}]}}`
	})
	_, errOut, failed := run(t, s.Client, 0, "", "llama", "--", "nvidia-smi")
	if failed == nil || failed.Code != 9 || failed.Message != "" || errOut != "no GPU\n" {
		t.Errorf("got %+v, %q", failed, errOut)
	}
}

func TestErrors(t *testing.T) {
	s := gang(t, nil)
	forbidden := gang(t, nil)
	for _, method := range []string{"GET", "POST"} {
		forbidden.Refuse(method+" "+podsPath+"/llama-worker-0/exec", 403, metav1.StatusReasonForbidden,
			`pods "llama-worker-0" is forbidden: User "bob" cannot create resource "pods/exec" in API group "" in the namespace "research"`, nil)
	}
	tests := []struct {
		s             *kubetest.Server
		args          string
		code          failure.Code
		message, hint string
	}{
		{s, "", 2, "attach needs the name of one job, got 0", "after --"},
		{s, "a b", 2, "attach needs the name of one job, got 2", "after --"},
		{s, "llama --", 2, "there is no command after --", ""},
		{s, "llama --index -1 -- date", 2, "--index -1: must be 0 or more", ""},
		{s, "llama", 2, "a shell needs a terminal", "gangctl attach llama -- nvidia-smi"},
		{s, "llama --index 2 -- date", 1, "worker-2 of llama does not run: it is Pending: no room", "gangctl get llama -n research"},
		{s, "llama --index 7 -- date", 1, "llama has no member worker-7", "gangctl get llama"},
		{s, "llama --role chief -- date", 1, "llama has no member chief-0", "gangctl get llama"},
		{s, "llama -c x -- date", 1, `pod research/llama-worker-0 has no container "x"`, "sidecar, tensorflow"},
		{kubetest.New(t).NoJobs(), "llama -- date", 1, "get TFJob research/llama: the cluster does not serve tfjobs.kubeflow.org (v1)", "Training Operator"},
		{forbidden, "llama -- date", 1, `create exec in pod research/llama-worker-0: pods "llama-worker-0" is forbidden: User "bob" cannot create resource "pods/exec" in API group "" in the namespace "research"`, `resources: ["pods/exec"]`},
	}
	for _, tt := range tests {
		out, _, failed := run(t, tt.s.Client, 0, "", strings.Fields(tt.args)...)
		if out != "" || failed == nil || failed.Code != tt.code || failed.Message != tt.message || !strings.Contains(failed.Hint, tt.hint) {
			t.Errorf("%s: got %+v, %q", tt.args, failed, out)
		}
	}
	seen := &Options{}
	cmd := NewCommand(&cmdutil.Factory{}, func(_ context.Context, o *Options) error { seen = o; return nil })
	cmd.SetArgs([]string{"llama", "--role", "ps", "--", "ls", "-l"})
	cmd.SetOut(io.Discard)
	if err := cmd.Execute(); err != nil || seen.Member.Role != "ps" || strings.Join(seen.Command, " ") != "ls -l" {
		t.Errorf("got %v, %+v", err, seen)
	}
}

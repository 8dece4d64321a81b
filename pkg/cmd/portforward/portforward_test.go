package portforward

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
)

const (
	jobPath  = "/apis/kubeflow.org/v1/namespaces/research/tfjobs/llama"
	podsPath = "/api/v1/namespaces/research/pods"
)

// run runs the command line.
func run(ctx context.Context, client func() (*kube.Client, error), notes io.Writer, args ...string) *failure.Error {
	f, _ := commandtest.Factory("research", time.Now(), 0, client)
	f.IO.ErrOut = notes
	return failure.From(commandtest.Execute(ctx, NewCommand(f, nil), args...))
}

func gang(t *testing.T) *kubetest.Server {
	t.Helper()
	s := kubetest.New(t)
	s.Answer("GET "+jobPath, 200, kubetest.Job("research", "llama", 2))
	var pods []*corev1.Pod
	for i, node := range []string{"n1", ""} {
		pods = append(pods, kubetest.Pod("research", "llama", i, node, "no room"))
	}
	s.Answer("GET "+podsPath, 200, kubetest.PodList(pods...))
	return s
}

// forward answers on every port of the pod with the number of the port and what it received.
func forward(t *testing.T, w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		t.Error(err)
		return
	}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, replied <-chan struct{}) error {
		go func() {
			<-replied
			if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
				line, _ := bufio.NewReader(stream).ReadString('\n')
				fmt.Fprintf(stream, "port %s: %s", stream.Headers().Get(corev1.PortHeader), line)
			}
			_ = stream.Close()
		}()
		return nil
	})
	if conn == nil {
		return
	}
	<-conn.CloseChan()
}

// What is sent to the local port arrives at that of the pod, and the answer comes back.
func TestForward(t *testing.T) {
	s := gang(t)
	s.HandleFunc("GET "+podsPath+"/llama-worker-0/portforward", func(w http.ResponseWriter, _ *http.Request) {
		kubetest.Write(w, 400, kubetest.Status(400, metav1.StatusReasonBadRequest, "no WebSockets here", nil))
	})
	s.HandleFunc("POST "+podsPath+"/llama-worker-0/portforward", func(w http.ResponseWriter, r *http.Request) { forward(t, w, r) })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	notes, ended := &kubetest.Screen{}, make(chan *failure.Error, 1)
	go func() { ended <- run(ctx, s.Client, notes, "llama", "0:6006") }()
	address := regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+) -> 6006`)
	for deadline := time.Now().Add(10 * time.Second); !address.MatchString(notes.String()); time.Sleep(time.Millisecond) {
		select {
		case failed := <-ended:
			t.Fatalf("got %+v, %s", failed, notes)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not listen: %s", notes)
		}
	}
	conn, err := net.Dial("tcp", address.FindStringSubmatch(notes.String())[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || string(answer) != "port 6006: hello\n" {
		t.Errorf("got %q, %v", answer, err)
	}
	cancel()
	select {
	case failed := <-ended:
		if failed != nil {
			t.Errorf("got %+v", failed)
		}
	case <-time.After(10 * time.Second):
		t.Error("it does not end")
	}
}

func TestErrors(t *testing.T) {
	forbidden := gang(t)
	for _, method := range []string{"GET", "POST"} {
		forbidden.Refuse(method+" "+podsPath+"/llama-worker-0/portforward", 403, metav1.StatusReasonForbidden,
			`pods "llama-worker-0" is forbidden: User "bob" cannot create resource "pods/portforward" in API group "" in the namespace "research"`, nil)
	}
	tests := []struct {
		s             *kubetest.Server
		args          string
		code          failure.Code
		message, hint string
	}{
		{nil, "", 2, "port-forward needs the name of a job", "gangctl port-forward NAME"},
		{nil, "llama x", 2, `port "x": want REMOTE or LOCAL:REMOTE, such as 6006 or 9000:6006`, ""},
		{nil, "llama 0", 2, `port "0": want REMOTE or LOCAL:REMOTE, such as 6006 or 9000:6006`, ""},
		{nil, "llama 70000", 2, `port "70000": want REMOTE or LOCAL:REMOTE, such as 6006 or 9000:6006`, ""},
		{nil, "llama --address foo", 2, `--address "foo": must be an IP address of this machine, or localhost`, ""},
		{nil, "llama --index -1", 2, "--index -1: must be 0 or more", ""},
		{gang(t), "llama --index 1", 1, "worker-1 of llama does not run: it is Pending: no room", "gangctl get llama"},
		{kubetest.New(t).NoJobs(), "llama", 1, "get TFJob research/llama: the cluster does not serve tfjobs.kubeflow.org (v1)", "Training Operator"},
		{forbidden, "llama 0:6006", 1, `create port-forward to pod research/llama-worker-0: pods "llama-worker-0" is forbidden: User "bob" cannot create resource "pods/portforward" in API group "" in the namespace "research"`, `resources: ["pods/portforward"]`},
	}
	for _, tt := range tests {
		var client func() (*kube.Client, error)
		if tt.s != nil {
			client = tt.s.Client
		}
		failed := run(t.Context(), client, io.Discard, strings.Fields(tt.args)...)
		if failed == nil || failed.Code != tt.code || failed.Message != tt.message || !strings.Contains(failed.Hint, tt.hint) {
			t.Errorf("%s: got %+v", tt.args, failed)
		}
	}
}

package logs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cluster/logs"
)

// entry is a line of a log with its time.
type entry struct {
	at   time.Time
	text string
}

// run is one run of a container.
type run struct {
	lines []entry
	code  int32
	over  bool
	start time.Time
}

// node serves pods and their logs as an API server and a kubelet do, and breaks connections on demand.
type node struct {
	*kubetest.Server
	t *testing.T

	mu     sync.Mutex
	pods   map[string]*corev1.Pod
	runs   map[string][]*run // by pod
	news   chan struct{}     // closed at every change
	broken int               // how many connections break after some bytes
	down   bool
	open   int
	most   int
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{Server: kubetest.New(t), t: t, pods: map[string]*corev1.Pod{}, runs: map[string][]*run{}, news: make(chan struct{})}
	n.HandleFunc("GET /api/v1/namespaces/team/pods/{pod}", func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		defer n.mu.Unlock()
		pod := n.pods[r.PathValue("pod")]
		switch {
		case n.down:
			kubetest.Write(w, 503, kubetest.Status(503, metav1.StatusReasonServiceUnavailable, "starting", nil))
		case pod == nil:
			kubetest.Write(w, 404, kubetest.Status(404, metav1.StatusReasonNotFound, "gone", &metav1.StatusDetails{Name: r.PathValue("pod"), Kind: "pods"}))
		default:
			kubetest.Write(w, 200, pod)
		}
	})
	n.HandleFunc("GET /api/v1/namespaces/team/pods/{pod}/log", n.log)
	return n
}

// change changes what is served, and wakes those that follow.
func (n *node) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	close(n.news)
	n.news = make(chan struct{})
}

// add adds a pod whose container runs.
func (n *node) add(name, uid string) {
	n.change(func() {
		n.runs[name] = []*run{{start: time.Now()}}
		n.pods[name] = &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(uid)},
			Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "main"}}}}
		n.status(name)
	})
}

// status writes the status of a pod from its runs.
func (n *node) status(name string) {
	runs := n.runs[name]
	pod := n.pods[name].DeepCopy()
	s := corev1.ContainerStatus{Name: "main", RestartCount: int32(len(runs) - 1)}
	ended := func(r *run) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ExitCode: r.code, Reason: "Error", StartedAt: metav1.NewTime(r.start), FinishedAt: metav1.Now()}
	}
	if last := runs[len(runs)-1]; last.over {
		s.State.Terminated = ended(last)
	} else {
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(last.start)}
	}
	if len(runs) > 1 {
		s.LastTerminationState.Terminated = ended(runs[len(runs)-2])
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{s}}
	n.pods[name] = pod
}

// prints adds a line.
func (n *node) prints(name, text string) {
	n.change(func() {
		r := n.runs[name][len(n.runs[name])-1]
		r.lines = append(r.lines, entry{time.Now().UTC(), text})
	})
}

// restarts ends the run and begins another.
func (n *node) restarts(name string, code int32) {
	n.change(func() {
		last := n.runs[name][len(n.runs[name])-1]
		last.over, last.code = true, code
		n.runs[name] = append(n.runs[name], &run{start: time.Now()})
		n.status(name)
	})
}

// ends ends the pod.
func (n *node) ends(name string, code int32) {
	n.change(func() {
		last := n.runs[name][len(n.runs[name])-1]
		last.over, last.code = true, code
		n.status(name)
		n.pods[name].Status.Phase = corev1.PodSucceeded
		if code != 0 {
			n.pods[name].Status.Phase = corev1.PodFailed
		}
	})
}

func (n *node) member(name string, index int) logs.Source {
	n.mu.Lock()
	defer n.mu.Unlock()
	return logs.Source{Role: "worker", Index: index, Pod: n.pods[name], Container: "main"}
}

// log serves a log, as a kubelet does: what is requested, then what comes until the run ends.
func (n *node) log(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	if n.open++; n.open > n.most {
		n.most = n.open
	}
	name := r.PathValue("pod")
	runs, down := n.runs[name], n.down
	at := len(runs) - 1
	if r.FormValue("previous") == "true" {
		at--
	}
	breaks := -1
	if n.broken > 0 {
		n.broken--
		breaks = rand.IntN(400)
	}
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.open--
		n.mu.Unlock()
	}()
	switch {
	case down:
		kubetest.Write(w, 503, kubetest.Status(503, metav1.StatusReasonServiceUnavailable, "starting", nil))
		return
	case at < 0:
		kubetest.Write(w, 400, kubetest.Status(400, metav1.StatusReasonBadRequest, "previous terminated container not found", nil))
		return
	}
	var since time.Time
	if text := r.FormValue("sinceTime"); text != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, text); err != nil {
			n.t.Error(err)
		}
	}
	follow := r.FormValue("follow") == "true"
	w.WriteHeader(http.StatusOK)
	for sent := 0; ; {
		n.mu.Lock()
		lines, over, news, down := runs[at].lines, runs[at].over, n.news, n.down
		n.mu.Unlock()
		for _, l := range lines[sent:] {
			sent++
			if l.at.Before(since) {
				continue
			}
			text := l.at.Format(time.RFC3339Nano) + " " + l.text + "\n"
			if breaks >= 0 && len(text) > breaks {
				_, _ = w.Write([]byte(text[:breaks]))
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
			breaks -= min(len(text), max(0, breaks))
			_, _ = w.Write([]byte(text))
		}
		w.(http.Flusher).Flush()
		if down {
			panic(http.ErrAbortHandler)
		}
		if !follow || over {
			return
		}
		select {
		case <-news:
		case <-r.Context().Done():
			return
		}
	}
}

// tape takes what is read.
type tape struct {
	mu    sync.Mutex
	lines map[string][]string
	notes []string
}

func (t *tape) Line(l logs.Line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lines == nil {
		t.lines = map[string][]string{}
	}
	t.lines[string(l.Source.Pod.UID)] = append(t.lines[string(l.Source.Pod.UID)], l.Text)
}

func (t *tape) Note(m logs.Source, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = append(t.notes, fmt.Sprintf("[%s] %s", m.Name(), text))
}

func (t *tape) Lost(err error) { t.Note(logs.Source{}, err.Error()) }

// has waits until a line was read.
func (t *tape) has(ctx context.Context, uid, text string) bool {
	for ctx.Err() == nil {
		t.mu.Lock()
		for _, line := range t.lines[uid] {
			if line == text {
				t.mu.Unlock()
				return true
			}
		}
		t.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	return false
}

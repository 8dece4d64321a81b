package podlog

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// file serves what a program has written. When it wrote each line is not known:
// every line counts as of now.
func (s Server) file(w http.ResponseWriter, r *http.Request, q query, pod *corev1.Pod, path string) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		http.Error(w, "the container of pod "+pod.Name+" has not run", http.StatusBadRequest)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := &writer{w: w, query: q}
	lines := bufio.NewReader(f)
	out.past(func(yield func(Line) bool) {
		for text, more := next(lines); more && yield(Line{s.Clock.Now(), text}); text, more = next(lines) {
		}
	}, s.Clock.Now().Add(pollEvery))
	for q.follow && out.flush() && s.runs(r, pod) {
		select {
		case <-r.Context().Done():
			return
		case <-s.Clock.After(pollEvery):
		}
		for text, more := next(lines); more; text, more = next(lines) {
			out.line(Line{s.Clock.Now(), text})
		}
	}
}

// next is the next line; what was written of one without its end counts as one.
func next(lines *bufio.Reader) (string, bool) {
	text, err := lines.ReadString('\n')
	if err != nil && (!errors.Is(err, io.EOF) || text == "") {
		return "", false
	}
	return strings.TrimSuffix(text, "\n"), true
}

// runs reports whether the container still is in the run that was requested.
func (s Server) runs(r *http.Request, pod *corev1.Pod) bool {
	now, err := s.Client.CoreV1().Pods(pod.Namespace).Get(r.Context(), pod.Name, metav1.GetOptions{})
	if err != nil || now.UID != pod.UID || len(now.Status.ContainerStatuses) == 0 || len(pod.Status.ContainerStatuses) == 0 {
		return false
	}
	return now.Status.ContainerStatuses[0].State.Running != nil &&
		now.Status.ContainerStatuses[0].RestartCount == pod.Status.ContainerStatuses[0].RestartCount
}

package podlog

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pollEvery is how often a follower looks whether the container has ended.
const pollEvery = 250 * time.Millisecond

func (s Server) logs(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.Query(), s.Clock.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	namespace, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	pod, err := s.Client.CoreV1().Pods(namespace).Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if s.LogFile != nil {
		if path, ok := s.LogFile(pod, q.previous); ok {
			s.file(w, r, q, pod, path)
			return
		}
	}
	run, err := s.run(pod, container, q.previous)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := &writer{w: w, query: q}
	written := out.past(Lines(pod, run), s.Clock.Now())
	if q.follow && !run.Over {
		s.follow(r.Context(), out, pod, container, run, written)
	}
}

// follow writes lines as they fall due until the run or the reader ends.
func (s Server) follow(ctx context.Context, out *writer, pod *corev1.Pod, container string, run Run, written int) {
	next, stop := iter.Pull(Lines(pod, run))
	defer stop()
	for range written {
		next()
	}
	line, more := next()
	for out.flush() {
		now := s.Clock.Now()
		for ; more && !line.Time.After(now); line, more = next() {
			out.line(line)
			written++
		}
		latest, err := s.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil || latest.UID != pod.UID {
			return
		}
		if ended, err := s.run(latest, container, false); err != nil || !ended.Start.Equal(run.Start) {
			return
		} else if ended.Over {
			out.rest(Lines(latest, ended), written)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-s.Clock.After(pollEvery):
		}
	}
}

// run finds the current or the previous run of a container.
func (s Server) run(pod *corev1.Pod, container string, previous bool) (Run, error) {
	statuses := append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
	for _, c := range statuses {
		if c.Name != container {
			continue
		}
		if previous {
			if last := c.LastTerminationState.Terminated; last != nil {
				return s.exact(pod, s.EndedAtAnnotation, terminated(last)), nil
			}
			return Run{}, fmt.Errorf("previous terminated container %q in pod %q not found", container, pod.Name)
		}
		switch {
		case c.State.Terminated != nil:
			return s.exact(pod, s.EndsAtAnnotation, terminated(c.State.Terminated)), nil
		case c.State.Running != nil:
			return Run{Start: c.State.Running.StartedAt.Time, End: when(pod, s.EndsAtAnnotation)}, nil
		case c.State.Waiting != nil:
			return Run{}, fmt.Errorf("container %q in pod %q is waiting to start: %s", container, pod.Name, c.State.Waiting.Reason)
		}
	}
	return Run{}, fmt.Errorf("container %q in pod %q is waiting to start: ContainerCreating", container, pod.Name)
}

// exact is a run that is over, with its end as it was planned: the status knows
// seconds only, and on a busy machine it is late. The times of lines must not
// change when a run is over.
func (s Server) exact(pod *corev1.Pod, annotation string, run Run) Run {
	if at := when(pod, annotation); at.After(run.Start) && at.Sub(run.End) < time.Second {
		run.End = at
	}
	return run
}

// when is the time that an annotation holds; zero if it holds none.
func when(pod *corev1.Pod, annotation string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, pod.Annotations[annotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

func terminated(t *corev1.ContainerStateTerminated) Run {
	return Run{Start: t.StartedAt.Time, End: t.FinishedAt.Time, Over: true, ExitCode: t.ExitCode}
}
